/* session.c - one client with one lock, driven by one loop that also handles signals. */
#include "cli.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Synchronous fault signals cannot be handled through signalfd. SIGABRT can: abort() unblocks it. */
static const int faults[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGKILL};
static const int harmless[] = {SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};

static bool is_among(int number, const int *list, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (list[i] == number)
      return true;
  return false;
}

static bool terminates(int number)
{
  return !is_among(number, faults, sizeof faults / sizeof *faults) &&
         !is_among(number, harmless, sizeof harmless / sizeof *harmless);
}

static bool is_ignored(int number)
{
  struct sigaction action;
  return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* A signal that was ignored when redlock was started (nohup) stays ignored, for CMD too. */
static int watch_signals(struct session *session)
{
  sigemptyset(&session->watched);
  for (int number = 1; number <= SIGRTMAX; number++)
    if (terminates(number) && !is_ignored(number))
      sigaddset(&session->watched, number);
  sigprocmask(SIG_BLOCK, &session->watched, &session->mask_before);
  sigdelset(&session->watched, SIGPIPE); /* the write itself reports that there is no reader */
  session->signal_fd = signalfd(-1, &session->watched, SFD_CLOEXEC | SFD_NONBLOCK);
  return session->signal_fd >= 0 ? 0 : fail_errno("signalfd");
}

/* Created first: without it no answer and no deadline would be noticed. */
static int open_descriptor(struct session *session)
{
  session->client_fd = redlock_client_fd(session->client);
  if (session->client_fd >= 0)
    return 0;
  char *message = client_message(session->client);
  int code = fail_of_system(message);
  free(message);
  return code;
}

static int open_client(struct session *session)
{
  session->client = must(redlock_client_new());
  int refused = options_set(session->client, session->args);
  if (refused)
    return refused;
  bool looks = session->args->command->only_looks;
  int status = looks ? redlock_client_open_to_look(session->client) : redlock_client_open(session->client);
  if (status == REDLOCK_OK) {
    say_warnings(session);
    return open_descriptor(session);
  }
  if (status == REDLOCK_INVALID)
    return refuse_options(session->args, client_message_parts(session->client));
  return fail_message(exit_code_of(session->args, status), session->client, "");
}

/* An option on the command line must be supported; one in a file may not fit all locks. */
static int set_fence(struct session *session)
{
  const struct setting *fence = settings_find(&session->args->from_flags, "fence");
  if (fence == NULL)
    return REDLOCK_OK;
  (void)redlock_lock_set(session->lock, "fence", fence->value);
  return redlock_lock_check(session->lock);
}

static int open_lock(struct session *session)
{
  const char *resource = session->args->resource;
  session->lock = must(redlock_lock_new(session->client, resource, strlen(resource)));
  int status = redlock_lock_state(session->lock) == REDLOCK_STATE_INVALID ? REDLOCK_INVALID : REDLOCK_OK;
  for (int i = 0; status == REDLOCK_OK && i < session->args->more_count; i++)
    status = redlock_lock_add(session->lock, session->args->more[i], strlen(session->args->more[i]));
  if (status == REDLOCK_OK)
    status = set_fence(session);
  if (status == REDLOCK_OK)
    return 0;
  return refuse_options(session->args, lock_message_parts(session->lock));
}

int session_open(struct session *session, const struct args *args)
{
  *session = (struct session){.args = args, .client_fd = -1, .signal_fd = -1};
  int refused = open_client(session);
  if (!refused)
    refused = open_lock(session);
  if (!refused)
    refused = watch_signals(session);
  return refused;
}

/* The first letter of a line counts; its end, and a signal, end the reading. */
bool session_agrees(struct session *session)
{
  struct pollfd wanted[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = session->signal_fd, .events = POLLIN}};
  char first = '\0', byte = '\0';
  fputs(" [y/N] ", stderr);
  fflush(stderr);
  while (byte != '\n') {
    poll(wanted, 2, -1);
    session->caught = session_signal(session);
    if (session->caught != 0 || read(STDIN_FILENO, &byte, 1) <= 0) {
      fputc('\n', stderr);
      return false;
    }
    first = first == '\0' ? byte : first;
  }
  return first == 'y' || first == 'Y';
}

/* The next signal that arrived, 0 if none. */
int session_signal(struct session *session)
{
  struct signalfd_siginfo info;
  return read(session->signal_fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

void session_poll(struct session *session, int limit_ms)
{
  struct pollfd wanted[] = {{.fd = session->client_fd, .events = POLLIN}, {.fd = session->signal_fd, .events = POLLIN}};
  poll(wanted, 2, limit_ms);
  redlock_client_process(session->client);
  uint64_t tag;
  while (redlock_client_next(session->client, &tag) == 1)
    continue;
}

void session_pause(struct session *session, int64_t end_ms)
{
  for (int64_t now = redlock_now_ms(); session->caught == 0 && now < end_ms; now = redlock_now_ms()) {
    session_poll(session, (int)(end_ms - now));
    session->caught = session_signal(session);
  }
}

int64_t session_option_ms(const struct session *session, const char *option)
{
  return client_option_ms(session->client, option);
}

void lock_settle_until(redlock_lock *lock, int64_t end_ms)
{
  int64_t left_ms;
  do { /* a signal that is not blocked ends the wait early */
    left_ms = end_ms - redlock_now_ms();
  } while (left_ms > 0 && redlock_lock_settle(lock, left_ms) == REDLOCK_PENDING);
}

/* A majority is enough to continue, but exiting at once would leave out the slower nodes: they would lack the lock, and
 * one on a bare majority tolerates no failure, or they would keep a released key. So they get as long as closing the
 * client may take. */
void session_settle(struct session *session)
{
  if (session->leave_by_ms == 0)
    session->leave_by_ms = redlock_now_ms() + session_option_ms(session, "exit_drain_ms");
  lock_settle_until(session->lock, session->leave_by_ms);
}

void session_settle_first(struct session *session)
{
  int64_t limit_ms = session_option_ms(session, "exit_drain_ms"), now = redlock_now_ms();
  session->leave_by_ms = now + limit_ms;
  lock_settle_until(session->lock, now + limit_ms / 2);
}

/* Nodes that have not answered by now have had their time, unless the client still has deletes to send them. */
static int64_t drain_limit_ms(const struct session *session)
{
  int state = redlock_lock_state(session->lock);
  if (session->leave_by_ms == 0 || state == REDLOCK_STATE_HELD || state == REDLOCK_STATE_LOST)
    return -1;
  int64_t left_ms = session->leave_by_ms - redlock_now_ms();
  return left_ms > 0 ? left_ms : 0;
}

/* A signal that arrives first wins: a lock granted meanwhile is released. */
int session_await(struct session *session, redlock_lock *lock, int64_t limit_ms)
{
  int64_t end_ms = redlock_now_ms() + limit_ms;
  while ((session->caught = session_signal(session)) == 0) {
    int status = redlock_lock_status(lock);
    int64_t left_ms = limit_ms < 0 ? -1 : end_ms - redlock_now_ms();
    if (status != REDLOCK_PENDING || (limit_ms >= 0 && left_ms <= 0))
      return status;
    session_poll(session, (int)left_ms);
  }
  redlock_lock_cancel(lock);
  return REDLOCK_CANCELLED;
}

int session_inspect(struct session *session)
{
  return session_operate(session, session->lock, REDLOCK_INSPECT, -1);
}

int session_inspect_all(struct session *session, redlock_lock *const *locks, int count)
{
  int status = REDLOCK_OK;
  for (int i = 0; i < count && status == REDLOCK_OK; i++)
    status = redlock_lock_start(locks[i], REDLOCK_INSPECT, 0);
  for (int i = 0; i < count && status == REDLOCK_OK; i++)
    status = session_await(session, locks[i], -1) == REDLOCK_CANCELLED ? REDLOCK_CANCELLED : REDLOCK_OK;
  return status;
}

int session_operate(struct session *session, redlock_lock *lock, int operation, int64_t limit_ms)
{
  int status = redlock_lock_start(lock, operation, 0);
  if (status == REDLOCK_OK)
    status = session_await(session, lock, limit_ms);
  if (status != REDLOCK_PENDING)
    return status;
  redlock_lock_cancel(lock);
  return REDLOCK_CANCELLED;
}

static void say_waiting(struct session *session)
{
  int64_t wait_ms = session_option_ms(session, "wait_ms"), busy_wait_ms = session->busy_wait_ms;
  if (busy_wait_ms > 0 && (busy_wait_ms < wait_ms || wait_ms < 0))
    wait_ms = busy_wait_ms;
  char *wait = duration_text(wait_ms);
  char *more = wait_ms < 0 ? format("waiting without limit") : format("waiting for up to %s", wait);
  holder_say(session, more);
  free(more);
  free(wait);
}

static void say_waited(struct session *session, int status)
{
  char *waited = duration_words(session->waited_ms);
  char *more = format("waited %s", waited);
  if (status == REDLOCK_OK)
    fail(0, "acquired the lock after %s", waited);
  else if (status == REDLOCK_BUSY)
    holder_say(session, more);
  free(more);
  free(waited);
}

static bool can_grant(int vote)
{
  return vote == REDLOCK_OK || vote == REDLOCK_BUSY || vote == REDLOCK_PENDING || vote == REDLOCK_NOT_HELD;
}

/* The reason of the wait, if too few nodes vote. */
static void say_why(struct session *session)
{
  int nodes = redlock_client_node_count(session->client), voters = 0;
  for (int i = 0; i < nodes; i++)
    voters += can_grant(redlock_lock_vote(session->lock, i));
  char *message = lock_message(session->lock), *name = escaped(session->args->resource);
  if (voters <= nodes / 2 && *message && !session->args->quiet)
    fail(0, "\"%s\" waits: %s", name, message);
  free(name);
  free(message);
}

/* Waits for up to limit_ms; if the lock is still not granted, says why. */
static int await_and_say(struct session *session, int status, int64_t limit_ms, void (*say)(struct session *))
{
  if (status != REDLOCK_PENDING)
    return status;
  status = session->caught ? REDLOCK_CANCELLED : session_await(session, session->lock, limit_ms);
  if (status == REDLOCK_PENDING && say != NULL)
    say(session);
  return status;
}

static bool is_vote_of_most(const struct session *session, int vote)
{
  int nodes = redlock_client_node_count(session->client), votes = 0;
  for (int i = 0; i < nodes; i++)
    votes += redlock_lock_vote(session->lock, i) == vote;
  return votes > nodes / 2;
}

/* A wait for others may end earlier than one for nodes that do not vote: then the last attempt's result counts. */
static int await_the_end(struct session *session, int status, int64_t begun_ms)
{
  enum { AGAIN_MS = 200 };
  int64_t limit_ms = session->busy_wait_ms;
  bool is_limited = limit_ms > 0;
  for (int64_t left_ms = begun_ms + limit_ms - redlock_now_ms(); is_limited && status == REDLOCK_PENDING;
       left_ms = AGAIN_MS) {
    status = await_and_say(session, status, left_ms > 0 ? left_ms : 0, NULL);
    if (status != REDLOCK_PENDING || !is_vote_of_most(session, REDLOCK_BUSY))
      continue;
    redlock_lock_cancel(session->lock);
    (void)await_and_say(session, REDLOCK_PENDING, -1, NULL);
    return session->caught ? REDLOCK_CANCELLED : session_operate(session, session->lock, REDLOCK_ACQUIRE, -1);
  }
  return await_and_say(session, status, -1, NULL);
}

/* With --verbose, reports a wait for a lock that is not granted at once; always, that too few nodes vote. */
int session_acquire(struct session *session)
{
  enum { GUARD_MS = 150, AT_ONCE_MS = 300, TELL_MS = 1000 };
  int64_t begun_ms = redlock_now_ms();
  bool tells = session->args->verbose;
  int status = redlock_lock_start(session->lock, REDLOCK_ACQUIRE, -2);
  if (status == REDLOCK_OK)
    status = REDLOCK_PENDING;
  status = await_and_say(session, status, GUARD_MS, NULL);
  bool is_told = status == REDLOCK_PENDING && is_vote_of_most(session, REDLOCK_QUARANTINED) && say_warnings(session);
  if (tells)
    status = await_and_say(session, status, AT_ONCE_MS - GUARD_MS, say_waiting);
  status = await_and_say(session, status, TELL_MS - (tells ? AT_ONCE_MS : GUARD_MS), is_told ? NULL : say_why);
  status = await_the_end(session, status, begun_ms);
  session->waited_ms = redlock_now_ms() - begun_ms;
  if (tells)
    say_waited(session, status);
  return status;
}

int session_confirm(struct session *session, int status)
{
  if (status != REDLOCK_OK)
    return status;
  session_settle(session);
  if (session->caught == 0)
    session->caught = session_signal(session);
  if (session->caught != 0)
    return REDLOCK_CANCELLED;
  return redlock_lock_state(session->lock) == REDLOCK_STATE_HELD ? REDLOCK_OK : REDLOCK_LOST;
}

/* Ends as CMD did, or by the caught signal, so that a shell sees the same. */
static void die_by(int signal_number)
{
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(signal_number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  raise(signal_number);
  sigprocmask(SIG_UNBLOCK, &only, NULL);
}

int session_close(struct session *session, int exit_code)
{
  if (session->signal_fd >= 0)
    close(session->signal_fd);
  int64_t limit_ms = drain_limit_ms(session);
  redlock_lock_free(session->lock);
  if (session->client != NULL)
    (void)redlock_client_drain(session->client, limit_ms);
  redlock_client_free(session->client);
  if (session->caught == 0)
    return exit_code;
  die_by(session->caught);
  return 128 + session->caught;
}
