/* What the core declares of OpenSSL, whose headers it does without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "node/openssl.h"

#define SAME_TYPE(result, name, parameters)                                                                            \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), __typeof__(((struct rlk_openssl *)0)->name)), #name);
RLK_OPENSSL(SAME_TYPE)

#define SAME_VALUE(name, value) _Static_assert((name) == (value), #name);
RLK_OPENSSL_NUMBERS(SAME_VALUE)

static void all_functions_are_found(void **state)
{
  char why[200] = "";
  struct rlk_text text = rlk_text_in(why, sizeof why);
  (void)state;
  assert_true(rlk_openssl_load(&text));
  assert_string_equal(why, "");
#define IS_THERE(result, name, parameters) assert_non_null(rlk_openssl.name);
  RLK_OPENSSL(IS_THERE)
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_functions_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
