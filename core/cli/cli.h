/* cli.h - what the files of the redlock command share. It uses the public header only. */
#ifndef REDLOCK_CLI_H
#define REDLOCK_CLI_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "redlock.h"

/* The numbers of sysexits.h, and 126 and 127 as env(1) uses them. */
enum exit_code {
  EXIT_USAGE = 64,
  EXIT_UNAVAILABLE = 69, /* no quorum, or timed out before any verdict */
  EXIT_INTERNAL = 70,
  EXIT_BUSY = 75,
  EXIT_LOST = 76,
  EXIT_REFUSED_CONFIG = 78,
  EXIT_CANNOT_RUN = 126,
  EXIT_NOT_FOUND = 127
};

struct args;

/* The value that an option of the library has in this command unless a flag sets it. */
struct option_default {
  const char *option;
  const char *value;
};

struct command {
  const char *name;
  const char *operands;
  const char *summary;
  int (*main)(const struct args *args);  /* returns the exit code */
  const char *const *without;            /* options of the library that mean nothing here; NULL at the end */
  const struct option_default *defaults; /* NULL if it has none of its own; option NULL at the end */
};

/* One option of the library that was given as a flag. */
struct setting {
  const char *option; /* "ttl_ms" */
  char *flag;         /* "--ttl 90s": for messages */
  char *value;        /* "90000" */
};

/* What a command line said. */
struct args {
  const struct command *command;
  const char *resource;
  const char *token;
  char **job; /* CMD and its arguments, NULL at the end */
  char *nodes;
  struct setting *settings;
  size_t setting_count;
  int64_t kill_after_ms;
  int busy_exit;
  bool json;
  void *parser; /* owns the texts */
};

/* A client, its one lock and the signals that end a wait. */
struct session {
  const struct args *args;
  redlock_client *client;
  redlock_lock *lock;
  int signal_fd;
  int caught;            /* the signal that ended a wait, 0 if none */
  bool child_ignored;    /* SIGCHLD was ignored when redlock was started */
  sigset_t watched;
  sigset_t mask_before;
};

/* args.c: 0, or the exit code after the refusal was printed; *done when there was nothing to do but to print help. */
int args_parse(struct args *args, const struct command *command, int argc, char **argv, bool *done);
void args_free(struct args *args);

/* flags.c: the flags of a command; those of the library are made from its table of options. */
enum flag { FLAG_HELP = 1, FLAG_JSON, FLAG_BUSY_EXIT, FLAG_KILL_AFTER, FLAG_NODES, FLAG_OPTION };
struct poptOption *flags_new(const struct command *command);
void flags_free(struct poptOption *flags);
const char *flag_nearest(const struct poptOption *flags, const char *word);
bool option_is(int index, int field, const char *text);

/* duration.c */
int64_t duration_parse(const char *text); /* ms; -1 "forever"; -2 not a duration */
char *duration_text(int64_t ms);          /* "10s", "1500ms"; free it */
char *duration_words(int64_t ms);         /* "9.8 s", for people; free it */

/* nearest.c: the word of a list most like `word`, NULL if none is close. */
const char *nearest(const char *word, const char *const *words);

/* text.c */
void *must(void *allocated);
char *format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
int fail(int exit_code, const char *pattern, ...) __attribute__((format(printf, 2, 3)));
char *client_message(redlock_client *client);
char *client_description(redlock_client *client);
char *lock_message(redlock_lock *lock);
char *lock_token(redlock_lock *lock);
char *node_name(redlock_client *client, int node);
char *node_answer(redlock_lock *lock, int node, int field);

/* session.c */
int session_open(struct session *session, const struct args *args);
int session_operate(struct session *session, int operation, int64_t arg); /* its status; CANCELLED by a signal */
void session_poll(struct session *session, int limit_ms);                 /* until something happened; does it */
int session_signal(struct session *session);                              /* the next that arrived, 0 if none */
void session_settle(struct session *session);                             /* lets slower nodes catch up */
int session_take(struct session *session, int operation, int64_t arg);    /* operate and settle; OK: the lock is held */
int64_t now_ms(void);
int session_close(struct session *session, int exit_code);
void die_by(int signal_number);

/* report.c */
int exit_code_of(const struct args *args, int status);
json_t *report_json(const struct session *session, int status);
int report_failure(const struct session *session, int status);
int print_json(json_t *report);
int flush_answer(bool failed); /* 0, or the exit code after the error was printed */
int64_t answer_ttl_ms(redlock_lock *lock, int node); /* -1 never ends, -2 unknown */

/* loss.c: in words, from the client's events; free it. */
char *loss_reason(redlock_client *client);

/* one file each */
int run_main(const struct args *args);
int acquire_main(const struct args *args);
int extend_main(const struct args *args);
int release_main(const struct args *args);
int status_main(const struct args *args);

#endif
