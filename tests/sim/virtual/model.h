/* model.h - what a model server has, for the files of it. */
#ifndef SIM_VIRTUAL_MODEL_H
#define SIM_VIRTUAL_MODEL_H

#include "../server.h"
#include "virtual.h"

enum { COUNTED_MAX = 64, TEXT_SIZE = 8192 };

struct counted {
  char name[24];
  int64_t calls;
};

enum setting {
  MAXMEMORY,
  MAXMEMORY_POLICY,
  REPLICA_READ_ONLY,
  REQUIREPASS,
  MASTERAUTH,
  CLUSTER_ENABLED,
  MIN_REPLICAS_TO_WRITE,
  SETTINGS
};

enum { PROGRAMS_MAX = 96 };

struct program {
  int64_t at_s; /* 0: none */
  char field[320], value[1024];
};

struct server {
  struct store stores[DATABASES], saved[DATABASES]; /* the second in its file */
  struct counted counted[COUNTED_MAX];
  int64_t expired;
  struct program programs[PROGRAMS_MAX];
  char settings[SETTINGS][64];
  int is_replica, master; /* -1: it does not reach its master */
  uint64_t history, former_history;
};

struct server *server_of(const struct request *request);
int is_yes(const struct server *server, enum setting setting);

/* ---- info.c ---- */

void add(char text[TEXT_SIZE], const char *format, ...) __attribute__((format(printf, 2, 3)));
int keys_in(const struct store *store);
void info(struct request *request);

#endif
