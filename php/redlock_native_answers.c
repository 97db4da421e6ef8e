/* The results of a Redlock\Native\Lock: answers of the nodes, messages, failures. */
#include "redlock_internal.h"

zend_string *redlock_php_lock_message(redlock_lock *handle)
{
  RETURN_TEXT(redlock_lock_message_parts(handle, buf, size));
}

static zend_string *answer(native_lock *lock, int node, int field)
{
  RETURN_TEXT(redlock_lock_answer(lock->handle, node, field, buf, size));
}

static zend_string *node_name(native_lock *lock, int node)
{
  RETURN_TEXT(redlock_client_node_name(lock->client->handle, node, buf, size));
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

/* Why an operation was refused or failed. A refusal because of another operation is not in the library's message: that
 * is the other's. */
static zend_string *failure(native_lock *lock, int status)
{
  zend_string *message;
  if (status == REDLOCK_IN_FLIGHT)
    return zend_strpprintf(0,
                           "\"%s\": another Fiber, coroutine or signal handler is using this hold; "
                           "it can act when that has ended",
                           ZSTR_VAL(lock->resource));
  message = redlock_php_lock_message(lock->handle);
  if (ZSTR_LEN(message))
    return message;
  return zend_strpprintf(0, "\"%s\": %s", ZSTR_VAL(lock->resource), redlock_status_text(status));
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
