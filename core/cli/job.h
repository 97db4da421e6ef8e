/* job.h - CMD of `redlock run`: its process group, its terminal, and the guard that outlives redlock. */
#ifndef REDLOCK_JOB_H
#define REDLOCK_JOB_H

#include "cli.h"

#define NEVER_MS (INT64_MAX / 2)

/* What the guard does unless it is told something else before; in one piece (PIPE_BUF), and the newest counts. */
struct watch {
  pid_t group;     /* 0: none */
  int64_t term_ms; /* when SIGTERM is due, as now_ms(): the end of the lease */
  int64_t kill_ms;
};

struct guard {
  pid_t pid;
  int ends[2]; /* of the pipe to it, which never blocks */
};

struct job {
  pid_t pid; /* of CMD; its process group has the same number */
  bool running;
  int wait_status;
  struct guard guard;
  int tty;             /* the controlling terminal, -1 if there is none */
  bool takes_terminal; /* it gets the terminal whenever it is ours */
};

extern int64_t kill_after_ms; /* from SIGTERM to SIGKILL */

/* guard.c: a process that ends the group if redlock ends without saying so, or says nothing until the lease is over. */
int guard_start(struct guard *guard);
struct watch guard_watch(const struct session *session, pid_t group); /* until the lease is over */
void guard_tell(const struct guard *guard, struct watch watch);
void guard_end(const struct guard *guard);

/* listen.c: says who leads, until a signal comes; the exit code */
int listen_to_leaders(const struct args *args);

/* terminal.c */
int terminal_open(void);
bool terminal_is_ours(int tty);
bool terminal_give(const struct job *job);
bool terminal_take(const struct job *job); /* true if it was CMD's until now */
bool terminal_is_wanted(void);

/* job.c */
int job_start(struct job *job, const struct session *session);
void job_signal(const struct job *job, int number);
bool job_group_exists(const struct job *job);
int job_wait(struct job *job); /* 0 ended or nothing new, else the signal that stopped it */

#endif
