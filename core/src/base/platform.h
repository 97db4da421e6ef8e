/* What the core needs from its surroundings: a clock and random bits, behind a table that a simulator can replace. */
#ifndef RLK_PLATFORM_H
#define RLK_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#define RLK_NS_PER_MS INT64_C(1000000)
#define RLK_NEVER INT64_MAX

struct rlk_platform {
  int64_t (*now_ns)(void *context);  /* a clock that never steps and counts suspend (rule A.1) */
  uint64_t (*random)(void *context); /* 64 random bits; unpredictable enough that no two processes agree */
  int64_t (*wall_ns)(void *context); /* the time of day, which copies of a process do not share */
  int64_t (*process)(void *context, char *host, size_t size); /* its number, and the name of its machine */
};

extern const struct rlk_platform rlk_platform_real;

/* A variable of the environment; NULL in a program that has more rights than the one who started it. */
const char *rlk_variable(const char *name);
/* Runs run(argument) in a detached thread that no signal reaches, so that handlers of the program never run in it. 0,
 * or -1 when the system refuses. */
int rlk_thread_start(void *(*run)(void *argument), void *argument);
/* Names the calling thread, as tools such as ps and gdb show it. */
void rlk_thread_name(const char *name);

#endif
