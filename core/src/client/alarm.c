#include "alarm.h"

#include <unistd.h>

#include "../base/fork.h"

struct rlk_alarm rlk_alarm = {.bell = {-1, -1}, .timer = -1};

void rlk_alarm_forked(void)
{
  if (rlk_alarm.generation == rlk_fork_generation())
    return;
  rlk_alarm.generation = rlk_fork_generation();
  rlk_alarm.running = 0;
  rlk_bell_close(&rlk_alarm.bell);
  if (rlk_alarm.timer >= 0)
    close(rlk_alarm.timer);
  rlk_alarm.timer = -1;
}

void rlk_alarm_set(redlock_client *c, int64_t at_ns)
{
  if (!c->engine.net.env.stepped && !c->in_service && rlk_alarm.running &&
      at_ns < atomic_load(&rlk_alarm.sleeps_until_ns)) {
    atomic_store(&rlk_alarm.asked_ns, at_ns);
    rlk_bell_ring(rlk_alarm.bell.ringer);
  }
}
