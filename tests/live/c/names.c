/* To be preloaded: the addresses of the host lock.test are the words of the file in $NAMES, in that order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int look_up(const char *, const char *, const struct addrinfo *, struct addrinfo **);

__attribute__((visibility("default"))) int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                                                       struct addrinfo **out)
{
  look_up *real = (look_up *)dlsym(RTLD_NEXT, "getaddrinfo");
  struct addrinfo **end = out;
  char word[64];
  FILE *names;
  if (!host || strcmp(host, "lock.test") != 0)
    return real(host, port, hints, out);
  *out = NULL;
  names = fopen(getenv("NAMES"), "r");
  while (names && fscanf(names, "%63s", word) == 1)
    if (real(word, port, hints, end) == 0)
      end = &(*end)->ai_next;
  if (names)
    fclose(names);
  return *out ? 0 : EAI_NONAME;
}
