/* The PHP extension, for SWIG >= 4.1. bindings/php_generate.py runs SWIG on this file and puts argument names and
 * the namespace into what it wrote. The enums come from redlock.h. A method that only passes a value on has
 * its body here; one without a body calls native_client_NAME or native_lock_NAME of php/redlock_native_*.c.
 *
 * Arguments go through zend_parse_arg_*: SWIG's stock typemaps convert copies (the string of a Stringable is freed
 * while in use), ignore strict_types and read past strings. The parsed value stays owned by the call's own argument
 * slot. */
%module redlock

%header %{
#include "redlock_internal.h"
/* SWIG makes the macro's name of the type's. */
#define MAY_BE_MIXED MAY_BE_ANY
#undef NO_VERSION_YET
#define NO_VERSION_YET REDLOCK_VERSION
/* The table of types that SWIG's extensions share by a constant in the global namespace: this one keeps to itself. */
#undef SWIG_GetModule
#undef SWIG_SetModule
#define SWIG_GetModule(clientdata) NULL
#define SWIG_SetModule(clientdata, pointer) ((void)(clientdata))
#define ARGUMENT_NUMBER(z) ((uint32_t)(&(z) - args) + 1)
#define ARGUMENT(z) ZEND_CALL_ARG(execute_data, ARGUMENT_NUMBER(z))
#define REFUSE_ARGUMENT(z, expected) \
  do { \
    if (!EG(exception)) \
      zend_wrong_parameter_type_error(ARGUMENT_NUMBER(z), expected, ARGUMENT(z)); \
    SWIG_fail; \
  } while (0)
#undef WRONG_PARAM_COUNT
#define WRONG_PARAM_COUNT \
  do { \
    zend_wrong_parameters_count_error(EX(func)->common.required_num_args, EX(func)->common.num_args); \
    return; \
  } while (0)
%}
%pragma(php) phpinfo="redlock_php_info();"
%minit %{
  if (redlock_php_startup(type, module_number) == FAILURE)
    return FAILURE;
%}
%mshutdown %{
  redlock_php_shutdown(type, module_number);
%}

%include <stdint.i>
%feature("php:type", "1");

%typemap(in, phptype="string") zend_string * %{
  if (!zend_parse_arg_str(ARGUMENT($input), &$1, 0, ARGUMENT_NUMBER($input)))
    REFUSE_ARGUMENT($input, Z_EXPECTED_STRING);
%}
%typemap(in, phptype="string") const char * (zend_string *text = NULL) %{
  if (!zend_parse_arg_str(ARGUMENT($input), &text, 0, ARGUMENT_NUMBER($input)))
    REFUSE_ARGUMENT($input, Z_EXPECTED_STRING);
  if (strlen(ZSTR_VAL(text)) != ZSTR_LEN(text)) {
    zend_argument_value_error(ARGUMENT_NUMBER($input), "must not contain any null bytes");
    SWIG_fail;
  }
  $1 = ZSTR_VAL(text);
%}
%typemap(in, phptype="int") int64_t (zend_long number = 0, bool is_null = 0) %{
  if (!zend_parse_arg_long(ARGUMENT($input), &number, &is_null, 0, ARGUMENT_NUMBER($input)))
    REFUSE_ARGUMENT($input, Z_EXPECTED_LONG);
  $1 = (int64_t)number;
%}
%typemap(in, phptype="array") HashTable * %{
  if (!zend_parse_arg_array_ht(ARGUMENT($input), &$1, 0, 0, 0))
    REFUSE_ARGUMENT($input, Z_EXPECTED_ARRAY);
%}
%typemap(in, phptype="Redlock\\Native\\Client") native_client * %{
  if (SWIG_ConvertPtr(&$input, (void **)&$1, $descriptor, 0) < 0 || !$1) {
    zend_argument_type_error(ARGUMENT_NUMBER($input), "must be of type Redlock\\Native\\Client, %s given",
                             zend_zval_type_name(ARGUMENT($input)));
    SWIG_fail;
  }
%}
%typemap(out, phptype="int") int64_t %{ RETVAL_LONG((zend_long)$1); %}
%typemap(out, phptype="bool") bool %{ RETVAL_BOOL($1); %}
%typemap(out, phptype="string") zend_string * %{ RETVAL_STR($1); %}
%typemap(out, phptype="?string") optional_string * %{
  if ($1) RETVAL_STR((zend_string *)$1);
  else RETVAL_NULL();
%}
%typemap(out, phptype="?string") const char * %{
  if ($1) RETVAL_STRING($1);
  else RETVAL_NULL();
%}
%typemap(out, phptype="Redlock\\Native\\Lock") native_lock * %{
  SWIG_SetPointerZval(return_value, (void *)$1, $1_descriptor, $owner);
%}
%typemap(in, phptype="mixed") zval *waiter %{ $1 = ARGUMENT($input); %}
%typemap(out, phptype="mixed") waiter %{ RETVAL_COPY_VALUE(&$1); %}
%typemap(out, phptype="array") HashTable * %{ RETVAL_ARR($1); %}

/* The C side throws PHP exceptions. */
%exception {
  $action
  if (UNEXPECTED(EG(exception)))
    SWIG_fail;
}
%define ONCE_CONSTRUCTED(name)
%exception name::name {
  if (SWIG_Z_FETCH_OBJ_P(ZEND_THIS)->ptr) {
    zend_throw_error(NULL, "the constructor was called already");
    SWIG_fail;
  }
  $action
  if (UNEXPECTED(EG(exception)))
    SWIG_fail;
}
%enddef
%newobject native_lock::another;
ONCE_CONSTRUCTED(native_client)
ONCE_CONSTRUCTED(native_lock)

/* Runs once the classes are registered. */
%typemap(consttab) class_hook %{
  redlock_php_seal(SWIG_Php_ce_RedlockNativeClient, SWIG_Php_ce_RedlockNativeLock);
%}
%typemap(classconsttab) class_hook ""

/* Of the header the enums and the functions on values; its handles are reached through the classes below. The rest is
 * for the command and for other bindings. */
%rename("$ignore", regexmatch$name="^redlock_(client|lock|now_ms$|fork_generation$|escape$)") "";
%ignore REDLOCK_H;
%ignore REDLOCK_VERSION;
%ignore REDLOCK_CHECK;
%ignore REDLOCK_API;
%typemap(in, phptype="int") int = int64_t;
%typemap(out, phptype="string") const char *redlock_version, const char *redlock_status_name,
  const char *redlock_status_text %{ RETVAL_STRING($1); %}
%include "redlock.h"

%rename("%(lowercamelcase)s", %$ismember) "";
%rename(RedlockNativeClient) native_client;
%rename(RedlockNativeLock) native_lock;
%nodefaultctor;

typedef struct native_client {
  %extend {
    native_client(zend_string *nodes, HashTable *options);
    ~native_client();
    int64_t id() { return $self->id; }
    int64_t fd();
    int64_t generation() { return redlock_php_generation(); }
    void cancel(int64_t group);
    void process() { redlock_client_process($self->handle); }
    waiter next();
    waiter advance();
    void begin_drain(int64_t limit_ms);
    bool end_drain() { return redlock_php_end_drain($self); }
    optional_string *event();
    zend_string *describe() { RETURN_TEXT(redlock_client_describe($self->handle, buf, size)); }
    zend_string *metrics() { RETURN_TEXT(redlock_client_metrics($self->handle, buf, size)); }
    HashTable *bootstrap(int64_t mode);
    zend_string *get(const char *name);
  }
} native_client;

typedef struct native_lock {
  %extend {
    native_lock(native_client *client, zend_string *resource, HashTable *options, int64_t group = 0);
    ~native_lock();
    native_lock *another();
    zend_string *get(const char *name);
    void set(const char *name, const char *value);
    void add(zend_string *resource);
    int64_t run(int64_t operation, int64_t arg, int64_t slice_ms);
    int64_t start(int64_t operation, int64_t arg, zval *waiter);
    int64_t status() { return redlock_lock_status($self->handle); }
    int64_t ended();
    int64_t wait(int64_t limit_ms) { return redlock_lock_wait($self->handle, limit_ms); }
    void cancel();
    void abandon();
    zend_string *resource() { return zend_string_copy($self->resource); }
    int64_t state() { return redlock_lock_state($self->handle); }
    int64_t validity_ms() { return redlock_lock_validity_ms($self->handle); }
    int64_t check() { return redlock_lock_check($self->handle); }
    int64_t fence() { return redlock_lock_fence($self->handle); }
    int64_t slot() { return redlock_lock_slot($self->handle); }
    int64_t attempts() { return redlock_lock_attempts($self->handle); }
    zend_string *token() { RETURN_TEXT(redlock_lock_token($self->handle, buf, size)); }
    int64_t adopt(zend_string *token);
    int64_t detach() { return redlock_lock_detach($self->handle); }
    HashTable *answers();
    int64_t verdict() { return redlock_lock_verdict($self->handle); }
    zend_string *holder() { RETURN_TEXT(redlock_lock_holder($self->handle, buf, size)); }
    zend_string *held_by() { RETURN_TEXT(redlock_lock_held_by($self->handle, buf, size)); }
    int64_t listed(int64_t what) { return redlock_lock_listed($self->handle, (int)what); }
    zend_string *row(int64_t index, int64_t field) {
      RETURN_TEXT(redlock_lock_row($self->handle, index, (int)field, buf, size));
    }
    int64_t holder_ttl_ms() { return redlock_lock_holder_ttl_ms($self->handle); }
    zend_string *message() { RETURN_TEXT(redlock_lock_message($self->handle, buf, size)); }
    void fail(int64_t status);
  }
} native_lock;

%constant class_hook CLASS_HOOK = 0;
