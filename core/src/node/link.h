/* A byte stream to one server. link.c has the only sockets of the core; a simulator or TLS puts another table here. */
#ifndef RL_LINK_H
#define RL_LINK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rl_poller;
struct rl_link;

/* Where to connect: a numeric address or a unix socket's path. */
struct rl_address {
  int family;            /* AF_INET, AF_INET6 or AF_UNIX */
  uint16_t port;
  uint8_t ip[16];
  char path[108];
};

/* No function blocks. Failures are -errno; -EAGAIN means later. */
struct rl_link_ops {
  int (*open)(struct rl_link *link, const struct rl_address *address); /* 0 or -EINPROGRESS, or why not */
  int (*finish)(struct rl_link *link);                                 /* outcome of -EINPROGRESS, in the same terms */
  ssize_t (*write)(struct rl_link *link, const char *data, size_t size);
  ssize_t (*read)(struct rl_link *link, char *data, size_t size);      /* 0: the server has closed */
  void (*want_write)(struct rl_link *link, int on);                    /* report when it can be written again */
  void (*half_close)(struct rl_link *link);                            /* no more will be written (rule A.5) */
  void (*close)(struct rl_link *link);                                 /* also after a failed open; then idle again */
  void (*abandon)(struct rl_link *link);                               /* in a forked child: close only our copy */
};

struct rl_link {
  const struct rl_link_ops *ops;
  void *context;             /* of the table: env->context of the client */
  struct rl_poller *poller;  /* NULL in the simulator */
  int node;                  /* index of the node it belongs to */
  uint32_t generation;       /* counts opens, so that an event of an earlier connection is known as such */
  int fd;                    /* -1 when closed; the simulator's own number there */
  int writing;               /* want_write is on */
};

extern const struct rl_link_ops rl_link_sockets;

#endif
