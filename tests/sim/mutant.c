/* Only in the test build: which rule is broken. */
#include "../../core/src/base/mutant.h"

#ifdef RLK_TEST_BUILD

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int rlk_test_mutant;
int rlk_test_wait_all;

static const char *const names[] = {"none",
#define RLK_MUTANT_NAME(name, text, wrong) text,
                                    RLK_MUTANTS(RLK_MUTANT_NAME)
#undef RLK_MUTANT_NAME
};

int rlk_test_mutant_of(const char *text)
{
  for (int i = 0; i < RLK_MUTANT_COUNT; i++)
    if (strcmp(text, names[i]) == 0 || (isdigit((unsigned char)text[0]) && atoi(text) == i))
      return i;
  return -1;
}

/* A misspelt rule must not pass for an intact library. */
__attribute__((constructor)) static void choose(void)
{
  const char *text = getenv("REDLOCK_TEST_MUTANT");
  rlk_test_mutant = text ? rlk_test_mutant_of(text) : 0;
  if (rlk_test_mutant < 0)
    abort();
}

#endif
