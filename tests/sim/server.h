/* server.h - what the files of the model server share. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include <string.h>
#include <strings.h>

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
  size_t size; /* of its bytes */
  int count;
  struct argument arguments[ARGUMENTS_MAX];
};

static inline int is(const struct request *request, int index, const char *word)
{
  const struct argument *argument = &request->arguments[index];
  size_t size = strlen(word);
  return index < request->count && argument->size == size && !strncasecmp(argument->bytes, word, size);
}

void server_reply(struct request *request, const char *text);
void server_reply_integer(struct request *request, int64_t value);
int server_is_text(const struct argument *argument, const char *text, size_t size);
int64_t server_number(const struct request *request, int index);
void server_reply_number(struct request *request, char type, int64_t value);
void server_reply_bulk(struct request *request, const char *bytes, size_t size);
struct key *server_key(struct request *request, int index);

int server_key_holds(const struct key *key, const struct argument *token); /* as a string */
int server_hash_holds(const struct key *key, const struct argument *token);
void server_set_key(struct request *request, struct key *key, const struct argument *token, int64_t ttl_ms);
void server_end_key_at(struct node *node, struct key *key, int64_t clock_ms);
void server_note_told(const struct request *request, struct key *key);
void server_check_speaker(const struct request *request, const struct argument *token);

/* ---- scripts.c ---- */

void script_eval(struct request *request);
void script_command(struct request *request);
int script_is_proof(const struct request *request);

/* ---- claimed.c: keys that are taken by a script ---- */

void claimed_claim(struct request *request);
void claimed_drop(struct request *request);
void claimed_look(struct request *request);

/* ---- permits.c: a free slot is picked ---- */

void permits_pick(struct request *request);

/* ---- fence.c ---- */

void fence_set(struct request *request);
void fence_raise(struct request *request);

/* ---- marker.c ---- */

int marker_is_key(const struct request *request, int index);
int marker_is_asked_for(const struct request *request);
void marker_register(struct request *request);
void marker_check_ttl(const struct request *request, int64_t ttl_ms);
void marker_reply(struct request *request);
void marker_time(struct request *request);

/* ---- holder.c ---- */

int holder_is_entry(const struct request *request, int index);
void holder_set(struct request *request);
void holder_reply(struct request *request);

/* ---- waitqueue.c ---- */

void waitqueue_join(struct request *request, int shares);
int waitqueue_hand_over(struct request *request);
void waitqueue_leave(struct request *request, int parts);
void waitqueue_exists(struct request *request);
void waitqueue_subscribe(struct request *request);

#endif
