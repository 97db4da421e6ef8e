#include "resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/bell.h"
#include "../base/platform.h"

struct rlk_resolve {
  atomic_int users; /* the node and the thread */
  atomic_int done;
  int ringer;
  int count, error;
  int of_family[2]; /* addresses, of IPv4 and IPv6 */
  uint16_t port;
  struct rlk_address used;
  struct rlk_address addresses[RLK_ADDRESSES_MAX];
  char host[];
};

int rlk_address_numeric(const char *host, uint16_t port, struct rlk_address *a)
{
  memset(a, 0, sizeof *a);
  a->port = port;
  a->family = AF_INET;
  if (inet_pton(AF_INET, host, a->ip) == 1)
    return 1;
  a->family = AF_INET6;
  return inet_pton(AF_INET6, host, a->ip) == 1;
}

void rlk_resolve_drop(struct rlk_resolve *r)
{
  if (!r || atomic_fetch_sub(&r->users, 1) > 1)
    return;
  close(r->ringer);
  free(r);
}

void rlk_resolve_forked(struct rlk_resolve *r)
{
  if (r)
    atomic_store(&r->users, 1);
  rlk_resolve_drop(r);
}

static int is_same(const struct rlk_address *a, const struct rlk_address *b)
{
  return a->family == b->family && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

/* The address that was used before is the first one, however far behind the resolver names it. */
static void keep(struct rlk_resolve *r, const struct rlk_address *a)
{
  int is_used = is_same(a, &r->used);
  for (int i = 0; i < r->count; i++)
    if (is_same(a, &r->addresses[i]))
      return;
  r->of_family[a->family == AF_INET6]++;
  if (r->count < RLK_ADDRESSES_MAX)
    r->count++;
  else if (!is_used)
    return;
  if (is_used)
    memmove(&r->addresses[1], r->addresses, (size_t)(r->count - 1) * sizeof *a);
  r->addresses[is_used ? 0 : r->count - 1] = *a;
}

static void take(struct rlk_resolve *r, const struct addrinfo *found)
{
  struct rlk_address a = {.family = found->ai_family, .port = r->port};
  if (found->ai_family == AF_INET)
    memcpy(a.ip, &((const struct sockaddr_in *)found->ai_addr)->sin_addr, 4);
  else if (found->ai_family == AF_INET6)
    memcpy(a.ip, &((const struct sockaddr_in6 *)found->ai_addr)->sin6_addr, 16);
  else
    return;
  keep(r, &a);
}

static void *look_up(void *argument)
{
  struct rlk_resolve *r = argument;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC}, *list = NULL;
  rlk_thread_name("redlock-resolve");
  r->error = getaddrinfo(r->host, NULL, &hints, &list);
  for (struct addrinfo *i = list; i && r->error == 0; i = i->ai_next)
    take(r, i);
  if (list)
    freeaddrinfo(list);
  atomic_store(&r->done, 1);
  rlk_bell_ring(r->ringer);
  rlk_resolve_drop(r);
  return NULL;
}

struct rlk_resolve *rlk_resolve_start(const char *host, uint16_t port, const struct rlk_address *used, int ringer)
{
  struct rlk_resolve *r = calloc(1, sizeof *r + strlen(host) + 1);
  if (!r)
    return NULL;
  strcpy(r->host, host);
  r->port = port;
  r->used = *used;
  r->ringer = fcntl(ringer, F_DUPFD_CLOEXEC, 0);
  atomic_store(&r->users, 2);
  if (r->ringer >= 0 && rlk_thread_start(look_up, r) == 0)
    return r;
  if (r->ringer >= 0)
    close(r->ringer);
  free(r);
  return NULL;
}

int rlk_resolve_several(const struct rlk_resolve *r)
{
  int most = r->of_family[0] > r->of_family[1] ? r->of_family[0] : r->of_family[1];
  return atomic_load(&r->done) && most > 1 ? most : 0;
}

int rlk_resolve_result(struct rlk_resolve *r, struct rlk_address *addresses, struct rlk_reason *why)
{
  if (!atomic_load(&r->done))
    return -EAGAIN;
  if (r->count == 0) {
    rlk_because(why, RLK_WHY_NAME, r->error ? gai_strerror(r->error) : "no address");
    return -1;
  }
  memcpy(addresses, r->addresses, (size_t)r->count * sizeof *addresses);
  return r->count;
}
