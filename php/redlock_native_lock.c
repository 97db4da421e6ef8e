/* The class Redlock\Native\Lock over the C library: operations and what is known locally. */
#include "redlock_internal.h"

/* Takes the handle over; NULL with an exception thrown. */
static native_lock *lock_over(redlock_lock *handle, native_client *client, zend_string *resource, int64_t group)
{
  native_lock *lock;
  if (!handle) {
    redlock_php_throw_text(REDLOCK_NO_MEMORY, "out of memory");
    return NULL;
  }
  lock = emalloc(sizeof *lock);
  lock->handle = handle;
  lock->client = client;
  lock->resource = zend_string_copy(resource);
  lock->tagged = false;
  lock->group = group;
  lock->next = client->locks;
  lock->link = &client->locks;
  if (lock->next)
    lock->next->link = &lock->next;
  client->locks = lock;
  ZVAL_UNDEF(&lock->waiter);
  client->users++;
  return lock;
}

native_lock *new_native_lock(native_client *client, zend_string *resource, HashTable *options, int64_t group)
{
  redlock_lock *handle = redlock_lock_new(client->handle, ZSTR_VAL(resource), ZSTR_LEN(resource));
  native_lock *lock = lock_over(handle, client, resource, group);
  if (lock && redlock_lock_state(handle) == REDLOCK_STATE_INVALID)
    redlock_php_throw_status(REDLOCK_INVALID, redlock_php_lock_message(handle));
  else if (!lock || redlock_php_set_lock_options(handle, options))
    return lock;
  delete_native_lock(lock);
  return NULL;
}

/* One that can not be used, as of a client that was closed, says so when it is. */
native_lock *native_lock_another(native_lock *lock)
{
  return lock_over(redlock_lock_copy(lock->handle), lock->client, lock->resource, lock->group);
}

void delete_native_lock(native_lock *lock)
{
  *lock->link = lock->next;
  if (lock->next)
    lock->next->link = lock->link;
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
  return redlock_php_option_or_error(text, name);
}

void native_lock_set(native_lock *lock, const char *name, const char *value)
{
  int status = redlock_lock_set(lock->handle, name, value);
  if (status == REDLOCK_IN_FLIGHT)
    native_lock_fail(lock, status);
  else if (status != REDLOCK_OK)
    redlock_php_throw_status(status, redlock_php_lock_message(lock->handle));
}

void native_lock_add(native_lock *lock, zend_string *resource)
{
  int status = redlock_lock_add(lock->handle, ZSTR_VAL(resource), ZSTR_LEN(resource));
  if (status != REDLOCK_OK)
    redlock_php_throw_status(status, redlock_php_lock_message(lock->handle));
}

static int start(native_lock *lock, int64_t operation, int64_t arg)
{
  int64_t kind = operation & ~(int64_t)REDLOCK_AT_ONCE;
  if (kind < REDLOCK_ACQUIRE || kind > REDLOCK_LIST) {
    zend_argument_value_error(1, "must be one of REDLOCK_ACQUIRE, REDLOCK_EXTEND, REDLOCK_RELEASE, REDLOCK_INSPECT, "
                                 "REDLOCK_EXPIRE, REDLOCK_REMOVE, REDLOCK_WHO, REDLOCK_LIST");
    return REDLOCK_INVALID;
  }
  if (kind != REDLOCK_ACQUIRE)
    lock->group = 0;
  return redlock_lock_start(lock->handle, (int)operation, arg);
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
  int64_t status = start(lock, operation, arg);
  if (status != REDLOCK_OK) /* else the waiter is that of an operation in flight */
    return status;
  if (!lock->tagged)
    lock->tagged = redlock_lock_set_tag(lock->handle, (uint64_t)(uintptr_t)lock) == REDLOCK_OK;
  forget_waiter(lock);
  ZVAL_COPY(&lock->waiter, waiter);
  return status;
}

/* Start and first wait in one call: the whole operation if it need not wait long. */
int64_t native_lock_run(native_lock *lock, int64_t operation, int64_t arg, int64_t slice_ms)
{
  int64_t status = start(lock, operation, arg);
  return status == REDLOCK_OK ? redlock_lock_wait(lock->handle, slice_ms) : status;
}

/* Nobody waits any more for what has ended: who looked for it by itself is not woken later, in another wait. */
int64_t native_lock_ended(native_lock *lock)
{
  int status = redlock_lock_status(lock->handle);
  if (status != REDLOCK_PENDING)
    forget_waiter(lock);
  return status;
}

/* Deletes are sent at once, because this client may not be used again for long. Who waits is woken by the loop. */
void native_lock_cancel(native_lock *lock)
{
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

int64_t native_lock_adopt(native_lock *lock, zend_string *token)
{
  if (strlen(ZSTR_VAL(token)) == ZSTR_LEN(token))
    return redlock_lock_adopt(lock->handle, ZSTR_VAL(token));
  redlock_php_throw_text(REDLOCK_INVALID, "token must not contain any null bytes");
  return REDLOCK_INVALID;
}
