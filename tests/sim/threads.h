/* Coroutines in the place of threads, forks, and the memory of processes that fork. */
#ifndef SIM_THREADS_H
#define SIM_THREADS_H

#include <stddef.h>
#include <stdint.h>

struct event;
struct process;
struct world;

/* ---- threads.c ---- */

void threads_forget(void);
void threads_open(struct process *process);
void threads_awake(struct process *process);
void threads_poke(struct process *process);
void thread_start(struct process *process, int number, void (*run)(struct process *process, int number));
void thread_event(struct world *world, const struct event *event);
void thread_wake(struct process *process, int number);
/* These are about the running thread. */
int thread_is_running(void);
uint32_t thread_switches(void);
void thread_look(int on);
void thread_nap(int64_t duration);
void thread_preempt(int64_t duration);

/* ---- arena.c ---- */

void *heap_realloc(void *memory, size_t size);
void heap_free(void *memory);
void *arena_use(const struct process *process);
void arena_return(void *before);
void arena_start(int index);
void arena_copy(int index);
void arena_put_back(int index);

/* ---- fork.c ---- */

void fork_process(struct process *process);
void fork_child(struct process *process);

/* ---- blocking.c ---- */

void blocking_start(struct process *process);
void blocking_keep(struct process *process);
void blocking_cancel(struct process *process);
void blocking_leave(struct process *process);
void blocking_overdue(struct world *world, const struct event *event);

#endif
