/* The classes Redlock\Native\Client and Redlock\Native\Lock over the C library. */
#include "redlock_internal.h"

struct native_lock {
  redlock_lock *handle;
  native_client *client;
  zend_string *resource;
  zval waiter; /* who waits for the operation that was started; undefined if nobody does */
  bool tagged; /* the library gives this struct back when an operation has ended */
};

zend_string *redlock_php_client_message(redlock_client *handle)
{
  zend_string *text;
  READ_TEXT(text, redlock_client_message(handle, buf, size));
  return text ? text : ZSTR_EMPTY_ALLOC();
}

zend_string *redlock_php_lock_message(redlock_lock *handle)
{
  zend_string *text;
  READ_TEXT(text, redlock_lock_message(handle, buf, size));
  return text ? text : ZSTR_EMPTY_ALLOC();
}

/* ---- Redlock\Native\Client ---- */

native_client *new_native_client(zend_string *nodes, HashTable *options)
{
  return redlock_php_use_client(nodes, options);
}

void delete_native_client(native_client *client)
{
  redlock_php_drop_client(client);
}

int64_t native_client_id(native_client *client)
{
  return client->id;
}

int64_t native_client_fd(native_client *client)
{
  int fd = redlock_client_fd(client->handle);
  if (fd < 0)
    redlock_php_throw_text(-fd, redlock_status_text(-fd));
  return fd;
}

int64_t native_client_generation(native_client *client)
{
  return redlock_php_generation();
}

void native_client_process(native_client *client)
{
  redlock_client_process(client->handle);
}

/* Takes the waiter of a lock whose operation has ended. A lock stands in the library's list also when it is at risk or
 * lost, or had a waiter that left: false. */
static bool take_waiter(uint64_t tag, zval *waiter)
{
  native_lock *lock = (native_lock *)(uintptr_t)tag;
  if (!lock || Z_ISUNDEF(lock->waiter) || redlock_lock_status(lock->handle) == REDLOCK_PENDING)
    return false;
  ZVAL_COPY_VALUE(waiter, &lock->waiter);
  ZVAL_UNDEF(&lock->waiter);
  return true;
}

waiter native_client_next(native_client *client)
{
  waiter next;
  uint64_t tag;
  while (redlock_client_next(client->handle, &tag) == 1)
    if (take_waiter(tag, &next))
      return next;
  ZVAL_NULL(&next);
  return next;
}

waiter native_client_advance(native_client *client)
{
  waiter first;
  uint64_t tag;
  int found = redlock_client_advance(client->handle, &tag);
  if (found == 1 && take_waiter(tag, &first))
    return first;
  if (found == 1)
    return native_client_next(client);
  ZVAL_NULL(&first);
  return first;
}

static bool is_limit(int64_t limit_ms)
{
  if (limit_ms >= -1)
    return true;
  zend_argument_value_error(1, "must be greater than or equal to -1");
  return false;
}

bool native_client_drain(native_client *client, int64_t limit_ms)
{
  if (!is_limit(limit_ms))
    return false;
  redlock_php_leave_table(client);
  return redlock_client_drain(client->handle, limit_ms) == REDLOCK_OK;
}

void native_client_begin_drain(native_client *client, int64_t limit_ms)
{
  if (is_limit(limit_ms))
    redlock_php_begin_drain(client, limit_ms);
}

bool native_client_end_drain(native_client *client)
{
  return redlock_php_end_drain(client);
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
    redlock_php_throw_status(REDLOCK_INVALID, zend_strpprintf(0, "there is no option %s", name));
  return text;
}

zend_string *native_client_get(native_client *client, const char *name)
{
  zend_string *text;
  READ_TEXT(text, redlock_client_get(client->handle, name, buf, size));
  return option_or_error(text, name);
}

/* ---- Redlock\Native\Lock ---- */

native_lock *new_native_lock(native_client *client, zend_string *resource, HashTable *options)
{
  native_lock *lock;
  redlock_lock *handle = redlock_lock_new(client->handle, ZSTR_VAL(resource), ZSTR_LEN(resource));
  if (!handle) {
    redlock_php_throw_text(REDLOCK_NO_MEMORY, "out of memory");
    return NULL;
  }
  if (redlock_lock_state(handle) == REDLOCK_STATE_INVALID)
    redlock_php_throw_status(REDLOCK_INVALID, redlock_php_lock_message(handle));
  else
    redlock_php_set_lock_options(handle, options);
  if (EG(exception)) {
    redlock_lock_free(handle);
    return NULL;
  }
  lock = emalloc(sizeof *lock);
  lock->handle = handle;
  lock->client = client;
  lock->resource = zend_string_copy(resource);
  lock->tagged = false;
  ZVAL_UNDEF(&lock->waiter);
  client->users++;
  return lock;
}

void delete_native_lock(native_lock *lock)
{
  redlock_lock_free(lock->handle);
  redlock_php_drop_client(lock->client);
  zend_string_release(lock->resource);
  zval_ptr_dtor(&lock->waiter);
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
    redlock_php_throw_status(status, redlock_php_lock_message(lock->handle));
}

static bool check_operation(int64_t operation)
{
  int64_t kind = operation & ~(int64_t)REDLOCK_AT_ONCE;
  if (kind >= REDLOCK_ACQUIRE && kind <= REDLOCK_REMOVE)
    return true;
  zend_argument_value_error(1, "must be one of REDLOCK_ACQUIRE, REDLOCK_EXTEND, REDLOCK_RELEASE, REDLOCK_INSPECT, "
                            "REDLOCK_EXPIRE, REDLOCK_REMOVE");
  return false;
}

static void forget_waiter(native_lock *lock)
{
  zval waiter;
  ZVAL_COPY_VALUE(&waiter, &lock->waiter);
  ZVAL_UNDEF(&lock->waiter); /* first: what ends with the waiter may come back here */
  zval_ptr_dtor(&waiter);
}

int64_t native_lock_start(native_lock *lock, int64_t operation, int64_t arg, zval *waiter)
{
  int64_t status;
  if (!check_operation(operation))
    return REDLOCK_INVALID;
  status = redlock_lock_start(lock->handle, (int)operation, arg);
  if (status != REDLOCK_OK) /* else the waiter is that of an operation in flight */
    return status;
  if (!lock->tagged)
    lock->tagged = redlock_lock_set_tag(lock->handle, (uint64_t)(uintptr_t)lock) == REDLOCK_OK;
  forget_waiter(lock);
  ZVAL_COPY(&lock->waiter, waiter);
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

/* Nobody waits any more for what has ended: who looked for it by itself is not woken later, in another wait. */
int64_t native_lock_ended(native_lock *lock)
{
  int status = redlock_lock_status(lock->handle);
  if (status != REDLOCK_PENDING)
    forget_waiter(lock);
  return status;
}

int64_t native_lock_wait(native_lock *lock, int64_t limit_ms)
{
  return redlock_lock_wait(lock->handle, limit_ms);
}

/* What cleans up is sent at once, because nobody may come back to this client for long. */
void native_lock_cancel(native_lock *lock)
{
  forget_waiter(lock);
  redlock_lock_cancel(lock->handle);
  redlock_client_process(lock->client->handle);
}

/* Gives up whatever the handle does or holds, without waiting: the deletes go out with this call. Where nothing is held
 * the message stays that of the operation. */
void native_lock_abandon(native_lock *lock)
{
  int state;
  native_lock_cancel(lock);
  state = redlock_lock_state(lock->handle);
  if (state != REDLOCK_STATE_HELD && state != REDLOCK_STATE_ADOPTED && state != REDLOCK_STATE_LOST)
    return;
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
  return redlock_php_lock_message(lock->handle);
}

/* Why an operation was refused or failed. A refusal because of another operation is not in the library's message: that
 * is the other's. */
static zend_string *failure(native_lock *lock, int status)
{
  zend_string *message;
  if (status == REDLOCK_IN_FLIGHT)
    return zend_strpprintf(0,
                           "%s: another Fiber, coroutine or signal handler is using this Lock object; "
                           "each of them needs one of its own, from Client::lock()",
                           ZSTR_VAL(lock->resource));
  message = native_lock_message(lock);
  if (ZSTR_LEN(message))
    return message;
  return zend_strpprintf(0, "%s: %s", ZSTR_VAL(lock->resource), redlock_status_text(status));
}

/* Throws what the status stands for, with the message and the votes of the last operation. */
void native_lock_fail(native_lock *lock, int64_t status)
{
  zend_string *message;
  if (!redlock_status_is((int)status, REDLOCK_IS_ERROR)) {
    zend_argument_value_error(1, "must be the status of a failure, " ZEND_LONG_FMT " given", (zend_long)status);
    return;
  }
  message = failure(lock, (int)status);
  redlock_php_throw((int)status, message, lock->resource, status == REDLOCK_IN_FLIGHT ? NULL : votes_of(lock));
  if (status == REDLOCK_LOST)
    redlock_php_give_reason(redlock_lock_loss(lock->handle));
  zend_string_release(message);
}
