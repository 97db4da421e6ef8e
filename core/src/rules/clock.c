#include "clock.h"

#include "../base/macros.h"
#include "quorum.h"

#define STEP_MIN_NS INT64_C(50000000)
#define HIDDEN_MAX_NS INT64_C(1100000000)
#define MINUTE_NS INT64_C(60000000000)
/* The maximum difference between clocks that are kept right; the time of a lease has a larger margin. */
#define IDLE_DRIFT 0.0005

/* How far two clocks may have run apart since then. */
static int64_t drift_ns(const struct rlk_clock *c, int64_t now, double drift_factor)
{
  int64_t minute_ns = rlk_smaller(now - c->at_ns, MINUTE_NS);
  return (int64_t)((double)minute_ns * drift_factor + (double)(now - c->at_ns - minute_ns) * IDLE_DRIFT);
}

int rlk_clock_is_known(const struct rlk_clock *c, int64_t now, double drift_factor)
{
  return c->at_ns && now - c->at_ns <= RLK_CLOCK_OLD_NS && drift_ns(c, now, drift_factor) <= HIDDEN_MAX_NS;
}

static struct rlk_clock as_of(const struct rlk_clock *c, int64_t now, double drift_factor)
{
  int64_t apart_ns = drift_ns(c, now, drift_factor);
  return (struct rlk_clock){c->low_ns - apart_ns, c->high_ns + apart_ns, now};
}

struct rlk_step rlk_clock_note(struct rlk_clock *c, const struct rlk_clock_sample *sample, double drift_factor)
{
  static const struct rlk_step none = {0, 0, 0, 0};
  struct rlk_clock before = as_of(c, sample->read_ns, drift_factor);
  struct rlk_clock after = {sample->server_us * 1000 - sample->read_ns,
                            sample->server_us * 1000 + 999 - sample->sent_ns, sample->read_ns};
  int64_t before_ns = c->at_ns;
  int is_first = !rlk_clock_is_known(c, sample->read_ns, drift_factor);
  *c = after;
  if (is_first || after.high_ns < before.low_ns)
    return none;
  if (after.low_ns > before.high_ns + STEP_MIN_NS)
    return (struct rlk_step){after.low_ns - before.high_ns, after.high_ns - before.low_ns, before_ns, after.at_ns};
  *c = before; /* many small steps are a large one: nothing but drift moves the bounds forward */
  if (after.low_ns <= before.high_ns) {
    c->low_ns = rlk_larger(before.low_ns, after.low_ns);
    c->high_ns = rlk_smaller(before.high_ns, after.high_ns);
  }
  return none;
}

int rlk_step_may_be_same(const struct rlk_step *one, const struct rlk_step *other)
{
  int is_as_large = one->low_ns <= other->high_ns && other->low_ns <= one->high_ns;
  return one->high_ns && other->high_ns && is_as_large && one->from_ns < other->to_ns && other->from_ns < one->to_ns;
}

int64_t rlk_clock_ahead_ns(const struct rlk_clock *c, const struct rlk_clock *const *clocks, int count, int wrong,
                           int64_t now, double drift_factor)
{
  int64_t high_ns[RLK_NODES_MAX];
  int known = 0;
  for (int i = 0; i < count; i++)
    if (rlk_clock_is_known(clocks[i], now, drift_factor))
      high_ns[known++] = as_of(clocks[i], now, drift_factor).high_ns;
  if (!known || !rlk_clock_is_known(c, now, drift_factor))
    return -1;
  return as_of(c, now, drift_factor).low_ns - rlk_valid_until(high_ns, known, (int)rlk_smaller(wrong + 1, known));
}
