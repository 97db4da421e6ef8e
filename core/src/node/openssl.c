#include "openssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct rlk_openssl rlk_openssl;
static char reason[200];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* One that the program has loaded already is taken first: two of them in one process would not share anything. */
static void *open_library(void)
{
  static const char *const names[] = {"libssl.so.3", "libssl.so.1.1"};
  static const int how[] = {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL};
  for (size_t i = 0; i < 2; i++)
    for (size_t k = 0; k < 2; k++) {
      void *library = dlopen(names[k], how[i]);
      if (library)
        return library;
    }
  return NULL;
}

static int take(void *library, const char *name, void *to)
{
  void *found = dlsym(library, name);
  struct rlk_text text = rlk_text_in(reason, sizeof reason);
  if (found)
    memcpy(to, &found, sizeof found);
  else
    rlk_text_format(&text, "OpenSSL has no function %s", name);
  return found != NULL;
}

static void load(void)
{
  struct rlk_text text = rlk_text_in(reason, sizeof reason);
  void *library = open_library();
  if (!library) {
    rlk_text_add(&text, "OpenSSL was not found (libssl.so.3 or libssl.so.1.1)");
    return;
  }
#define TAKE(result, name, parameters)                                                                                 \
  if (!take(library, #name, &rlk_openssl.name))                                                                        \
    return;
  RLK_OPENSSL(TAKE)
#undef TAKE
}

int rlk_openssl_load(struct rlk_text *why)
{
  pthread_once(&once, load);
  rlk_text_add(why, reason);
  return !reason[0];
}
