/* The class Redlock\Native\Client over the C library. */
#include "redlock_internal.h"

zend_string *redlock_php_client_message(redlock_client *handle)
{
  RETURN_TEXT(redlock_client_message_parts(handle, buf, size));
}

native_client *new_native_client(zend_string *nodes, HashTable *options)
{
  return redlock_php_use_client(nodes, options);
}

void delete_native_client(native_client *client)
{
  redlock_php_drop_client(client);
}

int64_t native_client_fd(native_client *client)
{
  int fd = redlock_client_fd(client->handle);
  if (fd < 0)
    redlock_php_throw_text(-fd, redlock_status_text(-fd));
  return fd;
}

/* Ends the waits for what a group has not got yet, also those that are about to begin. */
void native_client_cancel(native_client *client, int64_t group)
{
  for (native_lock *lock = client->locks; lock; lock = lock->next) {
    if (lock->group != group || redlock_lock_state(lock->handle) != REDLOCK_STATE_FREE)
      continue;
    redlock_lock_cancel(lock->handle);
    redlock_lock_set(lock->handle, "wait_ms", "0");
    redlock_lock_set(lock->handle, "outage_wait_ms", "0");
  }
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

void native_client_begin_drain(native_client *client, int64_t limit_ms)
{
  if (limit_ms < -1)
    zend_value_error("the limit of drain() must be null or at least 0, " ZEND_LONG_FMT " given", (zend_long)limit_ms);
  else
    redlock_php_begin_drain(client, limit_ms);
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

zend_string *native_client_get(native_client *client, const char *name)
{
  zend_string *text;
  READ_TEXT(text, redlock_client_get(client->handle, name, buf, size));
  return redlock_php_option_or_error(text, name);
}

static void add_bootstrapped(zval *row, redlock_client *handle, int node)
{
  zend_string *name, *words;
  int64_t max_ttl_ms = redlock_client_bootstrapped(handle, node, REDLOCK_BOOTSTRAP_MAX_TTL_MS);
  READ_TEXT(name, redlock_client_node_name(handle, node, buf, size));
  READ_TEXT(words, redlock_client_bootstrap_words(handle, node, buf, size));
  array_init_size(row, 5);
  add_assoc_str(row, "node", name ? name : ZSTR_EMPTY_ALLOC());
  add_assoc_string(row, "did",
                   redlock_bootstrap_did_name((int)redlock_client_bootstrapped(handle, node, REDLOCK_BOOTSTRAP_DID)));
  add_assoc_bool(row, "votes", redlock_client_bootstrapped(handle, node, REDLOCK_BOOTSTRAP_VOTES) == 1);
  if (max_ttl_ms > 0)
    add_assoc_long(row, "max_ttl_ms", (zend_long)max_ttl_ms);
  else
    add_assoc_null(row, "max_ttl_ms");
  add_assoc_str(row, "found", words ? words : ZSTR_EMPTY_ALLOC());
}

/* What was done on each node; it is the result of the exception if nodes were left alone or did not answer. */
HashTable *native_client_bootstrap(native_client *client, int64_t mode)
{
  HashTable *rows;
  int status = redlock_client_bootstrap(client->handle, (int)mode);
  bool is_told = status == REDLOCK_OK || status == REDLOCK_NO_QUORUM || status == REDLOCK_REFUSED_CONFIG;
  int count = is_told ? redlock_client_node_count(client->handle) : 0;
  if (status != REDLOCK_OK)
    redlock_php_throw_status(status, redlock_php_client_message(client->handle));
  rows = zend_new_array((uint32_t)count);
  for (int i = 0; i < count; i++) {
    zval row;
    add_bootstrapped(&row, client->handle, i);
    zend_hash_next_index_insert(rows, &row);
  }
  if (status == REDLOCK_OK)
    return rows;
  redlock_php_give_result(rows);
  return NULL;
}
