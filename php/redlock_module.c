/* The module: redlock.nodes of php.ini and phpinfo, which show no password; nor does ini_get(). */
#include "redlock_internal.h"

#include "ext/standard/info.h"
#include "php_ini.h"
#include "zend_attributes.h"
#include "zend_smart_str.h"

#define NODES "redlock.nodes"

/* The passwords, and the users with them, as three stars. */
static zend_string *masked(const char *text, size_t size)
{
  smart_str out = {0};
  for (const char *end = text + size; text <= end;) {
    const char *comma = memchr(text, ',', (size_t)(end - text));
    const char *stop = comma ? comma : end;
    const char *at = zend_memrchr(text, '@', (size_t)(stop - text));
    const char *slashes = at ? php_memnstr(text, "//", 2, at) : NULL;
    if (slashes)
      smart_str_appendl(&out, text, (size_t)(slashes + 2 - text));
    if (at)
      smart_str_appends(&out, "***");
    smart_str_appendl(&out, at ? at : text, (size_t)(stop - (at ? at : text)));
    if (comma)
      smart_str_appendc(&out, ',');
    text = stop + 1;
  }
  return smart_str_extract(&out);
}

static ZEND_INI_DISP(display_nodes)
{
  zend_string *value = type == ZEND_INI_DISPLAY_ORIG && ini_entry->modified ? ini_entry->orig_value : ini_entry->value;
  zend_string *shown = value ? masked(ZSTR_VAL(value), ZSTR_LEN(value)) : ZSTR_EMPTY_ALLOC();
  php_printf("%s", ZSTR_LEN(shown) ? ZSTR_VAL(shown) : "no value");
  zend_string_release(shown);
}

PHP_INI_BEGIN()
PHP_INI_ENTRY_EX(NODES, "", PHP_INI_ALL, NULL, display_nodes)
PHP_INI_END()

zend_string *redlock_php_ini_nodes(void)
{
  const char *value = zend_ini_string(NODES, sizeof(NODES) - 1, 0);
  return value && *value ? zend_string_init(value, strlen(value), 0) : NULL;
}

/* ---- PHP's functions that give the value of a setting away: their results are masked ---- */

static struct {
  const char *name;
  zif_handler original;
} readers[] = {{"ini_get", NULL}, {"ini_set", NULL}, {"ini_alter", NULL}, {"ini_get_all", NULL}};

enum { READERS = sizeof readers / sizeof *readers };

static void mask(zval *value)
{
  zend_string *shown;
  if (Z_TYPE_P(value) != IS_STRING)
    return;
  shown = masked(Z_STRVAL_P(value), Z_STRLEN_P(value));
  zval_ptr_dtor(value);
  ZVAL_STR(value, shown);
}

/* ini_get_all(): the value itself, or an array of the global and the local one. */
static void mask_in(zval *all)
{
  zval *found, *value;
  if (Z_TYPE_P(all) != IS_ARRAY)
    return;
  SEPARATE_ARRAY(all);
  found = zend_hash_str_find(Z_ARRVAL_P(all), NODES, sizeof(NODES) - 1);
  if (!found)
    return;
  mask(found);
  if (Z_TYPE_P(found) != IS_ARRAY)
    return;
  SEPARATE_ARRAY(found);
  ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(found), value) {
    mask(value);
  }
  ZEND_HASH_FOREACH_END();
}

static ZEND_FUNCTION(masked_reader)
{
  zend_string *called = EX(func)->common.function_name;
  bool is_nodes = ZEND_NUM_ARGS() > 0 && Z_TYPE_P(ZEND_CALL_ARG(execute_data, 1)) == IS_STRING &&
                  zend_string_equals_literal(Z_STR_P(ZEND_CALL_ARG(execute_data, 1)), NODES);
  for (size_t i = 0; i < READERS; i++)
    if (strcmp(readers[i].name, ZSTR_VAL(called)) == 0)
      readers[i].original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
  if (is_nodes)
    mask(return_value);
  else
    mask_in(return_value);
}

static void wrap_readers(bool wrap)
{
  for (size_t i = 0; i < READERS; i++) {
    zend_function *f = zend_hash_str_find_ptr(CG(function_table), readers[i].name, strlen(readers[i].name));
    if (!f || f->type != ZEND_INTERNAL_FUNCTION)
      continue;
    if (wrap)
      readers[i].original = f->internal_function.handler;
    f->internal_function.handler = wrap ? ZEND_FN(masked_reader) : readers[i].original;
  }
}

/* ---- the module ---- */

int redlock_php_startup(int type, int module_number)
{
  REGISTER_INI_ENTRIES();
  wrap_readers(true);
  ZEND_INIT_MODULE_GLOBALS(redlock, redlock_php_begin_thread, redlock_php_end_thread);
  return redlock_php_watch_forks() ? redlock_php_register_exceptions() : FAILURE;
}

void redlock_php_shutdown(int type, int module_number)
{
#ifdef ZTS
  ts_free_id(redlock_globals_id);
#else
  redlock_php_end_thread(&redlock_globals);
#endif
  wrap_readers(false);
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
  }
  ZEND_HASH_FOREACH_END();
  php_info_print_table_end();
  display_ini_entries(zend_hash_str_find_ptr(&module_registry, ZEND_STRL("redlock")));
}
