/* The public functions of redlock.h: each works inside its client. */
#ifndef RLK_API_H
#define RLK_API_H

#include "../client/step.h"

/* The client with its mutex held, after a look for a fork; NULL if it is NULL. */
static inline redlock_client *rlk_enter(redlock_client *c)
{
  if (!c)
    return NULL;
  pthread_mutex_lock(&c->mutex);
  rlk_client_enter(c);
  return c;
}

static inline redlock_client *rlk_enter_lock(redlock_lock *lock)
{
  return lock ? rlk_enter(rlk_client_of(lock)) : NULL;
}

/* Gives the mutex back: the status, or REDLOCK_INVALID if there is no client. */
static inline int rlk_leave(redlock_client *c, int status)
{
  if (!c)
    return REDLOCK_INVALID;
  rlk_client_leave(c);
  return status;
}

/* ... the size of that text. */
static inline int64_t rlk_leave_text(redlock_client *c, const struct rlk_text *text)
{
  if (!c)
    return -REDLOCK_INVALID;
  rlk_client_leave(c);
  return (int64_t)text->length;
}

/* A function that only reads; `nothing` is returned for NULL. */
#define RLK_GETTER(type, name, nothing, value)                                                                         \
  type name(redlock_lock *lock)                                                                                        \
  {                                                                                                                    \
    redlock_client *c = rlk_enter_lock(lock);                                                                          \
    type result = c ? (value) : (nothing);                                                                             \
    rlk_leave(c, REDLOCK_OK);                                                                                          \
    return result;                                                                                                     \
  }

/* By enum redlock_operation; NULL: there is no such operation. */
const struct rlk_verb *rlk_verb_of(int operation);

#endif
