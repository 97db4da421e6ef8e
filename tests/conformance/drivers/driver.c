/* driver.c - the face C of the conformance suite: one JSON message a line, as tests/conformance/README.md says. */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <redlock.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef RL_TEST_BUILD
#include "mutant.h"
#endif

enum { CLIENTS_MAX = 64, TEXT_MAX = 65536 };

struct client {
  char name[64];
  redlock_client *handle;
};

struct lock {
  char name[64];
  redlock_lock *handle;
  redlock_client *client;
  double t0_ms;      /* before the operation was started */
  json_t *wait_id;   /* who waits for it; NULL if nobody */
  double wait_until; /* when that one has waited long enough */
};

static struct client clients[CLIENTS_MAX];
static struct lock *locks;
static int client_count, lock_count, lock_room;
static const char *line_problem; /* why the message is malformed */

static double now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static json_t *malformed(const char *format, ...)
{
  static char words[256];
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  line_problem = words;
  return NULL;
}

static json_t *status_reply(int status)
{
  return json_pack("{s:s}", "status", redlock_status_name(status));
}

static void set_text(json_t *reply, const char *key, const char *text, int64_t length)
{
  json_t *value = json_stringn(text, length < 0 ? 0 : (size_t)length);
  json_object_set_new(reply, key, value != NULL ? value : json_string("(no UTF-8)"));
}

static json_t *client_reply(redlock_client *client, int status)
{
  static char text[TEXT_MAX];
  json_t *reply = status_reply(status);
  if (status != REDLOCK_OK)
    set_text(reply, "message", text, redlock_client_message(client, text, sizeof text));
  return reply;
}

static json_t *lock_reply(struct lock *lock, int status)
{
  static char text[TEXT_MAX];
  json_t *reply = status_reply(status);
  set_text(reply, "message", text, redlock_lock_message(lock->handle, text, sizeof text));
  return reply;
}

static json_t *votes(struct lock *lock)
{
  char words[512];
  json_t *list = json_array();
  for (int i = 0; i < redlock_client_node_count(lock->client); i++) {
    int64_t length = redlock_lock_answer(lock->handle, i, REDLOCK_ANSWER_WORDS, words, sizeof words);
    json_array_append_new(list, json_stringn_nocheck(words, (size_t)length));
  }
  return list;
}

/* What an operation on a lock came to. */
static json_t *result(struct lock *lock, int status)
{
  char token[64];
  json_t *reply = lock_reply(lock, status);
  json_object_set_new(reply, "t0_ms", json_real(lock->t0_ms));
  json_object_set_new(reply, "validity_ms", json_integer(redlock_lock_validity_ms(lock->handle)));
  set_text(reply, "token", token, redlock_lock_token(lock->handle, token, sizeof token));
  json_object_set_new(reply, "votes", votes(lock));
  return reply;
}

/* ---- fields of a message ---------------------------------------------------------------------------------------- */

static const char *text_of(json_t *message, const char *key)
{
  const char *text = json_string_value(json_object_get(message, key));
  if (text == NULL)
    malformed("\"%s\" is missing or no text", key);
  return text;
}

static int64_t number_of(json_t *message, const char *key, int64_t otherwise)
{
  json_t *value = json_object_get(message, key);
  return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static json_t *options_of(json_t *message)
{
  json_t *options = json_object_get(message, "options");
  return json_is_object(options) ? options : malformed("\"options\" is missing or no object");
}

static char *bytes_of(json_t *message, const char *key, size_t *size)
{
  json_t *value = json_object_get(message, key);
  const char *hex = json_string_value(json_object_get(value, "hex"));
  const char *text = json_string_value(value);
  if (hex == NULL && text == NULL) {
    malformed("\"%s\" is missing, or neither a text nor {\"hex\": ...}", key);
    return NULL;
  }
  if (hex != NULL && (strlen(hex) % 2 != 0 || hex[strspn(hex, "0123456789abcdefABCDEF")] != '\0')) {
    malformed("\"%s\": \"%.40s\" is no hexadecimal", key, hex);
    return NULL;
  }
  *size = hex != NULL ? strlen(hex) / 2 : json_string_length(value);
  char *bytes = calloc(1, *size + 1);
  if (hex == NULL)
    memcpy(bytes, text, *size);
  for (size_t i = 0; hex != NULL && i < *size; i++)
    sscanf(hex + 2 * i, "%2hhx", (unsigned char *)bytes + i);
  return bytes;
}

static struct client *client_of(json_t *message)
{
  const char *name = text_of(message, "client");
  for (int i = 0; name != NULL && i < client_count; i++)
    if (strcmp(clients[i].name, name) == 0)
      return &clients[i];
  if (name != NULL)
    malformed("there is no client \"%s\"", name);
  return NULL;
}

static struct lock *lock_of(json_t *message)
{
  const char *name = text_of(message, "lock");
  for (int i = 0; name != NULL && i < lock_count; i++)
    if (strcmp(locks[i].name, name) == 0)
      return &locks[i];
  if (name != NULL)
    malformed("there is no lock \"%s\"", name);
  return NULL;
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static json_t *do_hello(json_t *message)
{
  (void)message;
  return json_pack("{s:s, s:s, s:i, s:s, s:[s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s]}", "face", "c", "version",
                   redlock_version(), "pid", (int)getpid(), "cancel", "command", "can", "lock", "acquire", "start",
                   "wait", "extend", "release", "state", "validity", "detach", "adopt", "cancel", "fork", "exit",
                   "status", "describe", "renew", "nul");
}

static json_t *do_client(json_t *message)
{
  const char *name = text_of(message, "client");
  json_t *options = options_of(message), *value;
  const char *option;
  if (name == NULL || options == NULL)
    return NULL;
  if (client_count == CLIENTS_MAX)
    return malformed("there are %d clients already", CLIENTS_MAX);
  redlock_client *handle = redlock_client_new();
  int status = REDLOCK_OK;
  json_object_foreach(options, option, value)
    if (status == REDLOCK_OK)
      status = redlock_client_set(handle, option, json_is_string(value) ? json_string_value(value) : "");
  if (status == REDLOCK_OK)
    status = redlock_client_open(handle);
  json_t *reply = client_reply(handle, status);
  if (status != REDLOCK_OK) {
    redlock_client_free(handle);
    return reply;
  }
  struct client *client = &clients[client_count++];
  snprintf(client->name, sizeof client->name, "%s", name);
  client->handle = handle;
  return reply;
}

static struct lock *new_lock(json_t *message, int *status)
{
  const char *name = text_of(message, "lock"), *option;
  struct client *client = client_of(message);
  json_t *options = options_of(message), *value;
  size_t size;
  if (name == NULL || client == NULL || options == NULL)
    return NULL;
  char *resource = bytes_of(message, "resource", &size);
  if (resource == NULL)
    return NULL;
  if (lock_count == lock_room)
    locks = realloc(locks, (lock_room = 2 * lock_room + 64) * sizeof *locks);
  struct lock *lock = &locks[lock_count++];
  *lock = (struct lock){0};
  snprintf(lock->name, sizeof lock->name, "%s", name);
  lock->client = client->handle;
  lock->handle = redlock_lock_new(client->handle, resource, size);
  free(resource);
  *status = redlock_lock_state(lock->handle) == REDLOCK_STATE_INVALID ? REDLOCK_INVALID : REDLOCK_OK;
  json_object_foreach(options, option, value)
    if (*status == REDLOCK_OK)
      *status = redlock_lock_set(lock->handle, option, json_is_string(value) ? json_string_value(value) : "");
  return lock;
}

static json_t *do_lock(json_t *message)
{
  int status;
  struct lock *lock = new_lock(message, &status);
  return lock != NULL ? lock_reply(lock, status) : NULL;
}

static json_t *do_adopt(json_t *message)
{
  const char *token = text_of(message, "token");
  int status;
  struct lock *lock = token != NULL ? new_lock(message, &status) : NULL;
  if (lock == NULL)
    return NULL;
  return lock_reply(lock, status == REDLOCK_OK ? redlock_lock_adopt(lock->handle, token) : status);
}

static json_t *do_acquire(json_t *message)
{
  struct lock *lock = lock_of(message);
  if (lock == NULL)
    return NULL;
  lock->t0_ms = now_ms();
  return result(lock, redlock_lock_acquire(lock->handle, number_of(message, "wait_ms", -2)));
}

static json_t *do_extend(json_t *message)
{
  struct lock *lock = lock_of(message);
  if (lock == NULL)
    return NULL;
  lock->t0_ms = now_ms();
  return result(lock, redlock_lock_extend(lock->handle, number_of(message, "ttl_ms", 0)));
}

static json_t *do_release(json_t *message)
{
  struct lock *lock = lock_of(message);
  if (lock == NULL)
    return NULL;
  lock->t0_ms = now_ms();
  return result(lock, redlock_lock_release(lock->handle));
}

static json_t *do_start(json_t *message)
{
  struct lock *lock = lock_of(message);
  const char *what = text_of(message, "what");
  if (lock == NULL || what == NULL)
    return NULL;
  int operation = strcmp(what, "acquire") == 0 ? REDLOCK_ACQUIRE : strcmp(what, "extend") == 0 ? REDLOCK_EXTEND
                : strcmp(what, "release") == 0 ? REDLOCK_RELEASE : 0;
  if (operation == 0)
    return malformed("\"what\": \"%s\" is none of acquire, extend, release", what);
  lock->t0_ms = now_ms();
  return lock_reply(lock, redlock_lock_start(lock->handle, operation, number_of(message, "arg", 0)));
}

/* The reply comes when the operation has ended, see answer_waiting. */
static json_t *do_wait(json_t *message)
{
  struct lock *lock = lock_of(message);
  if (lock == NULL)
    return NULL;
  int64_t limit_ms = number_of(message, "limit_ms", -1);
  json_decref(lock->wait_id);
  lock->wait_id = json_incref(json_object_get(message, "id"));
  lock->wait_until = limit_ms < 0 ? 1e300 : now_ms() + limit_ms;
  return NULL;
}

static json_t *do_cancel(json_t *message)
{
  struct lock *lock = lock_of(message);
  return lock != NULL ? status_reply(redlock_lock_cancel(lock->handle)) : NULL;
}

static json_t *do_state(json_t *message)
{
  struct lock *lock = lock_of(message);
  char token[64];
  if (lock == NULL)
    return NULL;
  int state = redlock_lock_state(lock->handle);
  const char *word = state == REDLOCK_STATE_HELD ? "HELD" : state == REDLOCK_STATE_LOST ? "LOST" : "FREE";
  json_t *reply = json_pack("{s:s, s:s}", "status", "OK", "state", word);
  set_text(reply, "token", token, redlock_lock_token(lock->handle, token, sizeof token));
  return reply;
}

static json_t *do_validity(json_t *message)
{
  struct lock *lock = lock_of(message);
  if (lock == NULL)
    return NULL;
  double t0_ms = now_ms();
  return json_pack("{s:s, s:f, s:I}", "status", "OK", "t0_ms", t0_ms, "validity_ms",
                   (json_int_t)redlock_lock_validity_ms(lock->handle));
}

static json_t *do_detach(json_t *message)
{
  struct lock *lock = lock_of(message);
  if (lock == NULL)
    return NULL;
  return result(lock, redlock_lock_detach(lock->handle));
}

/* A new handle asks, so that a lock in use is left alone. */
static json_t *do_status(json_t *message)
{
  struct client *client = client_of(message);
  size_t size;
  char *resource = client != NULL ? bytes_of(message, "resource", &size) : NULL;
  if (resource == NULL)
    return NULL;
  struct lock probe = {.client = client->handle, .handle = redlock_lock_new(client->handle, resource, size)};
  free(resource);
  int status = redlock_lock_start(probe.handle, REDLOCK_INSPECT, 0);
  if (status == REDLOCK_OK)
    while ((status = redlock_lock_wait(probe.handle, -1)) == REDLOCK_PENDING)
      continue;
  json_t *reply = result(&probe, status == REDLOCK_BUSY ? REDLOCK_OK : status);
  const char *verdict = status == REDLOCK_OK ? "free" : status == REDLOCK_BUSY ? "held" : "unknown";
  json_object_set_new(reply, "verdict", json_string(verdict));
  redlock_lock_free(probe.handle);
  return reply;
}

static json_t *do_describe(json_t *message)
{
  static char text[TEXT_MAX];
  struct client *client = client_of(message);
  if (client == NULL)
    return NULL;
  redlock_client_describe(client->handle, text, sizeof text);
  return json_pack("{s:s, s:o}", "status", "OK", "describe", json_loads(text, 0, NULL));
}

static json_t *do_fork(json_t *message);
static json_t *do_exit(json_t *message);

static const struct {
  const char *name;
  json_t *(*run)(json_t *message);
} commands[] = {
    {"hello", do_hello},       {"client", do_client},   {"lock", do_lock},     {"adopt", do_adopt},
    {"acquire", do_acquire},   {"extend", do_extend},   {"release", do_release}, {"start", do_start},
    {"wait", do_wait},         {"cancel", do_cancel},   {"state", do_state},   {"validity", do_validity},
    {"detach", do_detach},     {"status", do_status},   {"describe", do_describe}, {"fork", do_fork},
    {"exit", do_exit},
};

static json_t *run(json_t *message)
{
  const char *name = text_of(message, "do");
  for (size_t i = 0; name != NULL && i < sizeof commands / sizeof *commands; i++)
    if (strcmp(commands[i].name, name) == 0)
      return commands[i].run(message);
  return name != NULL ? malformed("there is no command \"%s\"", name) : NULL;
}

static void send_line(FILE *out, json_t *reply)
{
  json_dumpf(reply, out, JSON_COMPACT);
  putc('\n', out);
  fflush(out);
  json_decref(reply);
}

/* The child works through its commands, writes the list of replies and is gone without any cleaning up. */
static void be_child(json_t *list, int out_fd)
{
  FILE *out = fdopen(out_fd, "w");
  json_t *replies = json_array(), *message;
  size_t i;
  json_array_foreach(list, i, message) {
    json_t *reply = run(message);
    json_array_append_new(replies, reply != NULL ? reply : json_pack("{s:s}", "malformed", line_problem));
  }
  send_line(out, replies);
  _exit(0);
}

static json_t *do_fork(json_t *message)
{
  json_t *list = json_object_get(message, "commands");
  int ends[2];
  if (!json_is_array(list))
    return malformed("\"commands\" is missing or no list");
  if (pipe(ends) != 0)
    return malformed("pipe: %s", strerror(errno));
  pid_t child = fork();
  if (child == 0)
    be_child(list, ends[1]);
  close(ends[1]);
  FILE *in = fdopen(ends[0], "r");
  json_t *replies = json_loadf(in, 0, NULL);
  fclose(in);
  int how;
  waitpid(child, &how, 0);
  if (replies == NULL)
    return malformed("the child ended with %d and gave no replies", how);
  return json_pack("{s:s, s:o}", "status", "OK", "replies", replies);
}

static void leave(void)
{
  for (int i = 0; i < lock_count; i++)
    redlock_lock_free(locks[i].handle);
  for (int i = 0; i < client_count; i++)
    redlock_client_free(clients[i].handle);
}

static json_t *do_exit(json_t *message)
{
  const char *mode = text_of(message, "mode");
  if (mode == NULL)
    return NULL;
  if (strcmp(mode, "hard") == 0)
    _exit(9);
  if (strcmp(mode, "normal") != 0)
    return malformed("\"mode\": \"%s\" is neither normal nor hard", mode);
  for (int i = 0; i < client_count; i++) /* as a C program leaves: the locks that are held go with the client */
    redlock_client_free(clients[i].handle);
  exit(0);
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

static void take_line(const char *line, int number)
{
  json_error_t error;
  json_t *message = json_loads(line, 0, &error);
  line_problem = NULL;
  if (message == NULL)
    malformed("%s", error.text);
  else if (!json_is_object(message))
    malformed("not an object");
  json_t *reply = json_is_object(message) ? run(message) : NULL;
  if (reply == NULL && line_problem != NULL)
    reply = json_pack("{s:i, s:s}", "line", number, "malformed", line_problem);
  if (reply != NULL) {
    json_t *id = json_object_get(message, "id");
    json_object_set(reply, "id", id != NULL ? id : json_null());
    send_line(stdout, reply);
  }
  json_decref(message);
}

static bool read_lines(void)
{
  static char *buffer;
  static size_t used, room;
  static int number;
  if (room - used < TEXT_MAX)
    buffer = realloc(buffer, room = used + 4 * TEXT_MAX);
  ssize_t got = read(STDIN_FILENO, buffer + used, room - used - 1);
  if (got <= 0)
    return got < 0 && errno == EINTR;
  used += (size_t)got;
  char *line = buffer, *end;
  while ((end = memchr(line, '\n', used - (size_t)(line - buffer))) != NULL) {
    *end = '\0';
    take_line(line, ++number);
    line = end + 1;
  }
  used -= (size_t)(line - buffer);
  memmove(buffer, line, used);
  return true;
}

static void answer_waiting(void)
{
  for (struct lock *lock = locks; lock < locks + lock_count; lock++) {
    int status = lock->wait_id != NULL ? redlock_lock_status(lock->handle) : REDLOCK_PENDING;
    if (lock->wait_id == NULL || (status == REDLOCK_PENDING && now_ms() < lock->wait_until))
      continue;
    json_t *reply = result(lock, status);
    json_object_set_new(reply, "id", lock->wait_id);
    lock->wait_id = NULL;
    send_line(stdout, reply);
  }
}

static int pause_ms(void)
{
  double first = 1e300, now = now_ms();
  for (struct lock *lock = locks; lock < locks + lock_count; lock++)
    if (lock->wait_id != NULL && lock->wait_until < first)
      first = lock->wait_until;
  return first > now + 1e6 ? -1 : first > now ? (int)(first - now) + 1 : 0;
}

/* Started operations move by the clients' descriptors alone. */
static bool turn(void)
{
  struct pollfd wanted[CLIENTS_MAX + 1] = {{.fd = STDIN_FILENO, .events = POLLIN}};
  uint64_t tag;
  for (int i = 0; i < client_count; i++)
    wanted[i + 1] = (struct pollfd){.fd = redlock_client_fd(clients[i].handle), .events = POLLIN};
  int watched = client_count;
  poll(wanted, (nfds_t)watched + 1, pause_ms());
  for (int i = 0; i < watched; i++)
    if (wanted[i + 1].revents != 0) {
      redlock_client_process(clients[i].handle);
      while (redlock_client_next(clients[i].handle, &tag) == 1)
        continue;
    }
  answer_waiting();
  return wanted[0].revents == 0 || read_lines();
}

int main(void)
{
#ifdef RL_TEST_BUILD
  const char *mutant = getenv("REDLOCK_TEST_MUTANT");
  rl_test_mutant = mutant != NULL ? atoi(mutant) : 0;
#endif
  while (turn())
    continue;
  leave();
  return 0;
}
