/* run.c - redlock run RESOURCE -- CMD: holds the lock while CMD runs. lead: and stands by again after a loss. */
#include "job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GROUP_LOOK_MS = 20, DAY_MS = 86400000 };

static int64_t keep_ms; /* 0: the lock is released when CMD ends */
int64_t kill_after_ms = 5000;

struct run {
  struct session *session;
  struct job job;
  bool lost;
  char *loss; /* in words */
  bool is_said;
  bool killed;
  bool leads;
  int asked_to_end; /* the signal that was meant for redlock as well as for CMD */
  int64_t kill_at_ms;
  int64_t taken_at_ms;
  char *left; /* failures of releasing the lock at the end */
};

static void watch_job_signals(struct session *session)
{
  session->child_ignored |= signal(SIGCHLD, SIG_DFL) == SIG_IGN;
  sigaddset(&session->watched, SIGCHLD);
  sigaddset(&session->watched, SIGCONT);
  sigaddset(&session->watched, SIGTSTP);
  signalfd(session->signal_fd, &session->watched, 0);
  sigset_t blocked = session->watched;
  sigaddset(&blocked, SIGTTOU);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
}

/* Signals about a CMD are not watched while redlock waits for the lock. */
static void unwatch_job_signals(struct session *session)
{
  static const int of_job[] = {SIGCHLD, SIGCONT, SIGTSTP};
  sigset_t unblocked;
  sigemptyset(&unblocked);
  sigaddset(&unblocked, SIGTTOU);
  for (size_t i = 0; i < sizeof of_job / sizeof *of_job; i++) {
    sigdelset(&session->watched, of_job[i]);
    sigaddset(&unblocked, of_job[i]);
  }
  signalfd(session->signal_fd, &session->watched, 0);
  sigprocmask(SIG_UNBLOCK, &unblocked, NULL);
}

/* -1: there is none, also if there is one of a lock around this one. */
static void export_number(const char *name, int64_t number)
{
  char text[24];
  snprintf(text, sizeof text, "%jd", (intmax_t)number);
  if (number >= 0)
    setenv(name, text, 1);
  else
    unsetenv(name);
}

static void export_lock(const struct session *session)
{
  char *token = lock_token(session->lock);
  int64_t fence = redlock_lock_fence(session->lock);
  char *resources = format("%s", session->args->resource);
  for (int i = 0; i < session->args->more_count; i++)
    resources = append(resources, "\n%s", session->args->more[i]);
  setenv("REDLOCK_RESOURCE", resources, 1);
  free(resources);
  setenv("REDLOCK_TOKEN", token, 1);
  free(token);
  export_number("REDLOCK_FENCE", fence > 0 ? fence : -1);
  export_number("REDLOCK_SLOT", redlock_lock_slot(session->lock));
}

static void say_lost(struct run *run)
{
  if (!run->is_said && !run->session->args->json)
    fail(EXIT_LOST, "while %s ran, %s", run->session->args->job[0], run->loss);
  run->is_said = true;
}

/* SIGCONT, since a stopped process does not receive SIGTERM. */
static void lose(struct run *run)
{
  run->lost = true;
  run->kill_at_ms = redlock_now_ms() + kill_after_ms;
  job_signal(&run->job, SIGTERM);
  job_signal(&run->job, SIGCONT);
  guard_tell(&run->job.guard, (struct watch){run->job.pid, NEVER_MS, run->kill_at_ms});
  run->loss = outcome(run->session, REDLOCK_LOST);
}

/* What is said of a loss waits for CMD's end if nobody reads it. */
static void look_at_lock(struct run *run)
{
  if (!run->lost && redlock_lock_state(run->session->lock) != REDLOCK_STATE_HELD)
    lose(run);
  if (run->lost && takes_words(0))
    say_lost(run);
}

/* CMD continues only if the lock is still held. */
static void resume(struct run *run)
{
  look_at_lock(run);
  if (run->lost)
    return;
  if (run->job.takes_terminal && terminal_is_ours(run->job.tty))
    terminal_give(&run->job);
  job_signal(&run->job, SIGCONT);
}

/* Stops like CMD, so that a shell sees a stopped job. The kernel does not stop an orphaned process group, which no
 * shell could continue; then there is no SIGCONT to wait for and CMD continues as well. */
static void stop_self(struct run *run, int number)
{
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  guard_tell(&run->job.guard, (struct watch){run->job.pid, NEVER_MS, NEVER_MS}); /* it is stopped, and may clean up */
  sigprocmask(SIG_UNBLOCK, &one, NULL);
  if (number == SIGSTOP)
    raise(SIGSTOP);
  else
    kill(0, number);
  sigprocmask(SIG_BLOCK, &one, NULL);
  sigset_t pending;
  sigpending(&pending);
  if (!sigismember(&pending, SIGCONT))
    resume(run);
}

/* CMD was stopped. In a terminal redlock stops with it, and so does the rest of the group: no process works while
 * the lock is not renewed. Without a terminal no one looks after stopped jobs, so the lock is kept. */
static void stop(struct run *run, int number)
{
  bool asks_for_terminal = number == SIGTTIN || number == SIGTTOU;
  if (run->lost) {
    job_signal(&run->job, SIGCONT);
  } else if (asks_for_terminal && terminal_is_ours(run->job.tty) && terminal_give(&run->job)) {
    run->job.takes_terminal = true;
    resume(run);
  } else if (run->job.tty >= 0) {
    job_signal(&run->job, SIGSTOP);
    terminal_take(&run->job);
    stop_self(run, number);
  }
}

static void hear(struct run *run, int number)
{
  if (number == SIGCONT) {
    resume(run);
  } else if (number == SIGCHLD) {
    int stopped_by = job_wait(&run->job);
    if (stopped_by != 0)
      stop(run, stopped_by);
  } else {
    if (number == SIGTERM || number == SIGINT || number == SIGQUIT)
      run->asked_to_end = number;
    job_signal(&run->job, number);
  }
}

static void kill_when_due(struct run *run)
{
  if (!run->lost || run->killed || redlock_now_ms() < run->kill_at_ms)
    return;
  run->killed = true;
  job_signal(&run->job, SIGKILL);
}

/* Tells the guard until when the lock is held. A renewal that the library's own thread hears of wakes nobody here, so
 * the lock is looked at again by that time. */
static int64_t guard_until_ms(const struct run *run)
{
  struct watch watch = guard_watch(run->session, run->job.pid);
  guard_tell(&run->job.guard, watch);
  return watch.term_ms + 1;
}

/* Nothing reports the end of CMD's children, so it polls. */
static int poll_limit_ms(const struct run *run)
{
  if (run->killed)
    return -1;
  int64_t left_ms = (run->lost ? run->kill_at_ms : guard_until_ms(run)) - redlock_now_ms();
  if (!run->job.running && left_ms > GROUP_LOOK_MS)
    left_ms = GROUP_LOOK_MS;
  return left_ms < 0 ? 0 : (int)(left_ms < INT32_MAX ? left_ms : INT32_MAX);
}

static bool goes_on(const struct run *run)
{
  return run->job.running || (run->lost && !run->killed && job_group_exists(&run->job));
}

static void watch_job(struct run *run)
{
  while (goes_on(run)) {
    session_poll(run->session, poll_limit_ms(run));
    int number;
    while ((number = session_signal(run->session)) != 0)
      hear(run, number);
    look_at_lock(run);
    kill_when_due(run);
  }
  guard_tell(&run->job.guard, (struct watch){.group = 0}); /* what CMD leaves running stays */
}

/* If a signal ended CMD, redlock ends by the same signal. Ctrl-C reached only CMD's group; the script that called
 * redlock, a member of our group, must see it as well. */
static int job_exit_code(const struct run *run, bool had_terminal)
{
  int status = run->job.wait_status;
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  int number = WTERMSIG(status);
  if (had_terminal && (number == SIGINT || number == SIGQUIT))
    kill(0, number);
  run->session->caught = number;
  return 128 + number;
}

/* How much longer --keep wants the lock; a CMD that failed may be retried at once. */
static int64_t keep_left_ms(const struct run *run)
{
  int status = run->job.wait_status;
  bool succeeded = !run->lost && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return succeeded ? run->taken_at_ms + keep_ms - redlock_now_ms() : 0;
}

static int leave(struct run *run, int64_t left_ms)
{
  struct session *session = run->session;
  int status = left_ms > 0 ? leave_keep(session, left_ms, &run->left) : leave_release(session, &run->left);
  if (run->left != NULL && !run->lost && !session->args->json)
    fail(0, "%s", run->left);
  return status;
}

static int finish(struct run *run)
{
  bool had_terminal = terminal_take(&run->job);
  int status = leave(run, keep_left_ms(run));
  if (status == REDLOCK_LOST && !run->lost)
    run->loss = outcome(run->session, REDLOCK_LOST);
  if (run->loss != NULL)
    say_lost(run);
  run->lost = run->lost || (status == REDLOCK_LOST && !run->leads); /* a CMD that leads has ended by itself */
  return run->lost ? EXIT_LOST : job_exit_code(run, had_terminal);
}

static int start_and_watch(struct run *run)
{
  run->lost = redlock_lock_state(run->session->lock) != REDLOCK_STATE_HELD;
  if (run->lost)
    return fail(EXIT_LOST, "the lock was lost before %s started", run->session->args->job[0]);
  int code = job_start(&run->job, run->session);
  if (code != 0) {
    leave(run, 0);
    return code;
  }
  watch_job(run);
  return finish(run);
}

static int run_job(struct run *run)
{
  run->job.tty = terminal_open();
  run->job.takes_terminal = run->job.tty >= 0 && terminal_is_wanted();
  export_lock(run->session);
  watch_job_signals(run->session);
  int code = start_and_watch(run);
  if (run->job.tty >= 0)
    close(run->job.tty);
  return code;
}

/* Its term is over, and CMD has not ended by itself. */
static bool stands_by_again(const struct run *run)
{
  return run->leads && run->lost && run->session->caught == 0;
}

/* Standard output belongs to CMD, so the report goes to standard error. */
static void report(const struct run *run, int status, int code)
{
  bool is_busy = status == REDLOCK_BUSY && run->session->caught == 0;
  if (is_busy)
    holder_ask(run->session);
  json_t *object = report_json(run->session, status);
  if (run->loss != NULL)
    json_object_set_new(object, "message", json_string(run->loss));
  if (loss_name(run->session->lock) != NULL)
    json_object_set_new(object, "reason", json_string(loss_name(run->session->lock)));
  if (run->left != NULL)
    json_object_set_new(object, "warning", json_string(run->left));
  if (is_busy)
    set_held_by(object, holder_client(run->session->lock));
  json_object_set_new(object, "waited_ms", json_integer(run->session->waited_ms));
  if (!stands_by_again(run))
    json_object_set_new(object, "exit", json_integer(code));
  json_dumpf(object, stderr, JSON_COMPACT);
  fputc('\n', stderr);
  json_decref(object);
}

static int acquire_and_run(struct run *run)
{
  struct session *session = run->session;
  int status = session_acquire(session);
  bool json = session->args->json;
  run->taken_at_ms = redlock_now_ms();
  if (status != REDLOCK_OK && !json)
    return report_failure(session, status);
  int code = status == REDLOCK_OK ? run_job(run) : exit_code_of(session->args, status);
  if (run->lost && run->leads)
    session->caught = run->asked_to_end;
  if (session->caught != 0)
    code = 128 + session->caught;
  if (json && (!stands_by_again(run) || takes_words(WORDS_MS)))
    report(run, run->lost ? REDLOCK_LOST : status, code);
  return code;
}

static void stand_by(struct run *run)
{
  unwatch_job_signals(run->session);
  run->lost = run->killed = run->is_said = false;
  run->asked_to_end = 0;
  run->session->leave_by_ms = 0;
  free(run->loss);
  free(run->left);
  run->loss = run->left = NULL;
}

/* Terms follow each other until CMD ends by itself, or a signal ends both. */
static int lead(struct run *run)
{
  int code = acquire_and_run(run);
  while (stands_by_again(run)) {
    stand_by(run);
    code = acquire_and_run(run);
  }
  return code;
}

/* A --keep that no extension could reach is refused before CMD runs, not reported afterwards. */
static int check_keep(const struct session *session)
{
  int64_t max_ttl_ms = session_option_ms(session, "max_ttl_ms"),
          max_hold_ms = session_option_ms(session, "max_hold_ms");
  char *keep = duration_text(keep_ms), *limit = duration_text(max_hold_ms), *message = NULL;
  if (keep_ms > DAY_MS)
    message = format("--keep %s: allowed: up to 24h", keep);
  else if (keep_ms > max_ttl_ms)
    message = format(
        "--keep %s is above " NAMED("max_ttl_ms") ", " PART "%" PRId64 PART ": keep it for less, or give "
                                                  "all programs of these nodes a " NAMED(
                                                      "max_ttl_ms") " of " PART "%" PRId64 PART
                                                                    " (a node that loses its keys is out for as long)",
        keep, max_ttl_ms, keep_ms);
  else if (max_hold_ms >= 0 && keep_ms > max_hold_ms)
    message = format("--keep %s: allowed: up to " NAMED("max_hold_ms") " (%s)", keep, limit);
  free(keep);
  free(limit);
  return message == NULL ? 0 : refuse_options(session->args, message);
}

/* A host that waits for others for longer than they keep the lock would run CMD again. With no wait at all, hosts
 * that ask at the same moment may keep each other from a majority, and no host would take over from a CMD that
 * fails. */
static void wait_less_than_it_is_kept(struct session *session)
{
  bool is_chosen = setting_in_force(session->args, "wait_ms") != NULL;
  session->busy_wait_ms = keep_ms > 0 && !is_chosen ? (keep_ms + 1) / 2 : 0;
}

static int run_or_lead(const struct args *args, bool leads)
{
  struct session session;
  struct run run = {.session = &session, .leads = leads};
  int code = guard_start(&run.job.guard);
  if (code != 0)
    return code;
  code = session_open(&session, args);
  if (code == 0)
    code = check_keep(&session);
  wait_less_than_it_is_kept(&session);
  if (code == 0)
    code = leads ? lead(&run) : acquire_and_run(&run);
  guard_end(&run.job.guard);
  free(run.loss);
  free(run.left);
  return session_close(&session, code);
}

static int run(const struct args *args)
{
  return run_or_lead(args, false);
}

static int stand_for_leader(const struct args *args)
{
  return args->listens ? listen_to_leaders(args) : run_or_lead(args, true);
}

static const struct flag keep_flag =
    FLAG_TO("keep", 0, "DURATION", flag_duration, &keep_ms,
            "if CMD succeeds, release this long after acquiring; so nobody runs CMD again meanwhile, and "
            "--wait defaults to half of it at most");
static const struct flag kill_flag =
    FLAG_TO("kill-after", 'k', "DURATION", flag_duration, &kill_after_ms,
            "from SIGTERM to SIGKILL after a loss; both go to CMD's process group (default 5s)");

const struct command run_command = {
    OVERVIEW("run", "Lock", "hold the lock while a command runs", "[OPTION...] RESOURCE... -- CMD [ARGUMENT...]"),
    .help =
        "Acquires the lock, of several RESOURCEs all or none, renews it while CMD runs and ends CMD's process group "
        "if it is lost.\n"
        "CMD has REDLOCK_RESOURCE and _TOKEN, with --fence _FENCE, with --permits _SLOT.\n"
        "Exits with CMD's status, or 75 others hold the lock, 69 no quorum, 78 nodes refuse, 76 it was lost, 126 or "
        "127 CMD cannot be run, 64 usage, 70 internal.",
    .purposes = KIND | GRANT | WAIT | LEASE | HOLD,
    DEFAULTS({"renew", "true"}, {"wait_ms", WAIT_DEFAULT_MS}),
    FLAGS(&keep_flag, &kill_flag, FLAGS_OF_A_WAIT),
    .main = run};

static const struct flag listen_flag =
    FLAG_IN_ARGS("listen", 0, listens,
                 "print a line whenever the leader changes, until a signal comes; without CMD, and not as a candidate");

const struct command lead_command = {
    OVERVIEW("lead", "Lock", "run a command on one host of many, as their leader",
             "[OPTION...] RESOURCE -- CMD [ARGUMENT...]"),
    .help =
        "Stands by until it leads RESOURCE, which one of any number of candidates does at a time; then runs CMD.\n"
        "If the lock is lost it ends CMD's process group, waits for its end and stands by again. If CMD ends by "
        "itself, another candidate leads. REDLOCK_FENCE in CMD's environment is the term, larger than that of any "
        "leader before.\n"
        "Exits with CMD's status, or 69 no quorum for --outage-wait, 78 nodes refuse, 126 or 127 CMD cannot be run, 64 "
        "usage, 70 internal.",
    .purposes = WAIT | LEASE | HOLD,
    DEFAULTS({"renew", "true"}, {"fence", "true"}, {"wait_ms", "-1"}, {"outage_wait_ms", "-1"}),
    FLAGS(&kill_flag, &listen_flag, &quiet_flag, &verbose_flag),
    .main = stand_for_leader};
