/* Threads of a simulated process, so that the blocking calls of the core run on virtual time, too.
 *
 * A thread is a coroutine. It can lose the processor where it takes a mutex, reads the clock or writes, and it gives it
 * up where it waits: for a mutex, the eventcount, the poller, a nap. These functions are put in the place of the
 * system's by the linker (--wrap in CMakeLists.txt); outside of a simulated thread they are the system's own. */
#include "sim.h"
#include "../../core/src/base/eventcount.h"
#include "../../core/src/node/poller.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

enum { STACK_SIZE = 128 * 1024, THREADS_MAX = PROCESSES_MAX * THREADS_PER_PROCESS };

enum thread_state { THREAD_ENDED, THREAD_READY, THREAD_POLLS, THREAD_WAITS_FOR_BELL, THREAD_WAITS_FOR_MUTEX };

struct thread {
  struct process *process;
  void (*run)(struct process *process, int number);
  int number; /* within its process */
  enum thread_state state;
  const void *waits_for; /* the eventcount */
  uint32_t waiter;       /* its number on the eventcount */
  uint32_t serial;       /* of the event that lets it run */
  uint32_t switches;     /* how often it gave the processor up */
  int due;               /* it may run once its process does */
  int looking;           /* no preemption: the program looks at what a call has left */
  ucontext_t context;    /* in which it begins; */
  jmp_buf here;          /* it goes on from there, */
  int has_begun;         /* as this is so: swapcontext would ask the kernel for its signals each time */
  void *stack;
};

static struct thread threads[THREADS_MAX];
static struct thread *current;
static jmp_buf scheduler;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __real_nanosleep(const struct timespec *duration, struct timespec *left);
int __real_sched_yield(void);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_nanosleep(const struct timespec *duration, struct timespec *left);
int __wrap_sched_yield(void);
void __wrap_rlk_eventcount_wait(struct rlk_eventcount *eventcount, uint32_t rings, uint32_t waiter, int64_t timeout_ns);
void __wrap_rlk_eventcount_ring(struct rlk_eventcount *eventcount, const struct rlk_eventcount_set *set);
int __wrap_rlk_poller_open(struct rlk_poller *poller);
void __wrap_rlk_poller_close(struct rlk_poller *poller);
int __wrap_rlk_poller_wait(struct rlk_poller *poller, struct rlk_poll_event *events, int64_t timeout_ns);
void __wrap_rlk_poller_wake(struct rlk_poller *poller);
void __wrap_rlk_poller_notify(struct rlk_poller *poller);
int __wrap_rlk_poller_reopen(struct rlk_poller *poller);
void __wrap_rlk_alarm_forked(void);
int __wrap_rlk_registry_add(redlock_client *client);
void __wrap_rlk_registry_remove(redlock_client *client);
int __wrap_rlk_keeper_ensure(void);
void __wrap_rlk_alarm_set(redlock_client *client, int64_t at_ns);

/* ---- running ---- */

static void plan(struct thread *thread, int64_t at)
{
  struct world *world = thread->process->world;
  thread->serial++;
  if (at != RLK_NEVER)
    world_plan(world, at > world->now ? at - world->now : 0, EVENT_THREAD, (uint32_t)(thread - threads),
               thread->serial);
}

/* The running thread gives the processor up until `at`, or until somebody lets it run. */
static void give_up(enum thread_state state, int64_t at)
{
  struct thread *thread = current;
  thread->state = state;
  thread->switches++;
  plan(thread, at);
  current = NULL;
  if (!_setjmp(thread->here))
    _longjmp(scheduler, 1);
}

static void resume(struct thread *thread)
{
  thread->state = THREAD_READY;
  current = thread;
  if (_setjmp(scheduler))
    return;
  if (thread->has_begun)
    _longjmp(thread->here, 1);
  thread->has_begun = 1;
  setcontext(&thread->context);
}

static void steal(struct process *process, int64_t duration)
{
  int64_t until = process->world->now + duration;
  process->stolen += duration;
  if (until > process->stolen_until)
    process->stolen_until = until;
}

/* The scheduler needs a moment, now and then a long one. */
static void let_run(struct thread *thread)
{
  struct world *world = thread->process->world;
  int64_t moment = random_in(&world->random, 1000, 50000);
  thread->state = THREAD_READY;
  if (!world->calm && random_hits(&world->random, 4 * world->faults.lag)) {
    moment = random_in(&world->random, 0, 1) ? world_edge(world) : random_in(&world->random, 0, 5 * MS);
    steal(thread->process, moment);
    TRACE(world, "process %d thread %d is let run only in %.3f ms", thread->process->index, thread->number,
          (double)moment / MS);
  }
  plan(thread, world->now + moment);
}

static void enter(void)
{
  struct thread *thread = current;
  thread->run(thread->process, thread->number);
  thread->process->running--;
  give_up(THREAD_ENDED, RLK_NEVER);
}

void thread_start(struct process *process, int number, void (*run)(struct process *process, int number))
{
  struct thread *thread = &threads[process->index * THREADS_PER_PROCESS + number];
  thread->process = process;
  thread->run = run;
  thread->number = number;
  thread->due = thread->looking = 0;
  if (!thread->stack && !(thread->stack = heap_realloc(NULL, STACK_SIZE)))
    abort();
  getcontext(&thread->context);
  thread->context.uc_stack.ss_sp = thread->stack;
  thread->context.uc_stack.ss_size = STACK_SIZE;
  thread->context.uc_link = NULL;
  makecontext(&thread->context, enter, 0);
  thread->has_begun = 0;
  process->running++;
  thread->state = THREAD_READY;
  plan(thread, process->world->now);
}

void thread_event(struct world *world, const struct event *event)
{
  struct thread *thread = &threads[event->index];
  (void)world;
  if (event->serial != thread->serial || thread->state == THREAD_ENDED)
    return;
  if (thread->process->asleep)
    thread->due = 1;
  else
    resume(thread);
  if (!thread->process->running)
    process_threads_ended(thread->process);
}

static int has_ended(const struct process *process, int number)
{
  return threads[process->index * THREADS_PER_PROCESS + number].state == THREAD_ENDED;
}

/* A new world: what ran in the one before is forgotten. */
void threads_forget(void)
{
  for (int i = 0; i < THREADS_MAX; i++) {
    threads[i].state = THREAD_ENDED;
    threads[i].serial = 0;
  }
}

void threads_awake(struct process *process)
{
  for (int i = 0; i < THREADS_PER_PROCESS; i++) {
    struct thread *thread = &threads[process->index * THREADS_PER_PROCESS + i];
    if (!thread->due)
      continue;
    thread->due = 0;
    plan(thread, process->world->now);
  }
}

int thread_is_running(void)
{
  return current != NULL;
}

uint32_t thread_switches(void)
{
  return current->switches;
}

void thread_look(int on)
{
  current->looking = on;
}

void thread_nap(int64_t duration)
{
  give_up(THREAD_READY, current->process->world->now + duration);
}

void thread_preempt(int64_t duration)
{
  if (current->looking)
    return;
  TRACE(current->process->world, "process %d thread %d is preempted for %.3f ms", current->process->index,
        current->number, (double)duration / MS);
  steal(current->process, duration);
  thread_nap(duration);
}

/* Ends the nap of a thread, or its wait in the poller. */
void thread_wake(struct process *process, int number)
{
  struct thread *thread = &threads[process->index * THREADS_PER_PROCESS + number];
  if (thread->state == THREAD_READY || thread->state == THREAD_POLLS)
    let_run(thread);
}

/* ---- mutex ---- */

static struct process *with_threads(void)
{
  return current ? current->process : NULL;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
  struct process *process = with_threads();
  if (!process)
    return __real_pthread_mutex_lock(mutex);
  if (!current->looking && random_in(&process->world->random, 0, 49) == 0)
    thread_nap(random_in(&process->world->random, 0, 100000));
  process_lag(process);
  while (process->mutex_taken)
    give_up(THREAD_WAITS_FOR_MUTEX, RLK_NEVER);
  process->mutex_taken = 1;
  return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
  struct process *process = with_threads();
  if (!process)
    return __real_pthread_mutex_unlock(mutex);
  process->mutex_taken = 0;
  for (int i = 0; i < THREADS_PER_PROCESS; i++) {
    struct thread *thread = &threads[process->index * THREADS_PER_PROCESS + i];
    if (thread->state == THREAD_WAITS_FOR_MUTEX)
      let_run(thread);
  }
  return 0;
}

/* ---- naps ---- */

int __wrap_nanosleep(const struct timespec *duration, struct timespec *left)
{
  if (!current)
    return __real_nanosleep(duration, left);
  thread_nap(duration->tv_sec * 1000 * MS + duration->tv_nsec);
  return 0;
}

int __wrap_sched_yield(void)
{
  if (!current)
    return __real_sched_yield();
  thread_nap(random_in(&current->process->world->random, 0, 20000));
  return 0;
}

/* A moment in the process's own clock as one of true time. */
static int64_t after(const struct process *process, int64_t timeout_ns)
{
  return timeout_ns == RLK_NEVER ? RLK_NEVER : process_true_time(process, process_clock(process) + timeout_ns);
}

/* ---- the eventcount ---- */

void __wrap_rlk_eventcount_wait(struct rlk_eventcount *eventcount, uint32_t rings, uint32_t waiter, int64_t timeout_ns)
{
  if (rlk_eventcount_rings(eventcount, waiter) != rings || timeout_ns <= 0)
    return;
  current->waits_for = eventcount;
  current->waiter = waiter;
  give_up(THREAD_WAITS_FOR_BELL, after(current->process, timeout_ns));
}

void __wrap_rlk_eventcount_ring(struct rlk_eventcount *eventcount, const struct rlk_eventcount_set *set)
{
  for (int i = 0; i < THREADS_MAX; i++)
    if (threads[i].state == THREAD_WAITS_FOR_BELL && threads[i].waits_for == eventcount &&
        (set->bits[rlk_eventcount_word(threads[i].waiter)] & rlk_eventcount_bit(threads[i].waiter)))
      let_run(&threads[i]);
}

/* ---- the poller: its inner number is the process, wake is readable once somebody has rung ---- */

static struct process *opening;

void threads_open(struct process *process)
{
  opening = process;
}

int __wrap_rlk_poller_open(struct rlk_poller *poller)
{
  *poller = RLK_NO_POLLER;
  poller->inner = current ? current->process->index : opening->index;
  poller->wake.readable = 0;
  return 0;
}

void __wrap_rlk_poller_close(struct rlk_poller *poller)
{
  poller->inner = -1;
}

static struct process *of_poller(const struct rlk_poller *poller)
{
  return &opening->world->processes[poller->inner];
}

static int gather(struct rlk_poller *poller, struct rlk_poll_event *events)
{
  int count = network_gather(of_poller(poller), events, RLK_POLL_EVENTS);
  if (poller->armed_ns <= process_clock(of_poller(poller)))
    poller->armed_ns = RLK_NEVER;
  if (count == 0 && !poller->wake.readable)
    return -1;
  poller->wake.readable = 0;
  return count;
}

int __wrap_rlk_poller_wait(struct rlk_poller *poller, struct rlk_poll_event *events, int64_t timeout_ns)
{
  int count = gather(poller, events);
  if (count >= 0 || timeout_ns <= 0 || !current)
    return count > 0 ? count : 0;
  give_up(THREAD_POLLS, after(current->process, timeout_ns));
  if (!current->process->world->tester && random_hits(&current->process->world->random, 5000))
    return -EINTR;
  count = gather(poller, events);
  return count > 0 ? count : 0;
}

/* There is something to read or write. */
void threads_poke(struct process *process)
{
  for (int i = 0; i < THREADS_PER_PROCESS; i++) {
    struct thread *thread = &threads[process->index * THREADS_PER_PROCESS + i];
    if (thread->state == THREAD_POLLS)
      let_run(thread);
  }
}

void __wrap_rlk_poller_wake(struct rlk_poller *poller)
{
  poller->wake.readable = 1;
  threads_poke(of_poller(poller));
}

void __wrap_rlk_poller_notify(struct rlk_poller *poller)
{
  if (poller->outer >= 0) /* somebody has asked for the public descriptor */
    poller->notify.readable = 1;
}

/* ---- the keeper: one thread of the process, see blocking.c ---- */

int __wrap_rlk_poller_reopen(struct rlk_poller *poller)
{
  (void)poller;
  return 0;
}

void __wrap_rlk_alarm_forked(void)
{
}

int __wrap_rlk_registry_add(redlock_client *client)
{
  (void)client;
  return REDLOCK_OK;
}

void __wrap_rlk_registry_remove(redlock_client *client)
{
  (void)client;
}

int __wrap_rlk_keeper_ensure(void)
{
  if (current && current->process->world->tester && has_ended(current->process, KEEPER))
    blocking_keep(current->process);
  return REDLOCK_OK;
}

void __wrap_rlk_alarm_set(redlock_client *client, int64_t at_ns)
{
  (void)at_ns; /* it looks when the next one is due */
  for (int i = 0; current && i < PROCESSES_MAX; i++) {
    struct process *process = &current->process->world->processes[i];
    if (process->client == client && current->number != KEEPER)
      thread_wake(process, KEEPER);
  }
}
