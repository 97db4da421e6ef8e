/* server.h - what the files of the model server share. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include <string.h>
#include <strings.h>

#include "sim.h"
#include "store.h"
#include "waiting.h"

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
  struct store *store;        /* in which it is executed, */
  int is_stray;               /* which is not that of the locks */
  int64_t clock_us, clock_ms; /* stand still meanwhile */
  int is_full;                /* no more memory is to be had, */
  const char *refuses_writes; /* or this is what it answers to all that write; NULL: it does not */
  int has_written;
  int is_served; /* by the model server alone: there are no clients of which an oracle knows */
  size_t size;   /* of its bytes */
  int count;
  struct argument arguments[ARGUMENTS_MAX];
};

static inline int is(const struct request *request, int index, const char *word)
{
  const struct argument *argument = &request->arguments[index];
  if (index >= request->count || ((*argument->bytes ^ *word) & ~0x20)) /* most differ there, whatever their case */
    return 0;
  size_t size = strlen(word);
  return argument->size == size && !strncasecmp(argument->bytes, word, size);
}

void server_reply(struct request *request, const char *text);
void server_reply_integer(struct request *request, int64_t value);
int server_is_text(const struct argument *argument, const char *text, size_t size);
int64_t server_number(const struct request *request, int index);
void server_reply_number(struct request *request, char type, int64_t value);
void server_reply_bulk(struct request *request, const char *bytes, size_t size);
void server_note_told(const struct request *request, uint8_t links[PROCESSES_MAX]); /* that its token is there */
void server_check_speaker(const struct request *request, const struct argument *token);
void server_begin(struct world *world, struct node *node, struct connection *connection, struct request *request);
int server_set_up(struct request *request);
void server_show(const struct request *request, size_t before); /* in the trace, with the reply since then */
/* The size of a request, 0 while it is incomplete, -1 if it is none. */
ssize_t server_parse(struct request *request, const char *bytes, size_t size);

/* ---- keys.c ---- */

int64_t server_clock_us(const struct world *world, const struct node *node);
struct store *store_of(const struct node *node, int is_stray);
/* The number of the resource whose key it is, or of which it is libredlock:<kind>:<resource>; -1: of none. */
int keys_resource(const struct world *world, const char *name, size_t size);
int keys_beside(const struct world *world, char kind, const char *name, size_t size);
struct object *keys_make(const struct world *world, struct store *store, const char *name, size_t size);
struct object *keys_live(struct request *request, const char *name, size_t size); /* NULL: it has ended, or never was */
void keys_look(struct request *request); /* the oracle looks at what the request has changed */
void keys_start(const struct node *node);

/* ---- scripts.c ---- */

void script_eval(struct request *request);
void script_command(struct request *request);
void script_forget(void); /* those that are known, of all servers */
int script_is_proof(const struct request *request);

/* ---- lua.c ---- */

void lua_command(struct request *request);
void lua_forget(void);

/* ---- mutate.c ---- */

/* The text that servers get of a script: as it is, but for what a mutant changes. */
const char *mutate(const struct world *world, const char *original, size_t original_size, size_t *size);

/* ---- marker.c ---- */

int marker_is_key(const struct request *request, int index);
int marker_is_asked_for(const struct request *request);
void marker_told(const struct request *request); /* it has replied with the marker */
void marker_check_ttl(const struct request *request, int64_t ttl_ms);
void marker_reply(struct request *request);
void marker_time(struct request *request);

/* ---- holder.c ---- */

int holder_is_entry(const struct request *request, int index);
void holder_set(struct request *request);
int holder_is_programs(const struct request *request); /* the script that tells which program it is */
void holder_programs(struct request *request);
void holder_reply(struct request *request);

#endif
