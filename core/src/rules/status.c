/* The list of statuses: name, text, predicates. And the functions that need no client. */
#include "../../include/redlock.h"
#include "../base/buffer.h"
#include "../base/fork.h"
#include "../base/platform.h"

enum { ERROR = 1 << REDLOCK_IS_ERROR, RETRIABLE = 1 << REDLOCK_IS_RETRIABLE, USAGE = 1 << REDLOCK_IS_USAGE };

#define STATUSES(X)                                                                                                    \
  X(OK, 0, "done")                                                                                                     \
  X(PENDING, 0, "in flight")                                                                                           \
  X(BUSY, ERROR | RETRIABLE, "others hold the lock")                                                                   \
  X(NO_QUORUM, ERROR | RETRIABLE, "too few nodes answered in time")                                                    \
  X(TIMED_OUT, ERROR | RETRIABLE, "the wait ended before any attempt had a result")                                    \
  X(CANCELLED, ERROR | RETRIABLE, "cancelled on request")                                                              \
  X(LOST, ERROR, "the lock was held, but its lease has expired or was lost")                                           \
  X(NOT_HELD, ERROR | USAGE, "this handle does not hold the lock")                                                     \
  X(LIMIT, ERROR, "the limit on extensions or on the holding time has been reached")                                   \
  X(FORKED, ERROR | USAGE, "the lock belongs to the parent process")                                                   \
  X(IN_FLIGHT, ERROR | USAGE, "the handle already has an operation in flight")                                         \
  X(INVALID, ERROR | USAGE, "an argument, option or handle state is not allowed")                                      \
  X(REFUSED_CONFIG, ERROR | USAGE, "too many nodes are ineligible to vote because of their configuration")             \
  X(NO_MEMORY, ERROR | RETRIABLE, "out of memory")                                                                     \
  X(INTERNAL, ERROR, "the system refused a resource")                                                                  \
  X(UNREACHABLE, ERROR | RETRIABLE, "no connection to the node")                                                       \
  X(QUARANTINED, ERROR | RETRIABLE, "the node may have lost keys and does not vote for now")

static const struct {
  const char *name;
  const char *text;
  int traits;
} statuses[] = {
#define ROW(name, traits, text) [REDLOCK_##name] = {#name, text, traits},
    STATUSES(ROW)
#undef ROW
};

static int known(int status)
{
  return status >= 0 && status < (int)(sizeof statuses / sizeof statuses[0]);
}

const char *redlock_version(void)
{
  return REDLOCK_VERSION;
}

const char *redlock_status_name(int status)
{
  return known(status) ? statuses[status].name : "UNKNOWN";
}

const char *redlock_status_text(int status)
{
  return known(status) ? statuses[status].text : "a status unknown to this version";
}

int redlock_status_is(int status, int trait)
{
  if (!known(status) || trait < REDLOCK_IS_ERROR || trait > REDLOCK_IS_USAGE)
    return 0;
  return (statuses[status].traits >> trait) & 1;
}

int64_t redlock_now_ms(void)
{
  return rlk_platform_real.now_ns(NULL) / RLK_NS_PER_MS;
}

uint32_t redlock_fork_generation(void)
{
  return rlk_fork_generation();
}

int64_t redlock_escape(const char *text, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  if (!text)
    return -REDLOCK_INVALID;
  rlk_text_clean(&out, text);
  return (int64_t)out.length;
}
