/* Memory of a process that may fork: all that the core allocates for it lies in one piece, which can be copied and put
 * back at the same place. So the child of a fork begins with what its parent had then, whatever the parent has done
 * since. Everything else is the system's memory. */
#include "sim.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ARENA_SIZE = 16 << 20, CLASSES = 32, ALIGNMENT = 16 };

struct arena { /* at its own beginning */
  size_t used;
  struct block *spare[CLASSES];
};

struct block { /* before each piece of memory; ALIGNMENT bytes */
  uint64_t size_class;
  struct block *next; /* while it is spare */
};

static struct arena *arenas[PROCESSES_MAX], *current;
static char *images[PROCESSES_MAX];

/* The names that the C library has for its own. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

/* ---- one arena ---- */

static struct arena *arena_of(const void *memory)
{
  for (int i = 0; i < PROCESSES_MAX; i++) {
    const char *base = (const char *)arenas[i];
    if (base && (const char *)memory >= base && (const char *)memory < base + ARENA_SIZE)
      return arenas[i];
  }
  return NULL;
}

static void *allocate(struct arena *arena, size_t size)
{
  unsigned size_class = 5;
  struct block *block;
  while ((size_t)1 << size_class < size + sizeof *block)
    size_class++;
  block = arena->spare[size_class];
  if (block) {
    arena->spare[size_class] = block->next;
  } else {
    if (arena->used + ((size_t)1 << size_class) > ARENA_SIZE)
      return NULL;
    block = (struct block *)((char *)arena + arena->used);
    arena->used += (size_t)1 << size_class;
  }
  block->size_class = size_class;
  return block + 1;
}

static size_t room_in(const void *memory)
{
  const struct block *block = (const struct block *)memory - 1;
  return ((size_t)1 << block->size_class) - sizeof *block;
}

/* ---- what the C library's functions become, for the protocol library, too ---- */

#define FOR_ALL __attribute__((visibility("default")))

FOR_ALL void *malloc(size_t size)
{
  return current ? allocate(current, size) : __libc_malloc(size);
}

FOR_ALL void *calloc(size_t count, size_t size)
{
  void *memory;
  if (!current)
    return __libc_calloc(count, size);
  if (size && count > SIZE_MAX / size)
    return NULL;
  memory = malloc(count * size);
  return memory ? memset(memory, 0, count * size) : NULL;
}

FOR_ALL void free(void *memory)
{
  struct arena *arena = memory ? arena_of(memory) : NULL;
  struct block *block = memory ? (struct block *)memory - 1 : NULL;
  if (!arena) {
    __libc_free(memory);
    return;
  }
  block->next = arena->spare[block->size_class];
  arena->spare[block->size_class] = block;
}

FOR_ALL void *realloc(void *memory, size_t size)
{
  void *more;
  if (memory && !arena_of(memory))
    return __libc_realloc(memory, size);
  if (memory && room_in(memory) >= size)
    return memory;
  more = malloc(size);
  if (more && memory)
    memcpy(more, memory, room_in(memory));
  if (more)
    free(memory);
  return more;
}

void *heap_realloc(void *memory, size_t size)
{
  memory = __libc_realloc(memory, size);
  if (!memory)
    abort();
  return memory;
}

/* ---- for processes ---- */

/* What is allocated from now on belongs to the process, or to nobody (NULL). Returns what it was before. */
void *arena_use(const struct process *process)
{
  void *before = current;
  current = process && process->forks ? arenas[process->index] : NULL;
  return before;
}

void arena_return(void *before)
{
  current = before;
}

/* Empty, for a new process. */
void arena_start(int index)
{
  struct arena *arena = arenas[index];
  if (!arena) {
    arena = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
      abort();
    arenas[index] = arena;
  }
  memset(arena, 0, sizeof *arena);
  arena->used = (sizeof *arena + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void arena_copy(int index)
{
  images[index] = heap_realloc(images[index], arenas[index]->used);
  memcpy(images[index], arenas[index], arenas[index]->used);
}

void arena_put_back(int index)
{
  memcpy(arenas[index], images[index], ((struct arena *)images[index])->used);
}
