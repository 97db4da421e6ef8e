/* A kqueue for Linux, so that what the core does with one can be tested there: an epoll, and a list of what is watched.
 * As on BSD it can be polled and watched by another, and a child does not inherit it. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "sys/event.h"
#undef close

/* Every queue watches a descriptor under this data, which /proc shows: so they are known under all their numbers. */
#define QUEUE_MARK UINT64_C(0x6b71756575650000)
#define QUEUE_MARK_TEXT "data: 6b71756575650000"

enum { QUEUES_MAX = 65536, EVENTS_MAX = 64 };

struct note {
  struct note *next;
  struct kevent event;
  int fd; /* of a timer */
};

static struct note *notes[QUEUES_MAX]; /* by the queue's number */
static int mark = -1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct note **find(int kq, uintptr_t ident, int filter)
{
  struct note **place = &notes[kq];
  while (*place && ((*place)->event.ident != ident || (*place)->event.filter != filter))
    place = &(*place)->next;
  return place;
}

static void drop(struct note **place)
{
  struct note *note = *place;
  *place = note->next;
  if (note->event.filter == EVFILT_TIMER)
    close(note->fd);
  free(note);
}

/* ---- fork ---- */

static int is_queue(const char *number)
{
  char path[300], line[200];
  int found = 0;
  FILE *info;
  snprintf(path, sizeof path, "/proc/self/fdinfo/%s", number);
  info = fopen(path, "r");
  while (info && !found && fgets(line, sizeof line, info))
    found = strstr(line, QUEUE_MARK_TEXT) != NULL;
  if (info)
    fclose(info);
  return found;
}

static void before_fork(void)
{
  pthread_mutex_lock(&mutex);
}

static void after_fork_parent(void)
{
  pthread_mutex_unlock(&mutex);
}

static void after_fork_child(void)
{
  DIR *folder = opendir("/proc/self/fd");
  struct dirent *entry;
  for (int kq = 0; kq < QUEUES_MAX; kq++)
    while (notes[kq])
      drop(&notes[kq]);
  while (folder && (entry = readdir(folder)))
    if (is_queue(entry->d_name))
      close(atoi(entry->d_name));
  if (folder)
    closedir(folder);
  pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void set_up(void)
{
  mark = eventfd(0, EFD_CLOEXEC);
  if (mark < 0 || pthread_atfork(before_fork, after_fork_parent, after_fork_child) != 0)
    abort();
}

/* ---- changes ---- */

int kqueue(void)
{
  struct epoll_event event = {.data.u64 = QUEUE_MARK};
  int kq = epoll_create1(0);
  if (kq >= 0 && (kq >= QUEUES_MAX || epoll_ctl(kq, EPOLL_CTL_ADD, mark, &event) != 0)) {
    close(kq);
    return -1;
  }
  pthread_mutex_lock(&mutex);
  while (kq >= 0 && notes[kq]) /* of one that was closed elsewhere */
    drop(&notes[kq]);
  pthread_mutex_unlock(&mutex);
  return kq;
}

int kqueue_close(int kq)
{
  pthread_mutex_lock(&mutex);
  while (notes[kq])
    drop(&notes[kq]);
  pthread_mutex_unlock(&mutex);
  return close(kq);
}

/* Tells the epoll which of its two filters a descriptor has. */
static int watch(int kq, uintptr_t ident)
{
  int has_read = *find(kq, ident, EVFILT_READ) != NULL, has_write = *find(kq, ident, EVFILT_WRITE) != NULL;
  struct epoll_event event = {.events = (has_read ? EPOLLIN | EPOLLRDHUP : 0u) | (has_write ? EPOLLOUT : 0u),
                              .data.u64 = ident};
  if (!has_read && !has_write)
    return epoll_ctl(kq, EPOLL_CTL_DEL, (int)ident, NULL) == 0 || errno == EBADF ? 0 : -1;
  if (epoll_ctl(kq, EPOLL_CTL_MOD, (int)ident, &event) == 0)
    return 0;
  return errno == ENOENT ? epoll_ctl(kq, EPOLL_CTL_ADD, (int)ident, &event) : -1;
}

/* Its descriptor is marked by data that is no descriptor's number. */
static int start_timer(int kq, struct note *note)
{
  struct itimerspec in = {.it_value = {note->event.data / 1000000, note->event.data % 1000000 * 1000}};
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = UINT64_MAX - note->event.ident};
  if (note->fd < 0) {
    note->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (note->fd < 0 || epoll_ctl(kq, EPOLL_CTL_ADD, note->fd, &event) != 0)
      return -1;
  }
  return timerfd_settime(note->fd, 0, &in, NULL);
}

static int add(int kq, const struct kevent *change)
{
  struct note **place = find(kq, change->ident, change->filter);
  int status;
  if (!*place) {
    *place = calloc(1, sizeof **place);
    if (!*place)
      return -1;
    (*place)->fd = -1;
  }
  (*place)->event = *change;
  status = change->filter == EVFILT_TIMER ? start_timer(kq, *place) : watch(kq, change->ident);
  if (status != 0)
    drop(place);
  return status;
}

static int apply(int kq, const struct kevent *change)
{
  struct note **place = find(kq, change->ident, change->filter);
  if (change->flags & EV_ADD)
    return add(kq, change);
  if (!*place) {
    errno = ENOENT;
    return -1;
  }
  drop(place);
  return change->filter == EVFILT_TIMER ? 0 : watch(kq, change->ident);
}

/* ---- waiting ---- */

static int tell(int kq, uintptr_t ident, int filter, struct kevent *out)
{
  struct note **place = find(kq, ident, filter);
  if (!*place)
    return 0;
  *out = (*place)->event;
  if (out->flags & EV_ONESHOT)
    drop(place);
  return 1;
}

static int collect(int kq, struct kevent *out, int room, int timeout_ms)
{
  struct epoll_event found[EVENTS_MAX / 2]; /* each may be told by both filters */
  int count = 0, n = epoll_wait(kq, found, room / 2 < EVENTS_MAX / 2 ? room / 2 : EVENTS_MAX / 2, timeout_ms);
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < n; i++) {
    uint64_t ident = found[i].data.u64;
    uint32_t what = found[i].events & (EPOLLERR | EPOLLHUP) ? EPOLLIN | EPOLLOUT : found[i].events;
    if (ident > UINT32_MAX)
      count += tell(kq, (uintptr_t)(UINT64_MAX - ident), EVFILT_TIMER, &out[count]);
    else {
      if (what & (EPOLLIN | EPOLLRDHUP))
        count += tell(kq, (uintptr_t)ident, EVFILT_READ, &out[count]);
      if (what & EPOLLOUT)
        count += tell(kq, (uintptr_t)ident, EVFILT_WRITE, &out[count]);
    }
  }
  pthread_mutex_unlock(&mutex);
  return n < 0 ? -1 : count;
}

int kevent(int kq, const struct kevent *changes, int change_count, struct kevent *events, int event_count,
           const struct timespec *timeout)
{
  int timeout_ms = timeout ? (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000) : -1;
  int status = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < change_count && status == 0; i++)
    status = apply(kq, &changes[i]);
  pthread_mutex_unlock(&mutex);
  return status != 0 || event_count == 0 ? status : collect(kq, events, event_count, timeout_ms);
}
