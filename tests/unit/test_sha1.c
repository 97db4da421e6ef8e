/* SHA-1, with the examples of RFC 3174 and FIPS 180, and at the edges of a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../sim/sha1.h"

static void hash_is(const char *text, const char *expected)
{
  char hex[41];
  rlk_sha1_hex(text, strlen(text), hex);
  assert_string_equal(hex, expected);
}

static void the_examples_of_the_standard_have_their_hashes(void **state)
{
  (void)state;
  hash_is("", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  hash_is("abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
  hash_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  hash_is("0123456701234567012345670123456701234567012345670123456701234567",
          "e0c094e867ef46c350ef54a7f59dd60bed92ae83");
}

static void texts_that_just_fit_a_block_have_their_hashes(void **state)
{
  char text[65];
  (void)state;
  memset(text, 'a', sizeof text);
  text[55] = 0;
  hash_is(text, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
  text[55] = 'a';
  text[56] = 0;
  hash_is(text, "c2db330f6083854c99d4b5bfb6e8f29f201be699");
  text[56] = 'a';
  text[64] = 0;
  hash_is(text, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_examples_of_the_standard_have_their_hashes),
      cmocka_unit_test(texts_that_just_fit_a_block_have_their_hashes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
