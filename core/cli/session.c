/* session.c - one client with one lock, driven by one loop that also hears signals. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* What the kernel raises for a fault of this very process can not be waited for. */
static const int faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGKILL};
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
  sigdelset(&session->watched, SIGPIPE); /* that nobody reads what is written is told by the write itself */
  session->signal_fd = signalfd(-1, &session->watched, SFD_CLOEXEC | SFD_NONBLOCK);
  return session->signal_fd >= 0 ? 0 : fail(EXIT_INTERNAL, "signalfd: %s", strerror(errno));
}

static int refuse(const char *flag, char *message)
{
  int code = *flag != '\0' ? fail(EXIT_USAGE, "%s: %s", flag, message) : fail(EXIT_USAGE, "%s", message);
  free(message);
  return code;
}

static int set_nodes(struct session *session)
{
  const char *from = session->args->nodes != NULL ? "--node" : "REDLOCK_NODES";
  const char *nodes = session->args->nodes != NULL ? session->args->nodes : getenv("REDLOCK_NODES");
  if (nodes == NULL || *nodes == '\0')
    return fail(EXIT_USAGE, "no nodes are named; give --node redis://host:port once for each node, or set "
                            "REDLOCK_NODES=redis://host:port,redis://host:port,redis://host:port");
  if (redlock_client_set(session->client, "nodes", nodes) == REDLOCK_OK)
    return 0;
  return refuse(from, client_message(session->client));
}

static int set_options(struct session *session)
{
  const struct args *args = session->args;
  const struct option_default *mine = args->command->defaults;
  for (; mine != NULL && mine->option != NULL; mine++)
    if (redlock_client_set(session->client, mine->option, mine->value) != REDLOCK_OK)
      return refuse(mine->option, client_message(session->client));
  for (size_t i = 0; i < args->setting_count; i++)
    if (redlock_client_set(session->client, args->settings[i].option, args->settings[i].value) != REDLOCK_OK)
      return refuse(args->settings[i].flag, client_message(session->client));
  return 0;
}

static int open_client(struct session *session)
{
  session->client = must(redlock_client_new());
  int refused = set_nodes(session);
  if (!refused)
    refused = set_options(session);
  if (refused)
    return refused;
  int status = redlock_client_open(session->client);
  if (status == REDLOCK_OK)
    return 0;
  char *message = client_message(session->client);
  int code = fail(exit_code_of(session->args, status), "%s", message);
  free(message);
  return code;
}

static int open_lock(struct session *session)
{
  const char *resource = session->args->resource;
  session->lock = must(redlock_lock_new(session->client, resource, strlen(resource)));
  if (redlock_lock_state(session->lock) != REDLOCK_STATE_INVALID)
    return 0;
  return refuse("", lock_message(session->lock));
}

int session_open(struct session *session, const struct args *args)
{
  *session = (struct session){.args = args, .signal_fd = -1};
  int refused = open_client(session);
  if (!refused)
    refused = open_lock(session);
  if (!refused)
    refused = watch_signals(session);
  return refused;
}

/* The next signal that arrived, 0 if none. */
int session_signal(struct session *session)
{
  struct signalfd_siginfo info;
  return read(session->signal_fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

void session_poll(struct session *session, int limit_ms)
{
  struct pollfd wanted[] = {{.fd = redlock_client_fd(session->client), .events = POLLIN},
                            {.fd = session->signal_fd, .events = POLLIN}};
  poll(wanted, 2, limit_ms);
  redlock_client_process(session->client);
  uint64_t tag;
  while (redlock_client_next(session->client, &tag) == 1)
    continue;
}

int64_t now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_settled(json_t *node)
{
  const char *state = json_string_value(json_object_get(node, "state"));
  bool rests = strcmp(state, "ready") == 0 || strcmp(state, "down") == 0 || strcmp(state, "refused") == 0;
  return rests && json_integer_value(json_object_get(node, "owed")) == 0;
}

/* Does every node that can be reached have its connection, and has it answered everything? */
static bool all_settled(const struct session *session)
{
  char *text = client_description(session->client);
  json_t *client = must(json_loads(text, 0, NULL)), *node;
  bool settled = true;
  size_t i;
  json_array_foreach (json_object_get(client, "nodes"), i, node)
    settled = settled && is_settled(node);
  json_decref(client);
  free(text);
  return settled;
}

/* A majority is enough to go on, but who leaves at once leaves out the nodes that are a little slower: they would lack
 * the lock, and one on a bare majority survives no failure, or they would keep a key that was released. So they are
 * awaited for as long as leaving may take. */
void session_settle(struct session *session)
{
  char limit_ms[32];
  redlock_client_get(session->client, "exit_drain_ms", limit_ms, sizeof limit_ms);
  int64_t end_ms = now_ms() + strtoll(limit_ms, NULL, 10);
  for (int64_t now = now_ms(); now < end_ms && !all_settled(session); now = now_ms())
    session_poll(session, (int)(end_ms - now));
}

/* A signal that arrives first wins, so what was granted meanwhile is not handed to anybody. */
int session_operate(struct session *session, int operation, int64_t arg)
{
  int status = redlock_lock_start(session->lock, operation, arg);
  if (status != REDLOCK_OK)
    return status;
  while ((session->caught = session_signal(session)) == 0) {
    status = redlock_lock_status(session->lock);
    if (status != REDLOCK_PENDING)
      return status;
    session_poll(session, -1);
  }
  redlock_lock_cancel(session->lock);
  return REDLOCK_CANCELLED;
}

int session_take(struct session *session, int operation, int64_t arg)
{
  int status = session_operate(session, operation, arg);
  if (status != REDLOCK_OK)
    return status;
  session_settle(session);
  session->caught = session_signal(session);
  if (session->caught != 0)
    return REDLOCK_CANCELLED;
  return redlock_lock_state(session->lock) == REDLOCK_STATE_HELD ? REDLOCK_OK : REDLOCK_LOST;
}

/* Ends as CMD or the caught signal would have it, so that a shell sees the same. */
void die_by(int signal_number)
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
  redlock_lock_free(session->lock);
  if (session->client != NULL)
    (void)redlock_client_drain(session->client, -1);
  redlock_client_free(session->client);
  if (session->caught == 0)
    return exit_code;
  die_by(session->caught);
  return 128 + session->caught;
}
