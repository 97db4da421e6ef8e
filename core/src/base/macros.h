#ifndef RLK_MACROS_H
#define RLK_MACROS_H

#include <stddef.h>
#include <stdint.h>

/* From a member to the struct that it is embedded in. */
#define RLK_OWNER(type, member, pointer) ((type *)((char *)(pointer) - offsetof(type, member)))

/* A function off the path of replies: its registers and stack do not burden its callers. */
#define RLK_COLD __attribute__((cold))
/* An inline function on the path of every request: the compiler is not asked whether that is worth the copies. */
#define RLK_HOT __attribute__((always_inline))

static inline int64_t rlk_smaller(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static inline int64_t rlk_larger(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

#endif
