/* Memory of a process that may fork: all that the core allocates for it lies in one piece, which can be copied and put
 * back at the same place. So the child of a fork begins with what its parent had then, whatever the parent has done
 * since. Everything else lies in a piece of its own: the system's allocator took a tenth of the simulator's time. */
#include "sim.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 16, FINE_CLASSES = 64, CLASSES = FINE_CLASSES + 24 };

#define ARENA_SIZE ((size_t)16 << 20)
#define REST_SIZE ((size_t)4 << 30) /* as long as nobody writes there, it takes no memory */

struct arena { /* at its own beginning */
  size_t used, size;
  struct block *spare[CLASSES];
};

struct block { /* before each piece of memory; ALIGNMENT bytes */
  uint64_t size_class;
  union {
    struct arena *arena; /* whose it is, */
    struct block *next;  /* while it is spare */
  };
};

static char *all; /* the arenas of processes, one after the other, and that of the rest */
static struct arena *current, *rest;
static char *images[PROCESSES_MAX];

/* The names that the C library has for its own. */
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

/* ---- one arena ---- */

static struct arena *arena_at(size_t offset, size_t size)
{
  struct arena *arena = (struct arena *)(all + offset);
  memset(arena, 0, sizeof *arena);
  arena->used = (sizeof *arena + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  arena->size = size;
  return arena;
}

static void open_all(void)
{
  void *memory = mmap(NULL, PROCESSES_MAX * ARENA_SIZE + REST_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    abort();
  all = memory;
  madvise(all, PROCESSES_MAX * ARENA_SIZE + REST_SIZE, MADV_HUGEPAGE);
  current = rest = arena_at(PROCESSES_MAX * ARENA_SIZE, REST_SIZE);
}

/* What was allocated before this file could be asked is the system's. */
static int is_here(const void *memory)
{
  return all && (const char *)memory >= all && (const char *)memory < all + PROCESSES_MAX * ARENA_SIZE + REST_SIZE;
}

/* By sixteens up to 1024, then by doubles. */
static unsigned class_of(size_t size)
{
  if (size <= FINE_CLASSES * ALIGNMENT)
    return (unsigned)((size + ALIGNMENT - 1) / ALIGNMENT);
  return FINE_CLASSES + 54 - (unsigned)__builtin_clzll(size - 1);
}

static size_t size_of(uint64_t size_class)
{
  return size_class <= FINE_CLASSES ? size_class * ALIGNMENT : (size_t)1024 << (size_class - FINE_CLASSES);
}

static void *allocate(struct arena *arena, size_t size)
{
  unsigned size_class;
  struct block *block;
  if (size > REST_SIZE / 2)
    return NULL;
  size_class = class_of(size + sizeof *block);
  block = arena->spare[size_class];
  if (block) {
    arena->spare[size_class] = block->next;
  } else {
    if (arena->used + size_of(size_class) > arena->size)
      return NULL;
    block = (struct block *)((char *)arena + arena->used);
    arena->used += size_of(size_class);
  }
  block->size_class = size_class;
  block->arena = arena;
  return block + 1;
}

static size_t room_in(const void *memory)
{
  return size_of(((const struct block *)memory - 1)->size_class) - sizeof(struct block);
}

static void give_back(void *memory)
{
  struct block *block = (struct block *)memory - 1;
  struct arena *arena = block->arena;
  block->next = arena->spare[block->size_class];
  arena->spare[block->size_class] = block;
}

static void *reallocate(struct arena *arena, void *memory, size_t size)
{
  void *more;
  if (memory && room_in(memory) >= size)
    return memory;
  more = allocate(arena, size);
  if (more && memory) {
    memcpy(more, memory, room_in(memory));
    give_back(memory);
  }
  return more;
}

/* ---- what the C library's functions become, for the protocol library, too ---- */

#define FOR_ALL __attribute__((visibility("default")))

FOR_ALL void *malloc(size_t size)
{
  if (!all)
    open_all();
  return allocate(current, size);
}

FOR_ALL void *calloc(size_t count, size_t size)
{
  void *memory;
  if (size && count > SIZE_MAX / size)
    return NULL;
  memory = malloc(count * size);
  return memory ? memset(memory, 0, count * size) : NULL;
}

FOR_ALL void free(void *memory)
{
  if (is_here(memory))
    give_back(memory);
  else
    __libc_free(memory);
}

FOR_ALL void *realloc(void *memory, size_t size)
{
  if (!all)
    open_all();
  return memory && !is_here(memory) ? __libc_realloc(memory, size) : reallocate(current, memory, size);
}

/* Of the rest, for the simulator itself: no fork copies it. */
void *heap_realloc(void *memory, size_t size)
{
  if (!all)
    open_all();
  memory = reallocate(rest, memory, size);
  if (!memory)
    abort();
  return memory;
}

void heap_free(void *memory)
{
  if (memory)
    give_back(memory);
}

/* ---- for processes ---- */

static struct arena *arena_of(int index)
{
  return (struct arena *)(all + (size_t)index * ARENA_SIZE);
}

/* What is allocated from now on belongs to the process, or to nobody (NULL). Returns what it was before. */
void *arena_use(const struct process *process)
{
  void *before = current;
  current = process && process->forks ? arena_of(process->index) : rest;
  return before;
}

void arena_return(void *before)
{
  current = before;
}

/* Empty, for a new process. */
void arena_start(int index)
{
  arena_at((size_t)index * ARENA_SIZE, ARENA_SIZE);
}

void arena_copy(int index)
{
  images[index] = heap_realloc(images[index], arena_of(index)->used);
  memcpy(images[index], arena_of(index), arena_of(index)->used);
}

void arena_put_back(int index)
{
  memcpy(arena_of(index), images[index], ((struct arena *)images[index])->used);
}
