/* The PHP classes over the C library: one table of clients per PHP thread, and handles on locks. */
#include "redlock_native.h"

#include "SAPI.h"
#include "ext/standard/info.h"
#include "php_ini.h"
#include "zend_attributes.h"
#include "zend_exceptions.h"
#include "zend_smart_str.h"

#include <stdlib.h>
#include <unistd.h>

#define CLIENTS_MAX 64 /* beyond it an idle client makes room, so that changing options can not pile up connections */

struct native_client {
  redlock_client *handle;
  zend_string *key; /* NULL once it has left the table */
  uint64_t users;   /* PHP objects and locks */
  int64_t id;
};

struct native_lock {
  redlock_lock *handle;
  native_client *client;
  zend_string *resource;
};

/* Threads of PHP share nothing, and a native client has one list of ended operations, one of events and one drain: so
 * each thread has clients of its own. Without threads there is one table for the process. */
ZEND_BEGIN_MODULE_GLOBALS(redlock)
  HashTable clients;
  int64_t last_id;
ZEND_END_MODULE_GLOBALS(redlock)

static ZEND_DECLARE_MODULE_GLOBALS(redlock)
#define GLOBAL(name) ZEND_MODULE_GLOBALS_ACCESSOR(redlock, name)

/* ---- texts -------------------------------------------------------------------------------------------------- */

/* Reads a text of any length: CALL copies into (buf, size) and returns the full length. */
#define READ_TEXT(result, CALL)                                                                                        \
  do {                                                                                                                 \
    char small[512], *buf = small;                                                                                     \
    size_t size = sizeof small;                                                                                        \
    int64_t length = (CALL);                                                                                           \
    if (length >= (int64_t)size) {                                                                                     \
      size = (size_t)length + 1;                                                                                       \
      buf = emalloc(size);                                                                                             \
      length = (CALL);                                                                                                 \
      length = length >= (int64_t)size ? (int64_t)size - 1 : length;                                                   \
    }                                                                                                                  \
    (result) = length < 0 ? NULL : zend_string_init(buf, (size_t)length, 0);                                           \
    if (buf != small)                                                                                                  \
      efree(buf);                                                                                                      \
  } while (0)

static zend_string *client_message(redlock_client *handle)
{
  zend_string *text;
  READ_TEXT(text, redlock_client_message(handle, buf, size));
  return text ? text : ZSTR_EMPTY_ALLOC();
}

static void throw_status(int status, zend_string *message)
{
  redlock_php_throw(status, message, NULL, NULL);
  zend_string_release(message);
}

static void throw_text(int status, const char *text)
{
  throw_status(status, zend_string_init(text, strlen(text), 0));
}

/* ---- options ------------------------------------------------------------------------------------------------ */

static const char *option_type(const char *name)
{
  for (int i = 0; redlock_option_at(i, REDLOCK_OPTION_NAME); i++)
    if (strcmp(redlock_option_at(i, REDLOCK_OPTION_NAME), name) == 0)
      return redlock_option_at(i, REDLOCK_OPTION_TYPE);
  return NULL;
}

static const char *php_type(const char *type)
{
  return strcmp(type, "nodes") == 0 ? "string" : type;
}

static int is_type(zval *value, const char *type)
{
  switch (Z_TYPE_P(value)) {
  case IS_FALSE:
  case IS_TRUE: return strcmp(type, "bool") == 0;
  case IS_LONG: return strcmp(type, "int") == 0 || strcmp(type, "float") == 0;
  case IS_DOUBLE: return strcmp(type, "float") == 0;
  case IS_STRING: return 1; /* configuration files have texts: the core reads and checks them */
  default: return 0;
  }
}

/* The value as the core wants it, or NULL with a TypeError or ValueError. */
static zend_string *option_text(zend_string *name, zval *value)
{
  const char *type = option_type(ZSTR_VAL(name));
  if (type && !is_type(value, type)) {
    zend_type_error("option %s must be of type %s, %s given", ZSTR_VAL(name), php_type(type),
                    zend_zval_type_name(value));
    return NULL;
  }
  if (Z_TYPE_P(value) == IS_TRUE || Z_TYPE_P(value) == IS_FALSE)
    return Z_TYPE_P(value) == IS_TRUE ? zend_string_init("true", 4, 0) : zend_string_init("false", 5, 0);
  if (Z_TYPE_P(value) == IS_DOUBLE) {
    smart_str text = {0};
    smart_str_append_double(&text, Z_DVAL_P(value), -1, false); /* the shortest that means it */
    return smart_str_extract(&text);
  }
  if (Z_TYPE_P(value) == IS_ARRAY || Z_TYPE_P(value) == IS_OBJECT || Z_TYPE_P(value) == IS_RESOURCE)
    return ZSTR_EMPTY_ALLOC(); /* an unknown name: the core refuses it with the nearest known one */
  zend_string *text = zval_get_string(value);
  if (strlen(ZSTR_VAL(text)) != ZSTR_LEN(text)) {
    zend_value_error("option %s must not contain any null bytes", ZSTR_VAL(name));
    zend_string_release(text);
    return NULL;
  }
  return text;
}

typedef int (*option_setter)(void *handle, const char *name, const char *value);
typedef zend_string *(*option_message)(void *handle);

/* Sets each option; false with an exception thrown. */
static bool set_options(void *handle, HashTable *options, option_setter set, option_message message)
{
  zend_string *name, *text;
  zval *value;
  ZEND_HASH_FOREACH_STR_KEY_VAL(options, name, value) {
    int status;
    if (!name) {
      zend_value_error("options must have names as keys, as in ['ttl_ms' => 10000]");
      return false;
    }
    ZVAL_DEREF(value);
    text = option_text(name, value);
    if (!text)
      return false;
    status = set(handle, ZSTR_VAL(name), ZSTR_VAL(text));
    zend_string_release(text);
    if (status != REDLOCK_OK) {
      throw_status(status, message(handle));
      return false;
    }
  } ZEND_HASH_FOREACH_END();
  return true;
}

static int set_client_option(void *handle, const char *name, const char *value)
{
  return redlock_client_set(handle, name, value);
}

static zend_string *client_option_message(void *handle)
{
  return client_message(handle);
}

static int set_lock_option(void *handle, const char *name, const char *value)
{
  return redlock_lock_set(handle, name, value);
}

static zend_string *lock_option_message(void *handle)
{
  zend_string *text;
  READ_TEXT(text, redlock_lock_message(handle, buf, size));
  return text ? text : ZSTR_EMPTY_ALLOC();
}

/* ---- the table of clients ----------------------------------------------------------------------------------- */

static zend_string *environment_nodes(void)
{
  zend_string *nodes = NULL;
  const char *value;
  tsrm_env_lock(); /* putenv of another thread */
  value = getenv("REDLOCK_NODES");
  if (value && *value)
    nodes = zend_string_init(value, strlen(value), 0);
  tsrm_env_unlock();
  return nodes;
}

/* The nodes from the argument, the ini or the environment; NULL with an exception thrown. */
static zend_string *find_nodes(zend_string *argument)
{
  const char *ini = zend_ini_string("redlock.nodes", sizeof("redlock.nodes") - 1, 0);
  zend_string *environment;
  if (argument)
    return zend_string_copy(argument);
  if (ini && *ini)
    return zend_string_init(ini, strlen(ini), 0);
  environment = environment_nodes();
  if (environment)
    return environment;
  throw_text(REDLOCK_INVALID, "no nodes are named: pass them as argument $nodes, or set redlock.nodes in php.ini, or "
                              "REDLOCK_NODES in the environment (FPM clears the environment unless clear_env = no)");
  return NULL;
}

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

static void append_options(smart_str *out, HashTable *options)
{
  zend_string **parts = safe_emalloc(zend_hash_num_elements(options) + 1, sizeof *parts, 0);
  size_t count = 0;
  zend_string *name;
  zval *value;
  ZEND_HASH_FOREACH_STR_KEY_VAL(options, name, value) {
    zend_string *text;
    ZVAL_DEREF(value);
    text = option_text(name, value);
    parts[count++] = zend_strpprintf(0, "%s=%s", ZSTR_VAL(name), ZSTR_VAL(text));
    zend_string_release(text);
  } ZEND_HASH_FOREACH_END();
  append_sorted(out, parts, count);
  efree(parts);
}

/* The same nodes and options in any order, in the same process, are the same client. */
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
  if (handle) {
    status = redlock_client_set(handle, "nodes", ZSTR_VAL(nodes));
    if (status == REDLOCK_OK && set_options(handle, options, set_client_option, client_option_message))
      status = redlock_client_open(handle);
  }
  if (status == REDLOCK_OK && !EG(exception))
    return handle;
  if (!EG(exception))
    throw_status(status, handle ? client_message(handle) : zend_string_init("out of memory", 13, 0));
  redlock_client_free(handle);
  return NULL;
}

static void end_client(native_client *client)
{
  redlock_client_free(client->handle);
  free(client);
}

static void leave_table(native_client *client)
{
  if (!client->key)
    return;
  zend_hash_del(&GLOBAL(clients), client->key);
  zend_string_release(client->key);
  client->key = NULL;
}

static native_client *take_idle_client(void)
{
  native_client *client;
  if (zend_hash_num_elements(&GLOBAL(clients)) < CLIENTS_MAX)
    return NULL;
  ZEND_HASH_FOREACH_PTR(&GLOBAL(clients), client) {
    if (client->users == 0) {
      leave_table(client);
      return client;
    }
  } ZEND_HASH_FOREACH_END();
  return NULL;
}

static native_client *use_client(zend_string *key)
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
    throw_text(REDLOCK_NO_MEMORY, "out of memory");
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

static void drop_client(native_client *client)
{
  if (--client->users == 0 && !client->key)
    end_client(client);
}

/* ---- Redlock\Native\Client ---------------------------------------------------------------------------------- */

/* Refuses wrong options in the words of the core, before the table is asked: only then a key can be made of them. */
static bool check_options(HashTable *options)
{
  redlock_client *probe = redlock_client_new();
  bool good = probe && set_options(probe, options, set_client_option, client_option_message);
  if (!probe)
    throw_text(REDLOCK_NO_MEMORY, "out of memory");
  redlock_client_free(probe);
  return good;
}

native_client *new_native_client(zend_string *argument, HashTable *options)
{
  native_client *client = NULL;
  zend_string *key = NULL, *nodes = find_nodes(argument);
  if (nodes && strlen(ZSTR_VAL(nodes)) != ZSTR_LEN(nodes))
    zend_value_error("nodes must not contain any null bytes");
  else if (nodes && check_options(options)) {
    key = table_key(nodes, options);
    client = use_client(key);
    if (!client) {
      redlock_client *handle = open_client(nodes, options);
      client = handle ? add_client(key, handle) : NULL;
    }
  }
  if (nodes)
    zend_string_release(nodes);
  if (key)
    zend_string_release(key);
  return client;
}

void delete_native_client(native_client *client)
{
  drop_client(client);
}

int64_t native_client_id(native_client *client)
{
  return client->id;
}

int64_t native_client_fd(native_client *client)
{
  int fd = redlock_client_fd(client->handle);
  if (fd < 0)
    throw_text(-fd, redlock_status_text(-fd));
  return fd;
}

void native_client_process(native_client *client)
{
  redlock_client_process(client->handle);
}

optional_tag native_client_next(native_client *client)
{
  uint64_t tag;
  return redlock_client_next(client->handle, &tag) == 1 ? (int64_t)tag : -1;
}

optional_tag native_client_advance(native_client *client)
{
  uint64_t tag;
  return redlock_client_advance(client->handle, &tag) == 1 ? (int64_t)tag : -1;
}

bool native_client_drain(native_client *client, int64_t limit_ms)
{
  if (limit_ms < -1) {
    zend_argument_value_error(1, "must be greater than or equal to -1");
    return false;
  }
  leave_table(client);
  return redlock_client_drain(client->handle, limit_ms) == REDLOCK_OK;
}

optional_string *native_client_event(native_client *client)
{
  zend_string *text;
  READ_TEXT(text, redlock_client_event(client->handle, buf, size));
  if (text && ZSTR_LEN(text))
    return text;
  if (text)
    zend_string_release(text);
  return NULL;
}

zend_string *native_client_describe(native_client *client)
{
  zend_string *text;
  READ_TEXT(text, redlock_client_describe(client->handle, buf, size));
  return text ? text : ZSTR_EMPTY_ALLOC();
}

static zend_string *option_or_error(zend_string *text, const char *name)
{
  if (!text)
    throw_status(REDLOCK_INVALID, zend_strpprintf(0, "there is no option %s", name));
  return text;
}

zend_string *native_client_get(native_client *client, const char *name)
{
  zend_string *text;
  READ_TEXT(text, redlock_client_get(client->handle, name, buf, size));
  return option_or_error(text, name);
}

/* ---- Redlock\Native\Lock ------------------------------------------------------------------------------------ */

native_lock *new_native_lock(native_client *client, zend_string *resource, HashTable *options)
{
  native_lock *lock;
  redlock_lock *handle = redlock_lock_new(client->handle, ZSTR_VAL(resource), ZSTR_LEN(resource));
  if (!handle) {
    throw_text(REDLOCK_NO_MEMORY, "out of memory");
    return NULL;
  }
  if (redlock_lock_state(handle) == REDLOCK_STATE_INVALID)
    throw_status(REDLOCK_INVALID, lock_option_message(handle));
  else
    set_options(handle, options, set_lock_option, lock_option_message);
  if (EG(exception)) {
    redlock_lock_free(handle);
    return NULL;
  }
  lock = emalloc(sizeof *lock);
  lock->handle = handle;
  lock->client = client;
  lock->resource = zend_string_copy(resource);
  client->users++;
  return lock;
}

void delete_native_lock(native_lock *lock)
{
  redlock_lock_free(lock->handle);
  drop_client(lock->client);
  zend_string_release(lock->resource);
  efree(lock);
}

zend_string *native_lock_get(native_lock *lock, const char *name)
{
  zend_string *text;
  READ_TEXT(text, redlock_lock_get(lock->handle, name, buf, size));
  return option_or_error(text, name);
}

void native_lock_set(native_lock *lock, const char *name, const char *value)
{
  int status = redlock_lock_set(lock->handle, name, value);
  if (status != REDLOCK_OK)
    throw_status(status, lock_option_message(lock->handle));
}

static bool check_operation(int64_t operation)
{
  int64_t kind = operation & ~(int64_t)REDLOCK_AT_ONCE;
  if (kind >= REDLOCK_ACQUIRE && kind <= REDLOCK_INSPECT)
    return true;
  zend_argument_value_error(1, "must be one of REDLOCK_ACQUIRE, REDLOCK_EXTEND, REDLOCK_RELEASE, REDLOCK_INSPECT");
  return false;
}

/* The tag is what tells the end of the operation. */
int64_t native_lock_start(native_lock *lock, int64_t operation, int64_t arg, int64_t tag)
{
  int64_t status;
  if (!check_operation(operation))
    return REDLOCK_INVALID;
  if (tag < 0) {
    zend_argument_value_error(3, "must be greater than or equal to 0");
    return REDLOCK_INVALID;
  }
  status = redlock_lock_start(lock->handle, (int)operation, arg);
  if (status == REDLOCK_OK) /* else the tag is that of an operation in flight */
    redlock_lock_set_tag(lock->handle, (uint64_t)tag);
  return status;
}

/* Start and first wait in one call: the whole operation where nobody has to wait long. */
int64_t native_lock_run(native_lock *lock, int64_t operation, int64_t arg, int64_t slice_ms)
{
  int64_t status = REDLOCK_INVALID;
  if (check_operation(operation))
    status = redlock_lock_start(lock->handle, (int)operation, arg);
  return status == REDLOCK_OK ? redlock_lock_wait(lock->handle, slice_ms) : status;
}

int64_t native_lock_status(native_lock *lock)
{
  return redlock_lock_status(lock->handle);
}

int64_t native_lock_wait(native_lock *lock, int64_t limit_ms)
{
  return redlock_lock_wait(lock->handle, limit_ms);
}

/* What cleans up is sent at once, because nobody may come back to this client for long. */
void native_lock_cancel(native_lock *lock)
{
  redlock_lock_cancel(lock->handle);
  redlock_client_process(lock->client->handle);
}

/* Gives up whatever the handle does or holds, without waiting: the deletes go out with this call. */
void native_lock_abandon(native_lock *lock)
{
  native_lock_cancel(lock);
  if (redlock_lock_start(lock->handle, REDLOCK_RELEASE, 0) == REDLOCK_OK) {
    redlock_client_process(lock->client->handle);
    redlock_lock_cancel(lock->handle);
  }
}

int64_t native_lock_state(native_lock *lock)
{
  return redlock_lock_state(lock->handle);
}

int64_t native_lock_validity_ms(native_lock *lock)
{
  return redlock_lock_validity_ms(lock->handle);
}

zend_string *native_lock_token(native_lock *lock)
{
  zend_string *text;
  READ_TEXT(text, redlock_lock_token(lock->handle, buf, size));
  return text ? text : ZSTR_EMPTY_ALLOC();
}

int64_t native_lock_adopt(native_lock *lock, zend_string *token)
{
  if (strlen(ZSTR_VAL(token)) == ZSTR_LEN(token))
    return redlock_lock_adopt(lock->handle, ZSTR_VAL(token));
  zend_argument_value_error(1, "must not contain any null bytes");
  return REDLOCK_INVALID;
}

int64_t native_lock_detach(native_lock *lock)
{
  return redlock_lock_detach(lock->handle);
}

static zend_string *answer(native_lock *lock, int node, int field)
{
  zend_string *text;
  READ_TEXT(text, redlock_lock_answer(lock->handle, node, field, buf, size));
  return text ? text : ZSTR_EMPTY_ALLOC();
}

static zend_string *node_name(native_lock *lock, int node)
{
  zend_string *text;
  READ_TEXT(text, redlock_client_node_name(lock->client->handle, node, buf, size));
  return text ? text : ZSTR_EMPTY_ALLOC();
}

/* Name of the node => status, words, ttl_ms and token of its answer. */
HashTable *native_lock_answers(native_lock *lock)
{
  int count = redlock_client_node_count(lock->client->handle);
  HashTable *answers = zend_new_array((uint32_t)count);
  for (int i = 0; i < count; i++) {
    zend_string *name = node_name(lock, i);
    zval row;
    array_init_size(&row, 4);
    add_assoc_long(&row, "status", redlock_lock_vote(lock->handle, i));
    add_assoc_str(&row, "words", answer(lock, i, REDLOCK_ANSWER_WORDS));
    add_assoc_str(&row, "ttl_ms", answer(lock, i, REDLOCK_ANSWER_TTL_MS));
    add_assoc_str(&row, "token", answer(lock, i, REDLOCK_ANSWER_TOKEN));
    zend_hash_update(answers, name, &row);
    zend_string_release(name);
  }
  return answers;
}

/* Name of the node => words. */
static HashTable *votes_of(native_lock *lock)
{
  int count = redlock_client_node_count(lock->client->handle);
  HashTable *votes = zend_new_array((uint32_t)count);
  for (int i = 0; i < count; i++) {
    zend_string *name = node_name(lock, i);
    zval words;
    ZVAL_STR(&words, answer(lock, i, REDLOCK_ANSWER_WORDS));
    zend_hash_update(votes, name, &words);
    zend_string_release(name);
  }
  return votes;
}

zend_string *native_lock_message(native_lock *lock)
{
  return lock_option_message(lock->handle);
}

/* Throws what the status stands for, with the message and the votes of the last operation. */
void native_lock_fail(native_lock *lock, int64_t status)
{
  zend_string *message;
  if (!redlock_status_is((int)status, REDLOCK_IS_ERROR)) {
    zend_argument_value_error(1, "must be the status of a failure, " ZEND_LONG_FMT " given", (zend_long)status);
    return;
  }
  message = native_lock_message(lock);
  if (!ZSTR_LEN(message)) {
    zend_string_release(message);
    message = zend_strpprintf(0, "%s: %s", ZSTR_VAL(lock->resource), redlock_status_text((int)status));
  }
  redlock_php_throw((int)status, message, lock->resource, votes_of(lock));
  zend_string_release(message);
}

/* ---- module ------------------------------------------------------------------------------------------------- */

/* Shows "redis://user:***@host" for "redis://user:secret@host". */
static zend_string *mask_passwords(const char *text)
{
  smart_str out = {0};
  while (*text) {
    const char *slashes = strstr(text, "//");
    const char *end = slashes ? slashes + 2 + strcspn(slashes + 2, ",/") : NULL;
    const char *at = slashes ? memchr(slashes, '@', (size_t)(end - slashes)) : NULL;
    if (!slashes)
      break;
    smart_str_appendl(&out, text, (size_t)(slashes + 2 - text));
    if (at)
      smart_str_appends(&out, "***");
    smart_str_appendl(&out, at ? at : slashes + 2, (size_t)(end - (at ? at : slashes + 2)));
    text = end;
  }
  smart_str_appends(&out, text);
  return smart_str_extract(&out);
}

static ZEND_INI_DISP(display_nodes)
{
  zend_string *value = type == ZEND_INI_DISPLAY_ORIG && ini_entry->modified ? ini_entry->orig_value : ini_entry->value;
  zend_string *shown = value ? mask_passwords(ZSTR_VAL(value)) : ZSTR_EMPTY_ALLOC();
  php_printf("%s", ZSTR_LEN(shown) ? ZSTR_VAL(shown) : "no value");
  zend_string_release(shown);
}

PHP_INI_BEGIN()
  PHP_INI_ENTRY_EX("redlock.nodes", "", PHP_INI_ALL, NULL, display_nodes)
PHP_INI_END()

static void begin_thread(zend_redlock_globals *globals)
{
  memset(globals, 0, sizeof *globals);
  zend_hash_init(&globals->clients, 8, NULL, NULL, 1);
}

static void end_thread(zend_redlock_globals *globals)
{
  native_client *client;
  ZEND_HASH_FOREACH_PTR(&globals->clients, client) {
    zend_string_release(client->key);
    end_client(client);
  } ZEND_HASH_FOREACH_END();
  zend_hash_destroy(&globals->clients);
}

int redlock_php_startup(int type, int module_number)
{
  REGISTER_INI_ENTRIES();
  ZEND_INIT_MODULE_GLOBALS(redlock, begin_thread, end_thread);
  return redlock_php_register_exceptions();
}

void redlock_php_shutdown(int type, int module_number)
{
#ifdef ZTS
  ts_free_id(redlock_globals_id);
#else
  end_thread(&redlock_globals);
#endif
  UNREGISTER_INI_ENTRIES();
}

/* What SWIG does not set: nobody extends or serialises a handle, and a stack trace never shows the nodes. */
void redlock_php_seal(zend_class_entry *client, zend_class_entry *lock)
{
  client->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NOT_SERIALIZABLE;
  lock->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NOT_SERIALIZABLE;
#if PHP_VERSION_ID >= 80200
  zend_add_parameter_attribute(client->constructor, 0, ZSTR_KNOWN(ZEND_STR_SENSITIVEPARAMETER), 0);
#endif
}

void redlock_php_info(void)
{
  native_client *client;
  php_info_print_table_start();
  php_info_print_table_row(2, "redlock", "enabled");
  php_info_print_table_row(2, "version", redlock_version());
  php_info_print_table_end();
  php_info_print_table_start();
  php_info_print_table_header(2, "client", "nodes");
  ZEND_HASH_FOREACH_PTR(&GLOBAL(clients), client) {
    zend_string *nodes, *id = zend_long_to_str((zend_long)client->id);
    READ_TEXT(nodes, redlock_client_get(client->handle, "nodes", buf, size));
    php_info_print_table_row(2, ZSTR_VAL(id), nodes ? ZSTR_VAL(nodes) : "");
    zend_string_release(id);
    if (nodes)
      zend_string_release(nodes);
  } ZEND_HASH_FOREACH_END();
  php_info_print_table_end();
  display_ini_entries(zend_hash_str_find_ptr(&module_registry, ZEND_STRL("redlock")));
}
