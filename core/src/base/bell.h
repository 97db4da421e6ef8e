/* One bell for all threads that wait in a client: a ring wakes a set of them with one system call. A condition per
 * thread costs a call and two switches for each of them. */
#ifndef RL_BELL_H
#define RL_BELL_H

#include <stdatomic.h>
#include <stdint.h>
#ifndef __linux__
#include <pthread.h>
#endif

struct rl_bell {
  _Atomic uint32_t rings;
#ifndef __linux__
  pthread_mutex_t mutex;
  pthread_cond_t condition;
#endif
};

int rl_bell_init(struct rl_bell *bell); /* 0, or -1 */
void rl_bell_free(struct rl_bell *bell);

/* To be called under the mutex that guards what is waited for, by those who wait and by those who will ring. */
uint32_t rl_bell_rings(struct rl_bell *bell);
void rl_bell_announce(struct rl_bell *bell);

/* Both without that mutex. Waits until there was an announcement after `rings` for a set with this bit, or until
 * timeout_ns (RL_NEVER: no limit) has passed; may return for no reason. */
void rl_bell_wait(struct rl_bell *bell, uint32_t rings, uint32_t bit, int64_t timeout_ns);
void rl_bell_ring(struct rl_bell *bell, uint32_t bits);

#endif
