/* What every program of the bench measures: cycles, their latencies, CPU time and memory. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

enum { LATENCY_STEPS = 1024, LATENCY_BUCKETS = 23 * LATENCY_STEPS };

struct figures {
  int64_t cycles_wanted; /* how many to measure, or 0: until seconds have passed */
  double seconds;
  int64_t warm_cycles; /* done first, not measured */
  bool gate;           /* after the warm-up say "ready" and go on when a line comes in */

  _Atomic int64_t started; /* cycles, also those of the warm-up */
  _Atomic bool measuring;
  _Atomic int64_t ended; /* measured cycles */
  _Atomic int64_t failed;
  int64_t begin_ns, end_ns;
  _Atomic uint32_t latencies[LATENCY_BUCKETS];
  long rss_begin_kb;
  struct rusage usage_begin;
};

/* Command-line options that set a struct figures, which is the parser's input. */
extern const struct argp figures_argp;

int64_t now_ns(void);
long rss_kb(void);
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory that the processes forked after this share; it is zero. */
void *shared_memory(size_t size);

/* Calls work with each number below count, in a process of its own that ends with it, or with this process. */
void fork_each(int count, void (*work)(int number));

/* A whole number from `low` to `high`, or a usage error that names the option. */
int64_t parse_number(struct argp_state *state, const char *option, const char *text, int64_t low, int64_t high);

void figures_init(struct figures *figures);

/* May another cycle start? Begins the measurement when the warm-up is over. Any thread. */
bool figures_next(struct figures *figures);

/* A cycle took ns. Any thread. */
void figures_add(struct figures *figures, int64_t ns);

/* Prints one line of JSON; `more` are further members, as JSON that starts with a comma, or "". */
void figures_print(struct figures *figures, const char *more);

#endif
