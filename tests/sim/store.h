/* store.h - the keys of a model server: strings, hashes and sorted sets, each with an end. */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "permits.h"
#include "tester.h"

enum { OBJECTS_MAX = SIM_OBJECTS_MAX, NAME_MAX_SIZE = SIM_NAME_MAX, MEMBER_MAX = SIM_MEMBER_MAX };

enum type { TYPE_NONE, TYPE_STRING, TYPE_HASH, TYPE_ZSET, TYPE_LIST, TYPE_SET, TYPE_STREAM }; /* these only lie there */

struct member { /* of a sorted set, by score and then by its bytes; of a hash the field, with a number */
  double score;
  int size;
  char text[MEMBER_MAX];
};

struct object {
  enum type type;
  int64_t expire_ms; /* by the clock of the node; 0: it has no end */
  int resource;      /* whose lock it is, -1: of none */
  int is_queue;
  int is_touched;
  int name_size, count;
  char name[NAME_MAX_SIZE];
  char *bytes; /* a string */
  size_t size, room;
  struct member *members;
  int members_room;
};

struct store {
  struct object *objects[OBJECTS_MAX];
  int count, touched_count;
  struct object *touched[OBJECTS_MAX];
  struct object *queues[RESOURCES_MAX]; /* of those who wait; NULL: there never was one */
};

/* What is there under the name, whether or not it has ended meanwhile; NULL: nothing. */
struct object *store_find(const struct store *store, const char *name, size_t size);
/* The same, made if there is none: it has no type yet. NULL: there are too many, or the name is too long. */
struct object *store_make(struct store *store, const char *name, size_t size);
void store_touch(struct store *store, struct object *object);
void store_delete(struct store *store, struct object *object);
void store_copy(struct store *to, const struct store *from); /* all that is there, to one that is empty */
void store_clear(struct store *store);                       /* all of them */
void store_forget(struct store *store);                      /* and their names */

void object_set_string(struct object *object, const char *bytes, size_t size);
int object_index(const struct object *object, const char *text, size_t size);       /* of a member, -1: it has none */
int object_add(struct object *object, double score, const char *text, size_t size); /* 1: it is new */
void object_remove(struct object *object, int index);

#endif
