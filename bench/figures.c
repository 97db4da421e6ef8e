#include "figures.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/mman.h>

int64_t now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

long rss_kb(void)
{
  long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &size, &resident) != 2)
    die("cannot read /proc/self/statm");
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

void die(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s: ", program_invocation_short_name);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

int64_t parse_number(struct argp_state *state, const char *option, const char *text, int64_t low, int64_t high)
{
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < low || value > high)
    argp_error(state, "--%s=%s: a whole number from %" PRId64 " to %" PRId64 " is allowed", option, text, low, high);
  return value;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  struct figures *figures = state->input;
  switch (key) {
  case 'c': figures->cycles_wanted = parse_number(state, "cycles", text, 1, 100000000); return 0;
  case 's': figures->seconds = (double)parse_number(state, "milliseconds", text, 1, 3600000) / 1e3; return 0;
  case 'w': figures->warm_cycles = parse_number(state, "warm", text, 0, 1000000); return 0;
  case 'g': figures->gate = true; return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"cycles", 'c', "N", 0, "measure N cycles", 0},
    {"milliseconds", 's', "MS", 0, "measure for MS (default 1000)", 0},
    {"warm", 'w', "N", 0, "cycles before the measurement (default 500)", 0},
    {"gate", 'g', NULL, 0, "after the warm-up print \"ready\" and wait for a line", 0},
    {0},
};

const struct argp figures_argp = {.options = options, .parser = parse_option};

void figures_init(struct figures *figures)
{
  memset(figures, 0, sizeof *figures);
  figures->seconds = 1;
  figures->warm_cycles = 500;
}

/* The pages of the histogram are touched before the measurement, so that they do not look like growth. */
static void begin(struct figures *figures)
{
  memset((void *)figures->latencies, 0, sizeof figures->latencies);
  figures->rss_begin_kb = rss_kb();
  if (figures->gate) {
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
      die("standard input was closed at the gate");
  }
  getrusage(RUSAGE_SELF, &figures->usage_begin);
  figures->begin_ns = now_ns();
  figures->end_ns = figures->begin_ns + (int64_t)(figures->seconds * 1e9);
  atomic_store(&figures->measuring, true);
}

bool figures_next(struct figures *figures)
{
  int64_t number = atomic_fetch_add(&figures->started, 1) - figures->warm_cycles;
  if (number == 0)
    begin(figures);
  if (number <= 0)
    return true;
  if (figures->cycles_wanted > 0)
    return number < figures->cycles_wanted;
  return !atomic_load(&figures->measuring) || now_ns() < figures->end_ns;
}

/* A histogram with a resolution of 0.1 percent costs the same few instructions for every cycle, unlike sorting. */
static unsigned bucket_of(uint32_t ns)
{
  unsigned shift = 0;
  while (ns >> shift >= 2 * LATENCY_STEPS)
    shift++;
  return shift * LATENCY_STEPS + (ns >> shift);
}

static double us_of(unsigned bucket)
{
  unsigned shift = bucket < 2 * LATENCY_STEPS ? 0 : bucket / LATENCY_STEPS - 1;
  return (double)((uint64_t)(bucket - shift * LATENCY_STEPS) << shift) / 1e3;
}

void figures_add(struct figures *figures, int64_t ns)
{
  if (!atomic_load(&figures->measuring))
    return;
  atomic_fetch_add(&figures->ended, 1);
  atomic_fetch_add(&figures->latencies[bucket_of(ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX)], 1);
}

/* The latency that `percent` of the cycles did not exceed. */
static double percentile_us(const struct figures *figures, int percent)
{
  int64_t wanted = (figures->ended * percent + 99) / 100, seen = 0;
  for (unsigned bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
    seen += figures->latencies[bucket];
    if (seen >= wanted && seen > 0)
      return us_of(bucket);
  }
  return 0;
}

static double seconds_between(struct timeval from, struct timeval to)
{
  return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_usec - from.tv_usec) / 1e6;
}

void figures_print(struct figures *figures, const char *more)
{
  double wall_s = (double)(now_ns() - figures->begin_ns) / 1e9;
  long rss_end_kb = rss_kb();
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("{\"cycles\":%" PRId64 ",\"failed\":%" PRId64 ",\"wall_s\":%.4f,\"cycles_per_s\":%.1f,"
         "\"p50_us\":%.2f,\"p99_us\":%.2f,\"max_us\":%.2f,\"user_s\":%.4f,\"sys_s\":%.4f,"
         "\"rss_begin_kb\":%ld,\"rss_end_kb\":%ld,\"rss_max_kb\":%ld%s}\n",
         figures->ended, figures->failed, wall_s, (double)figures->ended / wall_s, percentile_us(figures, 50),
         percentile_us(figures, 99), percentile_us(figures, 100),
         seconds_between(figures->usage_begin.ru_utime, usage.ru_utime),
         seconds_between(figures->usage_begin.ru_stime, usage.ru_stime), figures->rss_begin_kb, rss_end_kb,
         usage.ru_maxrss, more);
}

void *shared_memory(size_t size)
{
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    die("no memory");
  return memory;
}

void fork_each(int count, void (*work)(int number))
{
  for (int i = 0; i < count; i++) {
    pid_t child = fork();
    if (child < 0)
      die("fork failed");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, 9);
      work(i);
      _exit(0);
    }
  }
}
