/* Backing off for a busy resource. */
#ifndef RL_WAITING_H
#define RL_WAITING_H

#include "lock.h"

int rl_waiting_home(redlock_lock *lock, int64_t now_ns);
int64_t rl_waiting_pause_ns(redlock_lock *lock);
int64_t rl_waiting_hint_ns(redlock_lock *lock, int64_t now_ns);

#endif
