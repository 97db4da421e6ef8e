/* job.h - CMD of `redlock run`: its process group, its terminal, and the guard that outlives redlock. */
#ifndef REDLOCK_JOB_H
#define REDLOCK_JOB_H

#include "cli.h"

struct guard {
  pid_t pid;
  int pipe;
};

struct job {
  pid_t pid; /* of CMD; its process group has the same number */
  bool running;
  int wait_status;
  struct guard guard;
  int tty;             /* the controlling terminal, -1 if there is none */
  bool takes_terminal; /* it gets the terminal whenever it is ours */
};

/* guard.c: a process that kills the group with SIGKILL if redlock ends without saying so. */
int guard_start(struct guard *guard);
void guard_watch(const struct guard *guard, pid_t group);
void guard_end(const struct guard *guard);

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
