/* The keys of a model server. It knows nothing of locks, of time, and of who asks. */
#include "store.h"

#include <stdlib.h>
#include <string.h>

void *heap_realloc(void *memory, size_t size);

/* ---- objects ---- */

static struct object *with_name(const struct store *store, const char *name, size_t size)
{
  for (int i = 0; i < store->count; i++)
    if ((size_t)store->objects[i]->name_size == size && !memcmp(store->objects[i]->name, name, size))
      return store->objects[i];
  return NULL;
}

struct object *store_find(const struct store *store, const char *name, size_t size)
{
  struct object *object = with_name(store, name, size);
  return object && object->type ? object : NULL;
}

struct object *store_make(struct store *store, const char *name, size_t size)
{
  struct object *object = with_name(store, name, size);
  if (object)
    return object;
  if (store->count == OBJECTS_MAX || size >= NAME_MAX_SIZE)
    return NULL;
  if (!store->objects[store->count]) {
    store->objects[store->count] = heap_realloc(NULL, sizeof *object);
    memset(store->objects[store->count], 0, sizeof *object);
  }
  object = store->objects[store->count++];
  memcpy(object->name, name, size);
  object->name_size = (int)size;
  object->resource = -1;
  object->type = TYPE_NONE;
  object->is_queue = object->is_touched = object->count = 0;
  object->expire_ms = 0;
  return object;
}

void store_touch(struct store *store, struct object *object)
{
  if (object->is_touched)
    return;
  object->is_touched = 1;
  store->touched[store->touched_count++] = object;
}

void store_delete(struct store *store, struct object *object)
{
  object->type = TYPE_NONE;
  object->expire_ms = 0;
  object->size = 0;
  object->count = 0;
  store_touch(store, object);
}

void store_clear(struct store *store)
{
  for (int i = 0; i < store->count; i++)
    store_delete(store, store->objects[i]);
}

void store_forget(struct store *store)
{
  store->count = store->touched_count = 0;
  memset(store->queues, 0, sizeof store->queues);
}

void store_copy(struct store *to, const struct store *from)
{
  for (int i = 0; i < from->count; i++) {
    const struct object *object = from->objects[i];
    if (!object->type)
      continue;
    struct object *made = store_make(to, object->name, (size_t)object->name_size);
    if (object->size)
      object_set_string(made, object->bytes, object->size);
    made->type = object->type;
    made->expire_ms = object->expire_ms;
    for (int j = 0; j < object->count; j++)
      object_add(made, object->members[j].score, object->members[j].text, (size_t)object->members[j].size);
  }
}

/* ---- strings ---- */

void object_set_string(struct object *object, const char *bytes, size_t size)
{
  if (size > object->room)
    object->bytes = heap_realloc(object->bytes, object->room = size + 64);
  memcpy(object->bytes, bytes, size);
  object->size = size;
  object->type = TYPE_STRING;
  object->count = 0;
}

/* ---- members ---- */

int object_index(const struct object *object, const char *text, size_t size)
{
  for (int i = 0; i < object->count; i++)
    if ((size_t)object->members[i].size == size && !memcmp(object->members[i].text, text, size))
      return i;
  return -1;
}

static int comes_before(const struct member *one, const struct member *other)
{
  int size = one->size < other->size ? one->size : other->size;
  int order = memcmp(one->text, other->text, (size_t)size);
  if (one->score != other->score)
    return one->score < other->score;
  return order ? order < 0 : one->size < other->size;
}

void object_remove(struct object *object, int index)
{
  object->count--;
  memmove(&object->members[index], &object->members[index + 1],
          (size_t)(object->count - index) * sizeof *object->members);
}

int object_add(struct object *object, double score, const char *text, size_t size)
{
  struct member member = {.score = score, .size = (int)size};
  int was = object_index(object, text, size), at = object->count;
  memcpy(member.text, text, size);
  if (was >= 0) {
    object_remove(object, was);
    at = object->count;
  } else if (object->count == object->members_room) {
    object->members_room = object->members_room ? 2 * object->members_room : 8;
    object->members = heap_realloc(object->members, (size_t)object->members_room * sizeof member);
  }
  while (at > 0 && comes_before(&member, &object->members[at - 1]))
    at--;
  memmove(&object->members[at + 1], &object->members[at], (size_t)(object->count - at) * sizeof member);
  object->members[at] = member;
  object->count++;
  return was < 0;
}
