/* tester.h - a world that belongs to a test, and is not made from a seed: virtual/world.c. */
#ifndef SIM_TESTER_H
#define SIM_TESTER_H

#include <stdint.h>

#ifndef SIM_NODES_MAX /* such a world has more of all */
#define SIM_NODES_MAX 7
#define SIM_PROCESSES_MAX 5
#define SIM_THREADS_MORE 0
#define SIM_OBJECTS_MAX 64
#define SIM_NAME_MAX 80
#define SIM_MEMBER_MAX 52
#endif

enum { NODES_MAX = SIM_NODES_MAX, PROCESSES_MAX = SIM_PROCESSES_MAX };

struct connection;
struct event;
struct request;
struct world;

struct tester {
  void (*execute)(struct request *request); /* in the place of servers whose clients an oracle watches */
  void (*count)(const struct request *request, const char *command);
  int (*keeps)(struct connection *connection, const struct event *event); /* what has arrived */
  int64_t (*delay)(const struct connection *connection, uint32_t kind);   /* on its way */
  void (*hear)(const char *event);
  void (*fail)(const char *why) __attribute__((noreturn));
};

/* ---- network.c ---- */

struct connection *network_fresh(struct world *world); /* NULL: there are too many */
void network_pass_on(struct world *world, struct connection *connection, uint32_t kind, size_t size);
void network_arrives(struct world *world, struct connection *connection, size_t size);
void network_says(struct world *world, struct connection *connection, const char *bytes, size_t size);
void network_ends(struct world *world, struct connection *connection, int is_reset);

#endif
