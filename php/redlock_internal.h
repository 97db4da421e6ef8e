/* What the files of the extension know of each other. */
#ifndef REDLOCK_INTERNAL_H
#define REDLOCK_INTERNAL_H

#include "redlock_native.h"

#include <pthread.h>

struct native_client {
  redlock_client *handle;
  zend_string *key; /* NULL once it has left the table */
  uint64_t users;   /* PHP objects and locks */
  native_lock *locks;
  int64_t id;
  int64_t drain_limit_ms;
  pthread_t drainer;
  bool drains;  /* in the thread drainer */
  bool drained; /* and every node answered */
};

struct native_lock {
  redlock_lock *handle;
  native_client *client;
  zend_string *resource;
  int64_t group;             /* 0: none, or nobody waits for it any more */
  native_lock *next, **link; /* in the client's list */
  zval waiter;               /* the waiter of the started operation; undefined if there is none */
  bool tagged;               /* the library gives this struct back when an operation has ended */
};

/* Threads of PHP share nothing, and a native client has one list of ended operations, one of events and one drain: so
 * each thread has clients of its own. Without threads there is one table for the process. */
/* clang-format off */
ZEND_BEGIN_MODULE_GLOBALS(redlock)
  HashTable clients;
  int64_t last_id;
  char *nodes; /* redlock.nodes of php.ini, which owns it */
ZEND_END_MODULE_GLOBALS(redlock)
/* clang-format on */

ZEND_EXTERN_MODULE_GLOBALS(redlock)
#define GLOBAL(name) ZEND_MODULE_GLOBALS_ACCESSOR(redlock, name)

/* Reads a text of any length: CALL copies into (buf, size) and returns the full length. */
#define READ_TEXT(result, CALL)                                                                                        \
  do {                                                                                                                 \
    char small[512], *buf = small;                                                                                     \
    size_t size = sizeof small;                                                                                        \
    int64_t length;                                                                                                    \
    while ((length = (CALL)) >= (int64_t)size) { /* another thread may have made it longer */                          \
      if (buf != small)                                                                                                \
        efree(buf);                                                                                                    \
      size = (size_t)length + 1;                                                                                       \
      buf = emalloc(size);                                                                                             \
    }                                                                                                                  \
    (result) = length < 0 ? NULL : zend_string_init(buf, (size_t)length, 0);                                           \
    if (buf != small)                                                                                                  \
      efree(buf);                                                                                                      \
  } while (0)

/* Ends a function with such a text, or with an empty one. */
#define RETURN_TEXT(CALL)                                                                                              \
  do {                                                                                                                 \
    zend_string *text;                                                                                                 \
    READ_TEXT(text, CALL);                                                                                             \
    return text ? text : ZSTR_EMPTY_ALLOC();                                                                           \
  } while (0)

/* Stands between the parts of a message: redlock_lock_message_parts. */
#define PART 0x1f

/* redlock_options.c: values of PHP as the core wants them; false and NULL come with an exception thrown */
bool redlock_php_is_of_client(const char *name); /* else it is a default of locks, or there is no such option */
void redlock_php_begin_options(void);            /* once in a process, whatever its threads */
void redlock_php_end_options(void);
bool redlock_php_check_options(HashTable *options);
bool redlock_php_check_defaults(redlock_client *handle, HashTable *options);
bool redlock_php_set_client_options(redlock_client *handle, HashTable *options);
bool redlock_php_set_lock_options(redlock_lock *handle, HashTable *options);
zend_string *redlock_php_option_text(zend_string *name, zval *value);
zend_string *redlock_php_option_or_error(zend_string *text, const char *name); /* NULL: there is no such option */

/* redlock_native_client.c, redlock_native_answers.c */
zend_string *redlock_php_client_message(redlock_client *handle); /* in parts, as the functions that throw take it */
zend_string *redlock_php_lock_message(redlock_lock *handle);

/* redlock_clients.c: the table of the clients */
native_client *redlock_php_use_client(zend_string *nodes, HashTable *options);
void redlock_php_leave_table(native_client *client);
void redlock_php_drop_client(native_client *client);
void redlock_php_begin_drain(native_client *client, int64_t limit_ms);
bool redlock_php_end_drain(native_client *client);
void redlock_php_begin_thread(zend_redlock_globals *globals);
void redlock_php_end_thread(zend_redlock_globals *globals);

/* How many forks lie between the first process and this one, from 1. */
int64_t redlock_php_generation(void);
bool redlock_php_watch_forks(void);

/* redlock_exceptions.c */
void redlock_php_give_result(HashTable *result); /* to the exception that was thrown; consumed */
void redlock_php_give_reason(int loss);          /* to the LostException that was thrown: enum redlock_loss */

/* These consume the message, which may have parts. */
void redlock_php_throw_status(int status, zend_string *message);
void redlock_php_throw_text(int status, const char *text);

#endif
