/* As much of kqueue's header as the core uses; ../kqueue.c has the functions. */
#ifndef SYS_EVENT_H
#define SYS_EVENT_H

#include <stdint.h>
#include <time.h>

enum { EVFILT_READ = -1, EVFILT_WRITE = -2, EVFILT_TIMER = -7 };
enum { EV_ADD = 0x1, EV_DELETE = 0x2, EV_ONESHOT = 0x10 };
enum { NOTE_USECONDS = 0x4 };

struct kevent {
  uintptr_t ident;
  short filter;
  unsigned short flags;
  unsigned fflags;
  int64_t data;
  void *udata;
};

#define EV_SET(event, i, f, fl, ff, d, u)                                                                              \
  (*(event) = (struct kevent){                                                                                         \
       .ident = (i), .filter = (short)(f), .flags = (unsigned short)(fl), .fflags = (ff), .data = (d), .udata = (u)})

int kqueue(void);
#define close kqueue_close /* its timers end with it */
int kqueue_close(int kq);
int kevent(int kq, const struct kevent *changes, int change_count, struct kevent *events, int event_count,
           const struct timespec *timeout);

#endif
