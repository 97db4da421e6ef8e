/* Which locks the nodes have, and who holds and waits for them: for people; no decision about a lock depends on it. */
#ifndef RLK_LISTING_H
#define RLK_LISTING_H

#include "lock.h"

/* What a node has under the key of a row. */
struct rlk_cell {
  int64_t until_ns; /* when it ends; RLK_NEVER; 0: there is none, or the node was not asked */
  int64_t readers;
  char form;                      /* of its value, as the script says */
  char token[RLK_TOKEN_SIZE + 1]; /* "": it is none of this library */
};

/* A resource, or one of its slots. */
struct rlk_listed {
  size_t size;
  int slot;
  int64_t waiting, first_ms; /* as the node says that knows of most; since when the first one waits */
  char *first, *entry;       /* entries of clients: of the first that waits, and of the holder; NULL unknown */
  char client[RLK_TOKEN_CLIENT_DIGITS + 1]; /* whose entry that is */
  char *resource;
  struct rlk_cell cells[];
};

struct rlk_listing {
  struct rlk_listed **rows; /* in the order of their names */
  int count, room;
  int is_exact, is_cut; /* the pattern is a name; there are more */
  int first, batch;     /* the rows that the nodes are asked for; 0: for names still */
  int64_t keys;         /* gone through by now, on all nodes; about */
  uint64_t whole;       /* nodes that have told all, as bits */
  uint64_t due;         /* nodes whose next question waits for the timer, as bits */
  char *globs;          /* what the keys of locks and of slots are like, as bulk strings */
  size_t globs_size;
  struct {
    int64_t asked_ns;
    char cursor[24];
  } nodes[RLK_NODES_MAX];
};

/* A part of the reply of a script. */
struct rlk_field {
  const char *bytes;
  size_t size;
};

extern const struct rlk_verb rlk_list;
/* A row for that name, once. Without memory, or beyond what is kept, the list is cut. */
void rlk_listing_add(redlock_lock *lock, const char *resource, size_t size, int slot);
/* The first rows, which the nodes were asked for, unless they have no key any more; the others go. */
void rlk_listing_keep(redlock_lock *lock, int looked);
/* Takes the next field off the rest: 1, or 0 at the end. */
int rlk_field_take(struct rlk_field *rest, struct rlk_field *field);
int64_t rlk_field_number(const struct rlk_field *field);
/* The answer of a node about the rows that it was asked for: 1 if all of them are there. */
int rlk_listing_take_rows(redlock_lock *lock, int node, struct rlk_field rest, int64_t now_ns);
void rlk_listing_drop(redlock_lock *lock);
/* How many nodes have a key. */
int rlk_listed_keys(const redlock_lock *lock, const struct rlk_listed *row);
/* How many nodes have the same under the key of the row as that node; when that ends, by node, in ends_ns, or NULL. */
int rlk_listed_like(const redlock_lock *lock, const struct rlk_listed *row, int node, int64_t *ends_ns);

#endif
