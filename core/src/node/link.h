/* A byte stream to one server. link.c has the only sockets of the core; TLS and the simulator have other tables. */
#ifndef RLK_LINK_H
#define RLK_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../rules/reason.h"

struct rlk_poller;
struct rlk_link;
struct rlk_tls_peer;
struct rlk_tls_stream;

/* Where to connect: a numeric address or a unix socket's path. */
struct rlk_address {
  int family; /* AF_INET, AF_INET6 or AF_UNIX */
  uint16_t port;
  uint8_t ip[16];
  char path[108];
};

/* No function blocks. Failures are -errno; -EAGAIN means later. */
struct rlk_link_ops {
  int (*open)(struct rlk_link *link, const struct rlk_address *address); /* 0 or -EINPROGRESS, or why not */
  int (*finish)(struct rlk_link *link); /* outcome of -EINPROGRESS, in the same terms */
  ssize_t (*write)(struct rlk_link *link, const char *data, size_t size);
  ssize_t (*read)(struct rlk_link *link, char *data, size_t size); /* 0: the server has closed */
  void (*want_write)(struct rlk_link *link, int on);               /* report when it can be written again */
  void (*close)(struct rlk_link *link);                            /* also after a failed open; then idle again */
  void (*abandon)(struct rlk_link *link);                          /* in a forked child: close only our copy */
  /* The table's own reason for an error, or for the step it has waited for (0); NONE: it has none. May be NULL. */
  enum rlk_why (*why)(const struct rlk_link *link, int error, struct rlk_reason *reason);
  /* How the connection is secured ("TLSv1.3"); NULL: it is not, or not yet. May be NULL. */
  const char *(*security)(const struct rlk_link *link);
  /* Is the server on this machine, and has its clock? May be NULL: it is not. */
  int (*is_local)(const struct rlk_link *link);
};

struct rlk_link {
  const struct rlk_link_ops *ops;
  void *context;             /* of the table: env->context of the client */
  struct rlk_poller *poller; /* NULL in the simulator */
  int node;                  /* index of the node it belongs to */
  uint32_t generation;       /* counts opens, so that an event of an earlier connection is known as such */
  int fd;                    /* -1 when closed; the simulator's own number there */
  int writing;               /* want_write is on */
  int pending;               /* there is more to read that the poller does not know of */
  struct rlk_tls_peer *peer; /* of TLS; else NULL, both */
  struct rlk_tls_stream *stream;
};

extern const struct rlk_link_ops rlk_link_sockets;
int rlk_link_is_local(const struct rlk_link *link); /* of a socket */

#endif
