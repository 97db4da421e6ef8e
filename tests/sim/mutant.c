/* Only in the test build: which rule is broken. */
#include "../../core/src/base/mutant.h"

#ifdef RL_TEST_BUILD

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int rl_test_mutant;
int rl_test_wait_all;

static const char *const names[] = {
  "none",
#define RL_MUTANT_NAME(name, text, wrong) text,
  RL_MUTANTS(RL_MUTANT_NAME)
#undef RL_MUTANT_NAME
};

int rl_test_mutant_of(const char *text)
{
  for (int i = 0; i < RL_MUTANT_COUNT; i++)
    if (strcmp(text, names[i]) == 0 || (isdigit((unsigned char)text[0]) && atoi(text) == i))
      return i;
  return -1;
}

/* A misspelt rule must not pass for an intact library. */
__attribute__((constructor)) static void choose(void)
{
  const char *text = getenv("REDLOCK_TEST_MUTANT");
  rl_test_mutant = text ? rl_test_mutant_of(text) : 0;
  if (rl_test_mutant < 0)
    abort();
}

#endif
