/* The alarm that wakes the keeper. */
#ifndef RLK_ALARM_H
#define RLK_ALARM_H

#include "../base/bell.h"
#include "client.h"

extern struct rlk_alarm {
  atomic_int running; /* the keeper's thread is there */
  struct rlk_bell bell;
  int timer; /* readable when the keeper has work to do; or -1 */
  _Atomic int64_t sleeps_until_ns;
  _Atomic int64_t asked_ns; /* by the last ring: until then it sleeps also if that lock was released meanwhile */
  uint32_t generation;      /* of the process that it runs in */
} rlk_alarm;

/* A child has no such thread; it gets one with its first renewed lock. */
void rlk_alarm_forked(void);
/* A renewal is due at that time: rings if the keeper would sleep longer. */
void rlk_alarm_set(redlock_client *client, int64_t at_ns);

#endif
