/* The clients of this process: one table per PHP thread. */
#include "redlock_internal.h"

#include "zend_smart_str.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define CLIENTS_MAX 64 /* beyond it an idle client makes room, so that changing options can not pile up connections */

ZEND_DECLARE_MODULE_GLOBALS(redlock)

static int compare_texts(const void *a, const void *b)
{
  return zend_binary_strcmp(ZSTR_VAL(*(zend_string *const *)a), ZSTR_LEN(*(zend_string *const *)a),
                            ZSTR_VAL(*(zend_string *const *)b), ZSTR_LEN(*(zend_string *const *)b));
}

/* Adds the parts in order of their bytes, and releases them. */
static void append_sorted(smart_str *out, zend_string **parts, size_t count)
{
  qsort(parts, count, sizeof *parts, compare_texts);
  for (size_t i = 0; i < count; i++) {
    smart_str_append(out, parts[i]);
    smart_str_appendc(out, '\n');
    zend_string_release(parts[i]);
  }
}

static void append_nodes(smart_str *out, zend_string *nodes)
{
  zend_string **parts = safe_emalloc(ZSTR_LEN(nodes) + 1, sizeof *parts, 0);
  size_t count = 0;
  for (const char *at = ZSTR_VAL(nodes), *end = at + ZSTR_LEN(nodes); at <= end;) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    const char *stop = comma ? comma : end;
    while (at < stop && *at == ' ')
      at++;
    parts[count++] = zend_string_init(at, (size_t)(stop - at), 0);
    at = stop + 1;
  }
  append_sorted(out, parts, count);
  efree(parts);
}

/* Those of the client alone: defaults of locks go with each lock, so that they do not make other connections. */
static void append_options(smart_str *out, HashTable *options)
{
  zend_string **parts = safe_emalloc(zend_hash_num_elements(options) + 1, sizeof *parts, 0);
  size_t count = 0;
  zend_string *name;
  zval *value;
  ZEND_HASH_FOREACH_STR_KEY_VAL(options, name, value) {
    zend_string *text;
    if (!redlock_php_is_of_client(ZSTR_VAL(name)))
      continue;
    ZVAL_DEREF(value);
    text = redlock_php_option_text(name, value);
    parts[count++] = zend_strpprintf(0, "%s=%s", ZSTR_VAL(name), ZSTR_VAL(text));
    zend_string_release(text);
  }
  ZEND_HASH_FOREACH_END();
  append_sorted(out, parts, count);
  efree(parts);
}

/* The same nodes and options of clients in any order, in the same process, are the same client. */
static zend_string *table_key(zend_string *nodes, HashTable *options)
{
  smart_str key = {0};
  smart_str_append_long(&key, (zend_long)getpid());
  smart_str_appendc(&key, '\n');
  append_nodes(&key, nodes);
  append_options(&key, options);
  return smart_str_extract(&key);
}

static redlock_client *open_client(zend_string *nodes, HashTable *options)
{
  redlock_client *handle = redlock_client_new();
  int status = REDLOCK_NO_MEMORY;
  if (handle && redlock_php_set_client_options(handle, options)) {
    status = redlock_client_set(handle, "nodes", ZSTR_VAL(nodes)); /* last: those among the options were only read */
    if (status == REDLOCK_OK)
      status = redlock_client_open(handle);
  }
  if (status == REDLOCK_OK)
    return handle;
  if (!EG(exception))
    redlock_php_throw_status(status, handle ? redlock_php_client_message(handle) : zend_strpprintf(0, "out of memory"));
  redlock_client_free(handle);
  return NULL;
}

/* ---- processes ---- */

static int64_t generation = 1;

int64_t redlock_php_generation(void)
{
  return generation;
}

static void count_fork(void)
{
  generation++;
}

bool redlock_php_watch_forks(void)
{
  static bool watches; /* a handler stays for the life of the process, and the code with it (-z nodelete) */
  watches = watches || pthread_atfork(NULL, NULL, count_fork) == 0;
  return watches;
}

/* ---- leaving ---- */

static void *drain_in_thread(void *argument)
{
  native_client *client = argument;
  client->drained = redlock_client_drain(client->handle, client->drain_limit_ms) == REDLOCK_OK;
  return NULL;
}

/* Several clients leave at the same time: each begins before any of them is awaited. */
void redlock_php_begin_drain(native_client *client, int64_t limit_ms)
{
  sigset_t all, kept;
  if (client->drains)
    return;
  redlock_php_leave_table(client);
  client->drain_limit_ms = limit_ms;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &kept); /* handlers belong to PHP's own thread */
  client->drains = pthread_create(&client->drainer, NULL, drain_in_thread, client) == 0;
  pthread_sigmask(SIG_SETMASK, &kept, NULL);
  if (!client->drains)
    drain_in_thread(client);
}

/* False if a node did not answer. */
bool redlock_php_end_drain(native_client *client)
{
  if (client->drains)
    pthread_join(client->drainer, NULL);
  client->drains = false;
  return client->drained;
}

static void end_client(native_client *client)
{
  redlock_php_end_drain(client);
  redlock_client_free(client->handle);
  free(client);
}

void redlock_php_leave_table(native_client *client)
{
  if (!client->key)
    return;
  zend_hash_del(&GLOBAL(clients), client->key);
  zend_string_release(client->key);
  client->key = NULL;
}

/* ---- the table ---- */

static native_client *take_idle_client(void)
{
  native_client *client;
  if (zend_hash_num_elements(&GLOBAL(clients)) < CLIENTS_MAX)
    return NULL;
  ZEND_HASH_FOREACH_PTR(&GLOBAL(clients), client) {
    if (client->users == 0) {
      redlock_php_leave_table(client);
      return client;
    }
  }
  ZEND_HASH_FOREACH_END();
  return NULL;
}

static native_client *find_client(zend_string *key)
{
  native_client *client = zend_hash_find_ptr(&GLOBAL(clients), key);
  if (client)
    client->users++;
  return client;
}

static native_client *add_client(zend_string *key, redlock_client *handle)
{
  native_client *client = calloc(1, sizeof *client), *idle;
  if (!client) {
    redlock_client_free(handle);
    redlock_php_throw_text(REDLOCK_NO_MEMORY, "out of memory");
    return NULL;
  }
  client->handle = handle;
  client->users = 1;
  idle = take_idle_client();
  client->id = ++GLOBAL(last_id);
  client->key = zend_string_init(ZSTR_VAL(key), ZSTR_LEN(key), 1);
  zend_hash_update_ptr(&GLOBAL(clients), client->key, client);
  if (idle)
    end_client(idle);
  return client;
}

void redlock_php_drop_client(native_client *client)
{
  if (--client->users == 0 && !client->key)
    end_client(client);
}

native_client *redlock_php_use_client(zend_string *nodes, HashTable *options)
{
  native_client *client = NULL;
  if (strlen(ZSTR_VAL(nodes)) != ZSTR_LEN(nodes)) {
    redlock_php_throw_text(REDLOCK_INVALID, "nodes must not contain any null bytes");
  } else if (redlock_php_check_options(options)) {
    zend_string *key = table_key(nodes, options);
    client = find_client(key);
    if (!client) {
      redlock_client *handle = open_client(nodes, options);
      client = handle ? add_client(key, handle) : NULL;
    }
    zend_string_release(key);
    if (client && !redlock_php_check_defaults(client->handle, options)) {
      redlock_php_drop_client(client);
      client = NULL;
    }
  }
  return client;
}

void redlock_php_begin_thread(zend_redlock_globals *globals)
{
  memset(globals, 0, sizeof *globals);
  zend_hash_init(&globals->clients, 8, NULL, NULL, 1);
}

void redlock_php_end_thread(zend_redlock_globals *globals)
{
  native_client *client;
  bool several = zend_hash_num_elements(&globals->clients) > 1;
  ZEND_HASH_FOREACH_PTR(&globals->clients, client) {
    zend_string_release(client->key);
    client->key = NULL; /* the table goes as a whole */
    if (several)
      redlock_php_begin_drain(client, -1);
  }
  ZEND_HASH_FOREACH_END();
  ZEND_HASH_FOREACH_PTR(&globals->clients, client) {
    end_client(client);
  }
  ZEND_HASH_FOREACH_END();
  zend_hash_destroy(&globals->clients);
}
