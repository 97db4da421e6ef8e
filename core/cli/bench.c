/* bench.c - redlock bench: how many locks per second can be acquired and released on these nodes, and how long does it
 * take? */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

static int64_t for_ms = 10000;
static int threads, in_flight, resources; /* with in_flight there are no threads */

enum { STATUSES = 17, TICK_MS = 250, LEAVE_MS = 5000 };

struct result {
  struct histogram acquire, release, cycle;
  uint64_t statuses[STATUSES]; /* of acquisitions */
};

/* One lock that is acquired and released again and again. */
struct worker {
  struct bench *bench;
  redlock_lock *lock;
  pthread_t thread;
  bool has_thread;
  int64_t begun_ns, held_ns; /* 0: it is not held */
  struct result *result;     /* its own if it has a thread, else that of all */
};

struct bench {
  struct session *session;
  struct worker *workers;
  int count;
  int64_t begun_ns, end_ns, wait_ms;
  struct result total;
  uint64_t cycles; /* so far; atomic */
  int running;     /* atomic */
  int last_failure;
};

static int64_t now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_on(const struct bench *bench)
{
  return __atomic_load_n(&bench->running, __ATOMIC_RELAXED) && now_ns() < bench->end_ns;
}

/* ---- a cycle ---- */

static void acquired(struct worker *worker, int status)
{
  worker->result->statuses[status >= 0 && status < STATUSES ? status : 0]++;
  if (status != REDLOCK_OK) {
    worker->bench->last_failure = status;
    return;
  }
  worker->held_ns = now_ns();
  histogram_add(&worker->result->acquire, worker->held_ns - worker->begun_ns);
}

static void released(struct worker *worker)
{
  int64_t now = now_ns();
  histogram_add(&worker->result->release, now - worker->held_ns);
  histogram_add(&worker->result->cycle, now - worker->begun_ns);
  worker->held_ns = 0;
  __atomic_fetch_add(&worker->bench->cycles, 1, __ATOMIC_RELAXED);
}

/* Up to the end of the measurement. -1 would be no limit. */
static int64_t wait_ms(const struct bench *bench)
{
  int64_t left_ms = (bench->end_ns - now_ns()) / 1000000 + 1, option_ms = bench->wait_ms;
  left_ms = left_ms > 0 ? left_ms : 0; /* the end may have come since it was looked at */
  return option_ms < 0 || left_ms < option_ms ? left_ms : option_ms;
}

/* ---- threads ---- */

static void *work(void *object)
{
  struct worker *worker = object;
  while (is_on(worker->bench)) {
    worker->begun_ns = now_ns();
    int status = redlock_lock_acquire(worker->lock, wait_ms(worker->bench));
    if (status != REDLOCK_OK && !is_on(worker->bench))
      break; /* it waited to the end of the measurement */
    acquired(worker, status);
    if (status != REDLOCK_OK)
      continue;
    redlock_lock_release(worker->lock);
    released(worker);
  }
  return NULL;
}

static void show_progress(const struct bench *bench)
{
  static const char clear[] = "\r\033[K";
  static bool is_told; /* that nodes do not vote yet */
  double seconds = (double)(now_ns() - bench->begun_ns) / 1e9, all = (double)(bench->end_ns - bench->begun_ns) / 1e9;
  uint64_t cycles = __atomic_load_n(&bench->cycles, __ATOMIC_RELAXED);
  is_told = is_told || say_warnings(bench->session);
  if (!isatty(STDERR_FILENO) || bench->session->args->json)
    return;
  if (seconds < all)
    fprintf(stderr, "%s%.0f s of %.0f s, %.0f cycles/s", clear, seconds, all,
            seconds > 0 ? (double)cycles / seconds : 0.0);
  else
    fputs(clear, stderr);
  fflush(stderr);
}

/* Until progress is shown again, or the end if that is sooner. */
static int tick_ms(const struct bench *bench)
{
  int64_t left_ms = (bench->end_ns - now_ns()) / 1000000 + 1;
  return left_ms < 1 ? 1 : left_ms < TICK_MS ? (int)left_ms : TICK_MS;
}

static void wait_for_the_end(struct bench *bench)
{
  struct session *session = bench->session;
  struct pollfd wanted = {.fd = session->signal_fd, .events = POLLIN};
  while (is_on(bench) && session->caught == 0) {
    poll(&wanted, 1, tick_ms(bench));
    session->caught = session_signal(session);
    show_progress(bench);
  }
}

/* After a signal it may still be waiting for a lock. */
static void end_thread(struct worker *worker)
{
  struct timespec soon;
  do {
    if (worker->bench->session->caught)
      redlock_lock_cancel(worker->lock);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
  } while (pthread_timedjoin_np(worker->thread, NULL, &soon) != 0);
}

static int run_threads(struct bench *bench)
{
  int failed = 0;
  for (int i = 0; i < bench->count && !failed; i++) {
    struct worker *worker = &bench->workers[i];
    worker->result = must(calloc(1, sizeof *worker->result));
    failed = pthread_create(&worker->thread, NULL, work, worker);
    worker->has_thread = !failed;
  }
  if (!failed)
    wait_for_the_end(bench);
  __atomic_store_n(&bench->running, 0, __ATOMIC_RELAXED);
  for (int i = 0; i < bench->count; i++)
    if (bench->workers[i].has_thread)
      end_thread(&bench->workers[i]);
  errno = failed;
  return failed ? fail_errno("a thread") : 0;
}

/* ---- started operations ---- */

/* The next operation of a worker: 1, or 0 if it has stopped. */
static int go_on(struct worker *worker)
{
  if (worker->held_ns)
    return redlock_lock_start(worker->lock, REDLOCK_RELEASE, 0) == REDLOCK_OK;
  if (!is_on(worker->bench))
    return 0;
  worker->begun_ns = now_ns();
  return redlock_lock_start(worker->lock, REDLOCK_ACQUIRE, wait_ms(worker->bench)) == REDLOCK_OK;
}

static int operation_ended(struct worker *worker)
{
  int status = redlock_lock_status(worker->lock);
  if (worker->held_ns)
    released(worker);
  else if (status == REDLOCK_OK || is_on(worker->bench))
    acquired(worker, status);
  return go_on(worker);
}

static void cancel_waits(struct bench *bench)
{
  for (int i = 0; i < bench->count; i++)
    if (!bench->workers[i].held_ns)
      redlock_lock_cancel(bench->workers[i].lock);
}

static int run_started(struct bench *bench)
{
  struct session *session = bench->session;
  struct pollfd wanted[] = {{.fd = session->client_fd, .events = POLLIN}, {.fd = session->signal_fd, .events = POLLIN}};
  int active = 0;
  int64_t told_ns = now_ns();
  for (int i = 0; i < bench->count; i++) {
    bench->workers[i].result = &bench->total;
    active += go_on(&bench->workers[i]);
  }
  while (active > 0) {
    uint64_t tag;
    poll(wanted, 2, TICK_MS);
    session->caught = session->caught ? session->caught : session_signal(session);
    bench->running = session->caught == 0;
    if (session->caught)
      cancel_waits(bench);
    redlock_client_process(session->client);
    while (redlock_client_next(session->client, &tag) == 1)
      active += operation_ended(&bench->workers[tag]) - 1;
    if (now_ns() - told_ns > TICK_MS * INT64_C(1000000)) {
      show_progress(bench);
      told_ns = now_ns();
    }
  }
  return 0;
}

/* ---- the report ---- */

static void print_times(const char *name, const struct histogram *times)
{
  printf("%-8s  %10llu  %10llu  %10llu  %10llu  %10llu\n", name, (unsigned long long)histogram_percentile_us(times, 50),
         (unsigned long long)histogram_percentile_us(times, 90), (unsigned long long)histogram_percentile_us(times, 99),
         (unsigned long long)histogram_percentile_us(times, 99.9), (unsigned long long)times->max_us);
}

static void print_failures(const struct result *total)
{
  for (int i = 1; i < STATUSES; i++)
    if (total->statuses[i] > 0)
      printf("%llu times %s: %s\n", (unsigned long long)total->statuses[i], redlock_status_name(i),
             redlock_status_text(i));
}

static int print_report(const struct bench *bench, double seconds)
{
  const struct result *total = &bench->total;
  printf("%llu cycles of acquire and release in %.1f s: %.0f per second, %d %s on %d %s\n",
         (unsigned long long)total->cycle.count, seconds, (double)total->cycle.count / seconds, bench->count,
         in_flight           ? "in flight"
         : bench->count == 1 ? "thread"
                             : "threads",
         resources, resources == 1 ? "resource" : "resources");
  print_failures(total);
  printf("\n%-8s  %10s  %10s  %10s  %10s  %10s\n", "us", "p50", "p90", "p99", "p99.9", "max");
  print_times("acquire", &total->acquire);
  print_times("release", &total->release);
  print_times("cycle", &total->cycle);
  puts("\ncycles by time");
  times_print(&total->cycle);
  return flush_answer();
}

static int print_report_json(const struct bench *bench, double seconds)
{
  const struct result *total = &bench->total;
  json_t *statuses = must(json_object());
  for (int i = 0; i < STATUSES; i++)
    if (total->statuses[i] > 0)
      json_object_set_new(statuses, redlock_status_name(i), json_integer((json_int_t)total->statuses[i]));
  json_t *report = must(json_pack(
      "{s:f,s:i,s:i,s:i,s:I,s:f,s:o,s:o,s:o,s:o}", "seconds", seconds, "threads", in_flight ? 0 : bench->count,
      "in_flight", in_flight, "resources", resources, "cycles", (json_int_t)total->cycle.count, "cycles_per_second",
      (double)total->cycle.count / seconds, "statuses", statuses, "acquire", times_json(&total->acquire), "release",
      times_json(&total->release), "cycle", times_json(&total->cycle)));
  return print_json(report);
}

static int report(struct bench *bench)
{
  double seconds = (double)(now_ns() - bench->begun_ns) / 1e9;
  for (int i = 0; i < bench->count && !in_flight; i++) {
    const struct result *result = bench->workers[i].result;
    histogram_merge(&bench->total.acquire, &result->acquire);
    histogram_merge(&bench->total.release, &result->release);
    histogram_merge(&bench->total.cycle, &result->cycle);
    for (int s = 0; s < STATUSES; s++)
      bench->total.statuses[s] += result->statuses[s];
  }
  if (bench->total.cycle.count == 0 && bench->session->caught == 0) {
    char *message = lock_message(bench->workers[0].lock);
    int status = bench->last_failure == REDLOCK_OK ? REDLOCK_NO_QUORUM : bench->last_failure; /* none had ended */
    int code = fail(exit_code_of(bench->session->args, status), "no lock was acquired: %s", message);
    free(message);
    return bench->session->args->json ? report_words(code, status, failure_words(code)) : code;
  }
  return bench->session->args->json ? print_report_json(bench, seconds) : print_report(bench, seconds);
}

/* ---- setting up ---- */

static redlock_lock *lock_of(struct session *session, int resource, uint64_t tag)
{
  char *name = format("redlock-bench:%jd:%d", (intmax_t)getpid(), resource);
  redlock_lock *lock = must(redlock_lock_new(session->client, name, strlen(name)));
  free(name);
  redlock_lock_set_tag(lock, tag);
  return lock;
}

/* Connecting to the nodes is not part of the measurement. */
static int connect_first(struct session *session)
{
  int status = session_inspect(session);
  return session->caught || !redlock_status_is(status, REDLOCK_IS_USAGE) || status == REDLOCK_REFUSED_CONFIG
             ? 0
             : report_failure(session, status);
}

/* Many requests may be on their way to a node that lags: no key may be left there. */
static void leave(struct session *session)
{
  int64_t option_ms = session_option_ms(session, "exit_drain_ms");
  (void)redlock_client_drain(session->client, option_ms > LEAVE_MS ? option_ms : LEAVE_MS);
}

static int measure(struct session *session)
{
  struct bench bench = {.session = session,
                        .count = in_flight ? in_flight : threads,
                        .wait_ms = session_option_ms(session, "wait_ms"),
                        .running = 1};
  int code = connect_first(session);
  if (code || session->caught)
    return code;
  bench.workers = must(calloc((size_t)bench.count, sizeof *bench.workers));
  for (int i = 0; i < bench.count; i++) {
    bench.workers[i].bench = &bench;
    bench.workers[i].lock = lock_of(session, i % resources, (uint64_t)i);
  }
  bench.begun_ns = now_ns();
  bench.end_ns = bench.begun_ns + for_ms * 1000000;
  code = in_flight ? run_started(&bench) : run_threads(&bench);
  show_progress(&bench);
  if (code == 0)
    code = report(&bench);
  for (int i = 0; i < bench.count; i++) {
    redlock_lock_free(bench.workers[i].lock);
    if (bench.workers[i].result != &bench.total)
      free(bench.workers[i].result);
  }
  free(bench.workers);
  leave(session);
  return code;
}

/* One resource for each worker, so that none waits. */
static int check(const struct args *args)
{
  (void)args;
  if (threads && in_flight)
    return fail(EXIT_USAGE, "--threads and --in-flight are alternatives: operations are blocking or started");
  if (for_ms == 0)
    return fail(EXIT_USAGE, "--for 0: must be longer than 0");
  threads = threads || in_flight ? threads : 1;
  if (resources == 0)
    resources = threads + in_flight;
  return 0;
}

static const struct flag for_flag =
    FLAG_TO("for", 0, "DURATION", flag_duration, &for_ms, "how long to measure (default 10s)");
static const struct flag threads_flag =
    FLAG_COUNT("threads", &threads, 10000, "number of threads, each with blocking calls (default 1)");
static const struct flag in_flight_flag =
    FLAG_COUNT("in-flight", &in_flight, 10000, "keep N operations in flight, from one thread");
static const struct flag resources_flag =
    FLAG_COUNT("resources", &resources, 10000, "number of resources; fewer: contention (default: one for each worker)");

const struct command bench_command = {
    OVERVIEW("bench", "Look", "measure cycles per second", "[OPTION...]"),
    .help =
        "Acquires and releases locks on the nodes as fast as it can, and reports cycles per second and their times.\n"
        "Its keys are redlock-bench:PID:N, behind the key prefix. It loads the nodes: not for production at peak "
        "hours.",
    .purposes = KIND | GRANT | WAIT | LEASE,
    FLAGS(&for_flag, &threads_flag, &in_flight_flag, &resources_flag),
    .check = check,
    .run = measure};
