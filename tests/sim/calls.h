/* calls.h - one redis.call. */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include "script.h"

struct call {
  struct request *request;
  lua_State *lua;
  int count;
  const char *error; /* NULL: there is none, and the reply is on the stack */
  struct argument arguments[ARGUMENTS_MAX];
};

extern const char call_wrong_type[];

int call_says(const struct call *call, int index, const char *word);
void call_unknown(const struct call *call) __attribute__((noreturn)); /* the model server does not know this form */
int call_integer(struct call *call, int index, int64_t *value);       /* -1, and an error: it is none */
void call_push(struct call *call, const char *bytes, size_t size);
void call_push_integer(struct call *call, int64_t value);
void call_push_nil(struct call *call);
void call_push_score(struct call *call, double score);
/* 1: it is there and of that type; 0: it is not there; -1, and an error: it is of another. */
int call_live_as(struct call *call, int index, enum type type, struct object **object);
struct object *call_make(const struct call *call, int index, enum type type);
void call_touch(const struct call *call, struct object *object);

/* ---- members.c: hashes and sorted sets ---- */

void call_hset(struct call *call);
void call_hexists(struct call *call);
void call_hget(struct call *call);
void call_hgetall(struct call *call);
void call_hincrby(struct call *call);
void call_hdel(struct call *call);
void call_hrandfield(struct call *call);
void call_add_to_list(struct call *call);
void call_add_to_set(struct call *call);
void call_add_to_stream(struct call *call);
void call_zadd(struct call *call);
void call_zrem(struct call *call);
void call_zscore(struct call *call);
void call_zrank(struct call *call);
void call_zrange(struct call *call);
void call_zcard(struct call *call);
void call_zcount(struct call *call);
void call_zremrangebyscore(struct call *call);

#endif
