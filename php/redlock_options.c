/* Options as PHP values, checked here by type and by the core for the rest. */
#include "redlock_internal.h"

#include "zend_smart_str.h"

static HashTable rows; /* of the table of options, by name: each hold's handle is given the options of its lock */

void redlock_php_begin_options(void)
{
  const char *name;
  zval row;
  zend_hash_init(&rows, 64, NULL, NULL, 1);
  for (int i = 0; (name = redlock_option_at(i, REDLOCK_OPTION_NAME)) != NULL; i++) {
    ZVAL_LONG(&row, i);
    zend_hash_str_add_new(&rows, name, strlen(name), &row);
  }
}

void redlock_php_end_options(void)
{
  zend_hash_destroy(&rows);
}

/* A field of the table's row; NULL: there is no such option. */
static const char *option_field(const char *name, int field)
{
  zval *row = zend_hash_str_find(&rows, name, strlen(name));
  return row ? redlock_option_at((int)Z_LVAL_P(row), field) : NULL;
}

bool redlock_php_is_of_client(const char *name)
{
  const char *scope = option_field(name, REDLOCK_OPTION_SCOPE);
  return scope && strcmp(scope, "client") == 0;
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

/* The value as the core wants it, or NULL with an exception thrown. */
zend_string *redlock_php_option_text(zend_string *name, zval *value)
{
  const char *type = option_field(ZSTR_VAL(name), REDLOCK_OPTION_TYPE);
  if (type && !is_type(value, type)) {
    zend_type_error("option %s must be of type %s, %s given", ZSTR_VAL(name), php_type(type),
                    zend_zval_type_name(value));
    return NULL;
  }
  if (Z_TYPE_P(value) == IS_TRUE || Z_TYPE_P(value) == IS_FALSE)
    return Z_TYPE_P(value) == IS_TRUE ? zend_string_init("true", 4, 0) : zend_string_init("false", 5, 0);
  if (Z_TYPE_P(value) == IS_DOUBLE && fabs(Z_DVAL_P(value)) < 1e-4)
    return zend_strpprintf(0, "%.9F", Z_DVAL_P(value) + 0.0); /* without an exponent, and no -0 */
  if (Z_TYPE_P(value) == IS_DOUBLE) {
    smart_str text = {0};
    smart_str_append_double(&text, Z_DVAL_P(value), -1, false); /* the shortest that means it */
    return smart_str_extract(&text);
  }
  if (Z_TYPE_P(value) == IS_ARRAY || Z_TYPE_P(value) == IS_OBJECT || Z_TYPE_P(value) == IS_RESOURCE)
    return ZSTR_EMPTY_ALLOC(); /* an unknown name: the core refuses it with the nearest known one */
  zend_string *text = zval_get_string(value);
  if (strlen(ZSTR_VAL(text)) != ZSTR_LEN(text)) {
    redlock_php_throw_status(REDLOCK_INVALID,
                             zend_strpprintf(0, "%c%s%c must not contain any null bytes", PART, ZSTR_VAL(name), PART));
    zend_string_release(text);
    return NULL;
  }
  return text;
}

typedef int (*option_setter)(void *handle, const char *name, const char *value);
typedef zend_string *(*option_message)(void *handle);

static bool is_of_locks(const char *name)
{
  return !redlock_php_is_of_client(name);
}

static bool is_any(const char *name)
{
  return true;
}

/* Sets each option that is wanted; false with an exception thrown. */
static bool set_options(void *handle, HashTable *options, bool (*is_wanted)(const char *), option_setter set,
                        option_message message)
{
  zend_string *name, *text;
  zval *value;
  ZEND_HASH_FOREACH_STR_KEY_VAL(options, name, value) {
    int status;
    if (!name || strlen(ZSTR_VAL(name)) != ZSTR_LEN(name)) {
      zend_value_error("options must have names as keys, as in ['ttl_ms' => 10000]");
      return false;
    }
    if (!is_wanted(ZSTR_VAL(name)))
      continue;
    ZVAL_DEREF(value);
    text = redlock_php_option_text(name, value);
    if (!text)
      return false;
    status = set(handle, ZSTR_VAL(name), ZSTR_VAL(text));
    zend_string_release(text);
    if (status != REDLOCK_OK) {
      redlock_php_throw_status(status, message(handle));
      return false;
    }
  }
  ZEND_HASH_FOREACH_END();
  return true;
}

static int set_client_option(void *handle, const char *name, const char *value)
{
  return redlock_client_set(handle, name, value);
}

static zend_string *client_message(void *handle)
{
  return redlock_php_client_message(handle);
}

static int set_lock_option(void *handle, const char *name, const char *value)
{
  return redlock_lock_set(handle, name, value);
}

static zend_string *lock_message(void *handle)
{
  return redlock_php_lock_message(handle);
}

bool redlock_php_set_client_options(redlock_client *handle, HashTable *options)
{
  return set_options(handle, options, redlock_php_is_of_client, set_client_option, client_message);
}

bool redlock_php_set_lock_options(redlock_lock *handle, HashTable *options)
{
  return set_options(handle, options, is_any, set_lock_option, lock_message);
}

/* Refuses wrong options in the words of the core, before the table of clients is asked: its key is made of them. */
bool redlock_php_check_options(HashTable *options)
{
  redlock_client *probe = redlock_client_new();
  bool is_good = probe && set_options(probe, options, is_any, set_client_option, client_message);
  if (!probe)
    redlock_php_throw_text(REDLOCK_NO_MEMORY, "out of memory");
  redlock_client_free(probe);
  return is_good;
}

/* Refuses defaults of locks that do not go together, or not with the client. */
bool redlock_php_check_defaults(redlock_client *handle, HashTable *options)
{
  redlock_lock *probe = redlock_lock_new(handle, "probe", 5);
  int status = probe ? REDLOCK_OK : REDLOCK_NO_MEMORY;
  if (probe && set_options(probe, options, is_of_locks, set_lock_option, lock_message))
    status = redlock_lock_check(probe);
  if (status != REDLOCK_OK)
    redlock_php_throw_status(status, probe ? redlock_php_lock_message(probe) : zend_strpprintf(0, "out of memory"));
  redlock_lock_free(probe);
  return !EG(exception);
}

zend_string *redlock_php_option_or_error(zend_string *text, const char *name)
{
  if (!text)
    redlock_php_throw_status(REDLOCK_INVALID, zend_strpprintf(0, "there is no option %s", name));
  return text;
}
