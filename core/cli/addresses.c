/* addresses.c - for redlock doctor: does a name with several addresses lead to one server? */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { ADDRESSES_MAX = 8, LIMIT_MS = 1000 };

struct addresses {
  int count;
  char at[ADDRESSES_MAX][INET6_ADDRSTRLEN + 2]; /* as in a URL */
};

/* Where the host of a URL stands, without brackets; the size is 0 if it has no name. */
static const char *host_of(const char *url, size_t url_size, size_t *size)
{
  const char *end = url + url_size, *host = strstr(url, "://");
  *size = 0;
  if (host == NULL || host >= end || strncmp(url, "unix", 4) == 0)
    return NULL;
  host += 3;
  size_t authority = strcspn(host, "/?,");
  for (const char *at = host + authority; at > host; at--)
    if (at[-1] == '@') {
      authority -= (size_t)(at - host);
      host = at;
    }
  *size = *host == '[' ? 0 : strcspn(host, ":/?,");
  *size = *size < authority ? *size : authority;
  return host;
}

static void write_address(const struct addrinfo *found, char *out, size_t size)
{
  char text[INET6_ADDRSTRLEN] = "";
  bool is_6 = found->ai_family == AF_INET6;
  const void *from = is_6 ? (const void *)&((const struct sockaddr_in6 *)found->ai_addr)->sin6_addr
                          : (const void *)&((const struct sockaddr_in *)found->ai_addr)->sin_addr;
  inet_ntop(found->ai_family, from, text, sizeof text);
  snprintf(out, size, is_6 ? "[%s]" : "%s", text);
}

/* None unless there are several of one family. */
static struct addresses look_up(const char *name)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  struct addresses all = {.count = 0};
  int of_family[2] = {0, 0};
  if (getaddrinfo(name, NULL, &hints, &found) != 0)
    return all;
  for (struct addrinfo *at = found; at != NULL && all.count < ADDRESSES_MAX; at = at->ai_next) {
    write_address(at, all.at[all.count], sizeof all.at[0]);
    bool is_new = true;
    for (int i = 0; i < all.count; i++)
      is_new = is_new && strcmp(all.at[i], all.at[all.count]) != 0;
    all.count += is_new;
    of_family[at->ai_family == AF_INET6] += is_new;
  }
  freeaddrinfo(found);
  if (of_family[0] <= 1 && of_family[1] <= 1)
    all.count = 0;
  return all;
}

/* The run_id of the server at the URL; "" if none answers. Free it. */
static char *run_id_of(struct session *session, const char *url, const char *name)
{
  struct session other = {.args = session->args, .client = must(redlock_client_new()), .signal_fd = session->signal_fd};
  char *server_name = client_option(session->client, "tls_server_name"), *run_id = NULL;
  (void)options_set(other.client, session->args);
  if (redlock_client_set(other.client, "nodes", url) == REDLOCK_OK &&
      redlock_client_set(other.client, "guard", "off") == REDLOCK_OK &&
      redlock_client_set(other.client, "tls_server_name", *server_name != '\0' ? server_name : name) == REDLOCK_OK &&
      redlock_client_open_to_look(other.client) == REDLOCK_OK) {
    redlock_lock *lock = must(redlock_lock_new_probe(other.client));
    other.client_fd = redlock_client_fd(other.client);
    (void)session_operate(&other, lock, REDLOCK_INSPECT, LIMIT_MS);
    session->caught = other.caught;
    json_t *seen = client_description(other.client);
    run_id = format("%s", text_in(json_array_get(json_object_get(seen, "nodes"), 0), "run_id"));
    json_decref(seen);
    redlock_lock_free(lock);
  }
  redlock_client_free(other.client);
  free(server_name);
  return run_id != NULL ? run_id : format("%s", "");
}

/* How many servers answer at the addresses. */
static int count_servers(struct session *session, const char *url, size_t size, const char *name,
                         const struct addresses *all)
{
  char *run_ids[ADDRESSES_MAX];
  size_t host_size;
  const char *host = host_of(url, size, &host_size);
  int servers = 0;
  for (int i = 0; i < all->count; i++) {
    char *one = format("%.*s%s%.*s", (int)(host - url), url, all->at[i], (int)(size - (size_t)(host - url) - host_size),
                       host + host_size);
    run_ids[i] = run_id_of(session, one, name);
    bool is_new = *run_ids[i] != '\0';
    for (int other = 0; other < i; other++)
      is_new = is_new && strcmp(run_ids[other], run_ids[i]) != 0;
    servers += is_new;
    free(one);
  }
  for (int i = 0; i < all->count; i++)
    free(run_ids[i]);
  return servers;
}

static json_t *examine_node(struct session *session, const char *url, size_t size)
{
  json_t *node = must(json_object());
  size_t host_size;
  const char *host = host_of(url, size, &host_size);
  char *name = format("%.*s", (int)host_size, host != NULL ? host : "");
  struct addresses all = *name != '\0' ? look_up(name) : (struct addresses){.count = 0};
  if (all.count > 0) {
    json_object_set_new(node, "addresses", json_integer(all.count));
    json_object_set_new(node, "servers", json_integer(count_servers(session, url, size, name, &all)));
  }
  free(name);
  return node;
}

/* The client has read the list already, and found nothing wrong with it. */
json_t *addresses_examine(struct session *session)
{
  json_t *found = must(json_array());
  const char *where, *list = nodes_given(session->args, &where);
  while (session->caught == 0 && *(list += strspn(list, ", \t\r\n")) != '\0') {
    size_t size = strcspn(list, ", \t\r\n");
    json_array_append_new(found, examine_node(session, list, size));
    list += size;
  }
  return found;
}

bool addresses_differ(const json_t *node)
{
  return number_in(node, "servers") > 1;
}

void addresses_print(const json_t *node)
{
  if (addresses_differ(node))
    printf("    its name has %lld addresses and leads to %lld servers: two programs may ask different ones\n"
           "    advice: give each server a name of its own in the list of nodes\n",
           (long long)number_in(node, "addresses"), (long long)number_in(node, "servers"));
}
