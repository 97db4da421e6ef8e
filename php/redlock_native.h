/* What stands behind the classes Redlock\Native\Client and Redlock\Native\Lock (bindings/redlock.i). */
#ifndef REDLOCK_NATIVE_H
#define REDLOCK_NATIVE_H

#include "php.h"
#include "redlock.h"

/* A native client of this process. It outlives requests: PHP objects and locks only count on it. */
typedef struct native_client native_client;

/* One lock handle with the client it belongs to. */
typedef struct native_lock native_lock;

/* The same types with another meaning for the caller: NULL becomes null; a value that start() was given, or null. */
typedef zend_string optional_string;
typedef zval waiter;

/* Module start and end, and phpinfo. */
int redlock_php_startup(int type, int module_number);
void redlock_php_shutdown(int type, int module_number);
void redlock_php_info(void);
void redlock_php_seal(zend_class_entry *client, zend_class_entry *lock);

/* Exceptions, one class per status of redlock.h. resource and votes may be NULL; votes is consumed. */
int redlock_php_register_exceptions(void);
void redlock_php_throw(int status, zend_string *message, zend_string *resource, HashTable *votes);

native_client *new_native_client(zend_string *nodes, HashTable *options);
void delete_native_client(native_client *client);
int64_t native_client_fd(native_client *client);
void native_client_cancel(native_client *client, int64_t group);
waiter native_client_next(native_client *client);
waiter native_client_advance(native_client *client);
void native_client_begin_drain(native_client *client, int64_t limit_ms);
optional_string *native_client_event(native_client *client);
HashTable *native_client_bootstrap(native_client *client, int64_t mode);
zend_string *native_client_get(native_client *client, const char *name);

native_lock *new_native_lock(native_client *client, zend_string *resource, HashTable *options, int64_t group);
native_lock *native_lock_another(native_lock *lock);
void delete_native_lock(native_lock *lock);
zend_string *native_lock_get(native_lock *lock, const char *name);
void native_lock_set(native_lock *lock, const char *name, const char *value);
void native_lock_add(native_lock *lock, zend_string *resource);
int64_t native_lock_run(native_lock *lock, int64_t operation, int64_t arg, int64_t slice_ms);
int64_t native_lock_start(native_lock *lock, int64_t operation, int64_t arg, zval *waiter);
int64_t native_lock_ended(native_lock *lock);
void native_lock_cancel(native_lock *lock);
void native_lock_abandon(native_lock *lock);
int64_t native_lock_adopt(native_lock *lock, zend_string *token);
HashTable *native_lock_answers(native_lock *lock);
void native_lock_fail(native_lock *lock, int64_t status);

#endif
