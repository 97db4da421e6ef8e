/* The module: redlock.nodes of php.ini, and phpinfo, which shows no password. */
#include "redlock_internal.h"

#include "ext/standard/info.h"
#include "php_ini.h"
#include "zend_attributes.h"

#define NODES "redlock.nodes"

/* As the core shows a list. One that it refuses is not shown: any part of it may be one of a password. */
static zend_string *masked(const char *nodes)
{
  redlock_client *client = redlock_client_new();
  zend_string *out = NULL;
  if (client && redlock_client_set(client, "nodes", nodes) == REDLOCK_OK) {
    out = zend_string_alloc((size_t)redlock_client_get(client, "nodes", NULL, 0), 0);
    redlock_client_get(client, "nodes", ZSTR_VAL(out), ZSTR_LEN(out) + 1);
  }
  redlock_client_free(client);
  return out ? out : zend_string_init_fast(ZEND_STRL("no list of nodes"));
}

static ZEND_INI_DISP(display_nodes)
{
  zend_string *value = type == ZEND_INI_DISPLAY_ORIG && ini_entry->modified ? ini_entry->orig_value : ini_entry->value;
  zend_string *shown = value ? masked(ZSTR_VAL(value)) : ZSTR_EMPTY_ALLOC();
  php_printf("%s", ZSTR_LEN(shown) ? ZSTR_VAL(shown) : "no value");
  zend_string_release(shown);
}

PHP_INI_BEGIN()
STD_PHP_INI_ENTRY_EX(NODES, "", PHP_INI_ALL, OnUpdateString, nodes, zend_redlock_globals, redlock_globals,
                     display_nodes)
PHP_INI_END()

int redlock_php_startup(int type, int module_number)
{
  ZEND_INIT_MODULE_GLOBALS(redlock, redlock_php_begin_thread, redlock_php_end_thread);
  REGISTER_INI_ENTRIES();
  redlock_php_begin_options();
  return redlock_php_watch_forks() ? redlock_php_register_exceptions() : FAILURE;
}

void redlock_php_shutdown(int type, int module_number)
{
  UNREGISTER_INI_ENTRIES();
#ifdef ZTS
  ts_free_id(redlock_globals_id);
#else
  redlock_php_end_thread(&redlock_globals);
#endif
  redlock_php_end_options();
}

/* Flags that SWIG does not set: handles cannot be extended or serialised, and stack traces never show the nodes. */
void redlock_php_seal(zend_class_entry *client, zend_class_entry *lock)
{
  client->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NOT_SERIALIZABLE;
  lock->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NOT_SERIALIZABLE;
#if PHP_VERSION_ID >= 80200
  zend_add_parameter_attribute(client->constructor, 0, ZSTR_KNOWN(ZEND_STR_SENSITIVEPARAMETER), 0);
  zend_add_parameter_attribute(client->constructor, 1, ZSTR_KNOWN(ZEND_STR_SENSITIVEPARAMETER), 0);
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
