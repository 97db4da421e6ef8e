/* Exceptions, built from the list of statuses: NO_QUORUM becomes Redlock\Exception\NoQuorumException. */
#include "redlock_internal.h"

#include "ext/spl/spl_exceptions.h"
#include "ext/standard/php_string.h"
#include "zend_exceptions.h"
#include "zend_interfaces.h"

#define STATUS_COUNT_MAX 64
#define NAMESPACE "Redlock\\Exception\\"

static zend_class_entry *throwable_ce;
static zend_class_entry *base_ce;
static zend_class_entry *status_ces[STATUS_COUNT_MAX];

/* ---- what they say ---- */

static zval *fact(zend_execute_data *execute_data, const char *name, zval *space)
{
  return zend_read_property(Z_OBJCE_P(ZEND_THIS), Z_OBJ_P(ZEND_THIS), name, strlen(name), false, space);
}

#define ACCESSOR(name)                                                                                                 \
  static ZEND_FUNCTION(redlock_##name)                                                                                 \
  {                                                                                                                    \
    zval space;                                                                                                        \
    ZEND_PARSE_PARAMETERS_NONE();                                                                                      \
    RETURN_COPY_DEREF(fact(execute_data, #name, &space));                                                              \
  }
ACCESSOR(status)
ACCESSOR(resource)
ACCESSOR(votes)
ACCESSOR(result)

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_status, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_resource, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_votes, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_result, 0, 0, IS_MIXED, 0)
ZEND_END_ARG_INFO()

#define ABSTRACT(name) ZEND_ABSTRACT_ME(, name, arginfo_##name)
static const zend_function_entry abstract_accessors[] = {ABSTRACT(status) ABSTRACT(resource) ABSTRACT(votes)
                                                             ABSTRACT(result) ZEND_FE_END};

#define CONCRETE(name) ZEND_ME_MAPPING(name, redlock_##name, arginfo_##name, ZEND_ACC_PUBLIC)
static const zend_function_entry accessors[] = {CONCRETE(status) CONCRETE(resource) CONCRETE(votes) CONCRETE(result)
                                                    ZEND_FE_END};

/* ---- the classes ---- */

static void declare(zend_class_entry *ce, const char *name, zval *initial, uint32_t type_mask)
{
  zend_string *key = zend_string_init_interned(name, strlen(name), 1);
  zend_declare_typed_property(ce, key, initial, ZEND_ACC_PUBLIC, NULL, (zend_type)ZEND_TYPE_INIT_MASK(type_mask));
  zend_string_release(key);
}

static void declare_facts(zend_class_entry *ce, int status)
{
  zval initial;
  ZVAL_LONG(&initial, status);
  declare(ce, "status", &initial, MAY_BE_LONG);
  ZVAL_EMPTY_STRING(&initial);
  declare(ce, "resource", &initial, MAY_BE_STRING);
  ZVAL_EMPTY_ARRAY(&initial);
  declare(ce, "votes", &initial, MAY_BE_ARRAY);
  ZVAL_NULL(&initial);
  declare(ce, "result", &initial, MAY_BE_ANY); /* of the body of run(), if it had ended */
}

/* "NO_QUORUM" -> "Redlock\Exception\NoQuorumException" */
static void class_name(char *out, size_t size, const char *status_name)
{
  size_t n = strlen(NAMESPACE);
  memcpy(out, NAMESPACE, n);
  for (int upper = 1; *status_name && n + 1 < size; status_name++) {
    if (*status_name == '_') {
      upper = 1;
      continue;
    }
    out[n++] = upper ? *status_name : (char)(*status_name - 'A' + 'a');
    upper = 0;
  }
  snprintf(out + n, size - n, "Exception");
}

static zend_class_entry *register_class(const char *name, zend_class_entry *parent,
                                        const zend_function_entry *functions)
{
  zend_class_entry ce;
  INIT_CLASS_ENTRY_EX(ce, name, strlen(name), functions);
  return zend_register_internal_class_ex(&ce, parent);
}

/* A program error, as ValueError is for PHP's own functions. */
static void register_invalid_option(void)
{
  zend_class_entry *ce = register_class(NAMESPACE "InvalidOptionException", zend_ce_value_error, accessors);
  zval initial;
  zend_class_implements(ce, 1, throwable_ce);
  declare_facts(ce, REDLOCK_INVALID);
  ZVAL_EMPTY_ARRAY(&initial);
  declare(ce, "parts", &initial, MAY_BE_ARRAY);
  status_ces[REDLOCK_INVALID] = ce;
}

int redlock_php_register_exceptions(void)
{
  zend_class_entry ce;
  zval initial;
  INIT_CLASS_ENTRY(ce, NAMESPACE "RedlockThrowable", abstract_accessors);
  throwable_ce = zend_register_internal_interface(&ce);
  zend_class_implements(throwable_ce, 1, zend_ce_throwable);

  base_ce = register_class(NAMESPACE "RedlockException", spl_ce_RuntimeException, accessors);
  zend_class_implements(base_ce, 1, throwable_ce);
  declare_facts(base_ce, REDLOCK_INTERNAL);

  for (int status = 0; status < STATUS_COUNT_MAX && strcmp(redlock_status_name(status), "UNKNOWN") != 0; status++) {
    char name[128];
    if (!redlock_status_is(status, REDLOCK_IS_ERROR) || status >= REDLOCK_UNREACHABLE) /* only ever a node's answer */
      continue;
    if (status == REDLOCK_INVALID) {
      register_invalid_option();
      continue;
    }
    class_name(name, sizeof name, redlock_status_name(status));
    status_ces[status] = register_class(name, base_ce, NULL);
    ZVAL_LONG(&initial, status);
    declare(status_ces[status], "status", &initial, MAY_BE_LONG);
  }
  ZVAL_EMPTY_STRING(&initial);
  declare(status_ces[REDLOCK_LOST], "reason", &initial, MAY_BE_STRING);
  ZVAL_NULL(&initial);
  declare(status_ces[REDLOCK_BUSY], "heldBy", &initial, MAY_BE_ARRAY | MAY_BE_NULL);
  return SUCCESS;
}

void redlock_php_give_reason(int loss)
{
  static const char *const reasons[] = {
      [REDLOCK_LOSS_NONE] = "",           [REDLOCK_LOSS_EXPIRED] = "expired",
      [REDLOCK_LOSS_GONE] = "gone",       [REDLOCK_LOSS_RESTARTED] = "restarted",
      [REDLOCK_LOSS_REFUSED] = "refused", [REDLOCK_LOSS_LIMIT] = "limit",
      [REDLOCK_LOSS_CLOCK] = "clock",     [REDLOCK_LOSS_CLOSED] = "closed",
  };
  if (EG(exception) && loss >= 0 && loss < (int)(sizeof reasons / sizeof *reasons))
    zend_update_property_string(status_ces[REDLOCK_LOST], EG(exception), ZEND_STRL("reason"), reasons[loss]);
}

void redlock_php_give_result(HashTable *result)
{
  zval value;
  ZVAL_ARR(&value, result);
  zend_update_property(EG(exception)->ce, EG(exception), ZEND_STRL("result"), &value);
  zval_ptr_dtor(&value);
}

void redlock_php_throw(int status, zend_string *message, zend_string *resource, HashTable *votes)
{
  zend_class_entry *ce = status >= 0 && status < STATUS_COUNT_MAX ? status_ces[status] : NULL;
  zend_object *thrown;
  zval parts, plain;
  if (!ce)
    ce = base_ce;
  array_init(&parts);
  php_explode(ZSTR_CHAR(PART), message, &parts, ZEND_LONG_MAX);
  php_implode(ZSTR_EMPTY_ALLOC(), Z_ARRVAL(parts), &plain);
  thrown = zend_throw_exception(ce, Z_STRVAL(plain), status);
  zend_update_property_long(ce, thrown, ZEND_STRL("status"), status);
  if (ce == status_ces[REDLOCK_INVALID])
    zend_update_property(ce, thrown, ZEND_STRL("parts"), &parts);
  zval_ptr_dtor(&parts);
  zval_ptr_dtor(&plain);
  if (resource)
    zend_update_property_str(ce, thrown, ZEND_STRL("resource"), resource);
  if (votes) {
    zval value;
    ZVAL_ARR(&value, votes);
    zend_update_property(ce, thrown, ZEND_STRL("votes"), &value);
    zval_ptr_dtor(&value);
  }
}

void redlock_php_throw_status(int status, zend_string *message)
{
  redlock_php_throw(status, message, NULL, NULL);
  zend_string_release(message);
}

void redlock_php_throw_text(int status, const char *text)
{
  redlock_php_throw_status(status, zend_string_init(text, strlen(text), 0));
}
