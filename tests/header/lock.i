/* redlock.h through SWIG for PHP with as little help as possible: texts are returned, resources are strings. */
%module redlock_header

%{
#include <redlock.h>
%}

%include <stdint.i>
#define REDLOCK_PARSED

%typemap(in, numinputs=0) (char *buf, size_t size) (char text[1024]) {
  text[0] = 0;
  $1 = text;
  $2 = sizeof text;
}
%typemap(argout) (char *buf, size_t size) {
  zval_ptr_dtor($result);
  ZVAL_STRING($result, $1);
}
%apply (char *STRING, size_t LENGTH) { (const void *resource, size_t size) };
%ignore redlock_client_next;

%include <redlock.h>
