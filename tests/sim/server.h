/* server.h - what the files of the model server share. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "sim.h"

enum { ARGUMENTS_MAX = 512 };

struct argument {
  const char *bytes;
  size_t size;
};

struct request {
  struct world *world;
  struct node *node;
  struct connection *connection;
  struct stream *reply;
  size_t size;             /* of its bytes */
  int count;
  struct argument arguments[ARGUMENTS_MAX];
};

int64_t server_number(const struct request *request, int index);
void server_reply_number(struct request *request, char type, int64_t value);
struct key *server_key(struct request *request, int index);

/* ---- waitqueue.c ---- */

void waitqueue_join(struct request *request);
int waitqueue_hand_over(struct request *request);
void waitqueue_leave(struct request *request);
void waitqueue_exists(struct request *request);
void waitqueue_subscribe(struct request *request);

#endif
