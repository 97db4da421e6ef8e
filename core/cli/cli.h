/* cli.h - shared by the files of the redlock command, which use the public header only. */
#ifndef REDLOCK_CLI_H
#define REDLOCK_CLI_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "redlock.h"

/* The numbers of sysexits.h, and 126 and 127 as env(1) uses them. */
enum exit_code {
  EXIT_DECLINED = 1,
  EXIT_USAGE = 64,
  EXIT_UNAVAILABLE = 69, /* no quorum, or timed out before any verdict */
  EXIT_INTERNAL = 70,
  EXIT_BUSY = 75,
  EXIT_LOST = 76,
  EXIT_REFUSED_CONFIG = 78,
  EXIT_CANNOT_RUN = 126,
  EXIT_NOT_FOUND = 127
};

#define CONFIG_DEFAULT "/etc/redlock.conf"

#define WAIT_DEFAULT_MS "40000" /* it outlives a quarantine by the default of max_ttl_ms */

struct args;
struct session;

/* A flag that is no option of the library, and where its value goes. */
struct flag {
  const char *name;  /* NULL: it has a letter only */
  char letter;       /* 0: none */
  const char *value; /* what the help calls its value; NULL: it takes none */
  const char *help;
  int (*read)(const struct flag *flag, const char *given, struct args *args); /* 0, or the exit code of a refusal */
  void *to;                                                                   /* of flag_switch and its like */
  size_t field;                                                               /* in struct args, if to is NULL */
  int most;                                                                   /* of flag_count */
};

#define FLAG(NAME, LETTER, VALUE, READ, HELP) {NAME, LETTER, VALUE, HELP, READ, NULL, 0, 0}
#define FLAG_TO(NAME, LETTER, VALUE, READ, TO, HELP) {NAME, LETTER, VALUE, HELP, READ, TO, 0, 0}
#define FLAG_COUNT(NAME, TO, MOST, HELP) {NAME, 0, "N", HELP, flag_count, TO, 0, MOST}
#define FLAG_IN_ARGS(NAME, LETTER, FIELD, HELP)                                                                        \
  {NAME, LETTER, NULL, HELP, flag_switch, NULL, offsetof(struct args, FIELD), 0}

/* The value that an option of the library has in this command unless a flag sets it. */
struct option_default {
  const char *option;
  const char *value;
};

/* What a command does with a lock, by which it has options of the library: those with one of these purposes, and all
 * that are about connections. */
enum purpose { KIND = 1, GRANT = 2, WAIT = 4, LEASE = 8, HOLD = 16, CONNECTION = 32 };

/* Each is defined in the file of its name and listed in main.c. */
struct command {
  const char *name;
  const char *group; /* of the overview, and its line there */
  const char *line;
  const char *operands; /* RESOURCE, RESOURCE..., TOKEN, [PATTERN] and -- CMD are read */
  const char *help;     /* what it does, in a line; then the rest, which may have several */
  unsigned purposes;
  const char *also;                      /* further options, "guard max_ttl_ms"; NULL: none */
  const struct option_default *defaults; /* NULL: none; option NULL at the end */
  const struct flag *const *flags;       /* of its own; NULL: none; NULL at the end */
  bool only_looks;                       /* at nodes: its client changes nothing there */
  int (*check)(const struct args *args); /* before anything is asked: 0, or the exit code of a refusal; NULL: nothing */
  int (*run)(struct session *session);   /* with its client opened, which is closed behind it: the exit code */
  int (*main)(const struct args *args);  /* in place of run: opens what it needs itself */
};

#define OVERVIEW(NAME, GROUP, LINE, OPERANDS) .name = NAME, .group = GROUP, .line = LINE, .operands = OPERANDS
/* clang-format off */
#define DEFAULTS(...) .defaults = (const struct option_default[]){__VA_ARGS__, {.option = NULL}}
#define FLAGS(...) .flags = (const struct flag *const[]){__VA_ARGS__, NULL}
/* clang-format on */

extern const struct command *const commands[]; /* main.c; NULL at the end */

/* One option of the library that the user has set. */
struct setting {
  const char *option; /* "ttl_ms" */
  char *where;        /* "--ttl 90s", "/etc/redlock.conf:3": for messages */
  char *value;        /* "90000" */
};

struct settings {
  struct setting *list;
  size_t count;
};

/* A parsed command line. */
struct args {
  const struct command *command;
  const char *resource;
  const char *const *more; /* resources of the same lock; status: to be looked at, too */
  int more_count;
  const char *token;
  char **job;         /* CMD and its arguments, NULL at the end */
  const char *prefix; /* NULL: none */
  char *nodes;
  char *config;
  struct settings from_file;
  struct settings from_environment;
  struct settings from_flags;
  int busy_exit;
  bool help;
  bool help_all;
  bool json;
  bool metrics;
  bool quiet; /* of what others hold */
  bool calm;  /* if it succeeds */
  bool verbose;
  bool listens; /* lead: no CMD is given, and nobody stands for leader */
  bool force;   /* no TOKEN is given: whoever holds the lock is meant */
  void *parser; /* owns the texts */
};

/* A client, its one lock and the signals that end a wait. */
struct session {
  const struct args *args;
  redlock_client *client;
  redlock_lock *lock;
  int client_fd;
  int signal_fd;
  int caught;           /* the signal that ended a wait, 0 if none */
  int64_t busy_wait_ms; /* how long to wait while others hold the lock; 0: as long as for anything else */
  int64_t waited_ms;    /* until the lock was taken or refused */
  int64_t leave_by_ms;  /* the time given to slower nodes, 0 if they were not awaited */
  bool child_ignored;   /* SIGCHLD was ignored when redlock was started */
  sigset_t watched;
  sigset_t mask_before;
};

/* args.c: 0, or the exit code after the refusal was printed; *done when there was nothing to do but to print help. */
int args_parse(struct args *args, const struct command *command, int argc, char **argv, bool *done);
void args_free(struct args *args);

/* args.c: what reads the value of a flag */
int flag_switch(const struct flag *flag, const char *given, struct args *args);          /* a bool */
int flag_count(const struct flag *flag, const char *given, struct args *args);           /* an int, from 1 to most */
int flag_duration(const struct flag *flag, const char *given, struct args *args);        /* an int64_t, in ms */
int flag_wait(struct args *args, const char *flag, const char *given, const char *unit); /* sets wait_ms */

/* flags.c: flags that several commands have */
extern const struct flag no_wait_flag, wait_seconds_flag, busy_exit_flag, quiet_flag, verbose_flag, calm_flag,
    metrics_flag;
#define FLAGS_OF_A_WAIT &no_wait_flag, &wait_seconds_flag, &busy_exit_flag, &quiet_flag, &verbose_flag

/* The flags of a command, as popt reads them: its own, and one for each of its options of the library. */
enum { FLAG_NODES = 1, FLAG_OPTION, FLAG_OWN = 1000 };
struct poptOption;
struct poptOption *flags_new(const struct command *command);
void flags_free(struct poptOption *flags);
const struct flag *flag_own(const struct command *command, int value); /* of a popt value; NULL: an option's */
bool flag_is_help(const struct poptOption *flag);
const char *flag_nearest(const struct poptOption *flags, const char *word);
char *flag_name(int index, const char *prefix);               /* "ttl", "no-renew"; free it */
char *flag_default(const struct command *command, int index); /* "10s"; free it */

/* help.c */
int help_overview(void);
void help_command(const struct command *command, const struct poptOption *flags, bool all);
void print_wrapped(const char *text, int left); /* words in a column from left on */
bool help_topic(const char *topic);             /* topics.c; false: there is no such topic */

/* options.c: the library's table of options */
int option_named(const char *name, size_t length); /* its index, -1 if there is none */
bool option_is(int index, int field, const char *text);
bool option_is_for(const struct command *command, const char *option);
void settings_add(struct settings *settings, const char *option, char *where, char *value); /* takes the texts over */
const struct setting *settings_find(const struct settings *settings, const char *option);   /* the last; or NULL */
const struct setting *setting_in_force(const struct args *args, const char *option);        /* the same; or NULL */
void settings_free(struct settings *settings);
/* The list of nodes and where it was set; NULL or "" if it was not. */
const char *nodes_given(const struct args *args, const char **where);
int options_set(redlock_client *client, const struct args *args); /* 0, or the exit code of a refusal, printed */
int refuse_options(const struct args *args, char *parts);         /* that contradict each other; frees the parts */

/* words.c: a refusal of the library with the options as the user writes them; `about` is the option that was refused,
 * or NULL. Free it. */
#define PART "\x1f" /* redlock_lock_message_parts */
#define NAMED(option) PART option PART
char *in_users_words(const struct args *args, const char *about, const char *parts);

/* config.c: reads the file with nodes and defaults, and the environment, as args_parse */
int config_read(struct args *args);

enum { TOKEN_SHOWN = 8 };
const char *token_shown(const char *token); /* holder.c: from so many digits on that no other lock of its client has */

/* duration.c */
int64_t duration_parse(const char *text);           /* ms; -1 "forever"; -2 not a duration */
char *duration_text(int64_t ms);                    /* "10s", "1500ms"; free it */
char *duration_words(int64_t ms);                   /* "9.8 s", "24 h 14 min", for people; free it */
char *time_words(const char *pattern, time_t when); /* as strftime, local; free it */

/* nearest.c: the word of a list most like `word`, NULL if none is close. */
const char *nearest(const char *word, const char *const *words);

/* text.c */
void *must(void *allocated);
char *format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
char *append(char *text, const char *pattern, ...) __attribute__((format(printf, 2, 3))); /* text goes; NULL: nothing */
size_t columns_of(const char *text); /* that it takes in a terminal, as far as its characters are of one each */
int bytes_in_columns(const char *text, int columns); /* of its first so many columns */
int width_in_bytes(const char *text, int columns);   /* for printf, which counts bytes, in the * of %*s and %-*s */
char *one_line(char *text); /* as it may be printed, whatever bytes a user or a server gave: changed in place */
int fail(int exit_code, const char *pattern, ...) __attribute__((format(printf, 2, 3)));
enum { WORDS_MS = 1000 };
bool takes_words(int patience_ms);        /* whether standard error takes a line without blocking */
int fail_of_system(const char *words);    /* EXIT_INTERNAL */
int fail_errno(const char *what);         /* EXIT_INTERNAL */
const char *failure_words(int exit_code); /* the last that fail() said with this code; NULL if there is none */
char *client_message(redlock_client *client);
char *client_message_parts(redlock_client *client);
json_t *client_description(redlock_client *client);            /* json_decref it */
json_t *described(redlock_client *client, const char *member); /* of that; json_decref it */
int64_t number_in(const json_t *object, const char *key);      /* 0 if it has none */
const char *text_in(const json_t *object, const char *key);    /* "" if it has none */
char *client_option(redlock_client *client, const char *option);
int64_t client_option_ms(redlock_client *client, const char *option); /* any number; -1 for auto */
int print_metrics(redlock_client *client); /* of its nodes, now: 0, or the exit code after the error was printed */
int fail_message(int exit_code, redlock_client *client, const char *where); /* with the client's message; where: "" */
void lock_set_number(redlock_lock *lock, const char *option, int64_t value);
char *lock_message(redlock_lock *lock);
char *lock_message_parts(redlock_lock *lock);
char *lock_token(redlock_lock *lock);
char *lock_holder(redlock_lock *lock);
char *lock_held_by(redlock_lock *lock);
char *node_name(redlock_client *client, int node);
char *node_answer(redlock_lock *lock, int node, int field);
char *bootstrap_words(redlock_client *client, int node);
char *lock_row(redlock_lock *lock, int64_t index, int field);
char *escaped(const char *text);

/* session.c */
int session_open(struct session *session, const struct args *args);
/* The status of an operation; CANCELLED by a signal, or after limit_ms, if that is not -1. */
int session_operate(struct session *session, redlock_lock *lock, int operation, int64_t limit_ms);
int session_await(struct session *session, redlock_lock *lock, int64_t limit_ms); /* the same, PENDING after limit_ms */
void session_poll(struct session *session, int limit_ms);    /* waits until something happens and handles it */
void session_pause(struct session *session, int64_t end_ms); /* until then, or a signal */
int session_signal(struct session *session);                 /* the next that arrived, 0 if none */
void session_settle(struct session *session);                /* lets slower nodes catch up */
void session_settle_first(struct session *session); /* the same in half of the time, before another operation */
int session_acquire(struct session *session);       /* the same, reported with --verbose */
int session_inspect(struct session *session);       /* its lock */
int session_inspect_all(struct session *session, redlock_lock *const *locks, int count); /* OK: each has its status */
void lock_settle_until(redlock_lock *lock, int64_t end_ms);
int session_confirm(struct session *session, int status); /* settles after an OK; OK if the lock is held then */
bool session_agrees(struct session *session);             /* asks on the terminal, behind what was said there */
int64_t session_option_ms(const struct session *session, const char *option);
int session_close(struct session *session, int exit_code);

/* report.c */
int exit_code_of(const struct args *args, int status);
char *outcome(const struct session *session, int status); /* in one line; free it */
const char *loss_name(redlock_lock *lock);                /* "expired", "gone", ...; NULL if it was not lost */
void set_bytes(json_t *report, const char *key, const char *bytes, size_t size);
/* Reports an action, for people: on standard error, as standard output is for scripts. Silent with --quiet. */
void say(const struct session *session, const char *pattern, ...) __attribute__((format(printf, 2, 3)));
void set_held_by(json_t *report, json_t *client); /* takes client, which may be NULL */
json_t *report_json(const struct session *session, int status);
int report_failure(struct session *session, int status);
int print_json(json_t *report);
int report_words(int code, int status, const char *words); /* in JSON, with nothing else; the exit code */
int report_refusal(int code);                        /* the same of what fail() said, unless something was reported */
int flush_answer(void);                              /* 0, or the exit code after the error was printed */
int64_t answer_ttl_ms(redlock_lock *lock, int node); /* -1 never ends, -2 unknown */

/* holder.c: who holds the lock, from the answers to an inspect */
bool is_answer(int status);                   /* of an inspect: the nodes were asked */
bool node_told(redlock_lock *lock, int node); /* did it say whether it has the key? */
int nodes_told(redlock_client *client, redlock_lock *lock);
bool node_has_key(redlock_lock *lock, int node);
int nodes_with_key(redlock_client *client, redlock_lock *lock, const char *token); /* this one, or with any if NULL */
json_t *holder_client(redlock_lock *lock); /* as redlock_lock_held_by; NULL if not known */
void holder_ask(struct session *session);  /* names the holder for that, and for the message of a busy lock */
bool has_holder(int verdict);              /* one, or readers */
char *holder_words(redlock_client *client, redlock_lock *lock); /* "by 0123abcd on 5 of 5 nodes, 9.8 s left"; free it */
void holder_say(struct session *session, const char *more);     /* asks the nodes; on standard error */

/* slots.c: the permits of the session's resource: all with --permits and without --slot, else one */
struct slots {
  struct session *session;
  redlock_lock **locks;
  int count, held, free, split;
};
void slot_set(redlock_lock *lock, int permits, int slot);
int permits_of(const char *token, size_t size);                  /* how many there are; 0: no permit, -1: no token */
int slots_inspect(struct slots *slots, struct session *session); /* OK, or the first other status but BUSY */
int slots_verdict(const struct slots *slots);                    /* FREE: at least one is */
char *slots_words(const struct slots *slots);                    /* "2 of 4 permits held"; free it */
void slots_free(struct slots *slots);

/* addresses.c: whether a name that has several addresses leads to one server */
json_t *addresses_examine(struct session *session); /* for each node an object to be added to its own */
bool addresses_differ(const json_t *node);
void addresses_print(const json_t *node);

/* programs.c: which programs use the nodes, as they have told these */
extern const struct flag programs_flag;
json_t *programs_examine(struct session *session); /* json_decref it */
void programs_print(const json_t *programs);       /* who has another list, and with the flag all */
void programs_say(const json_t *programs, int64_t below_ms, int64_t above_ms); /* those with such a max_ttl_ms */

/* kinds.c: the rights that kinds of lock need beyond those of a plain one */
extern const struct flag kinds_flag;
bool kinds_are_given(void);
json_t *kinds_examine(struct session *session); /* of each node {kind: [commands that are denied]}, or null */
bool kinds_lack(const json_t *node);            /* whether it denies any; the object is its "kinds" */
void kinds_print(const json_t *node);
char *kinds_line(const struct session *session); /* the ACL; free it */
void kinds_print_rights(void);                   /* for people: `redlock help acl` */

/* leave.c: how `redlock run` ends its hold: LOST if it turns out to be no longer held. *left says in words what
 * failed. */
int leave_release(struct session *session, char **left);
int leave_keep(struct session *session, int64_t left_ms, char **left); /* for left_ms more, then it expires */

/* events.c: the library's reports beside the results of calls */
/* About valid settings that are rarely intended, and why a lock waits: true. */
bool say_warnings(const struct session *session);

/* force.c: deletes the lock of any holder, once the user agrees; the exit code */
extern const struct flag force_flag, force_yes_flag;
int force_check(const struct args *args);
int force_release(struct session *session);

/* rows.c: locks that the nodes have */
json_t *list_rows(redlock_lock *lock);                                 /* of its list; json_decref it */
json_t *rows_nodes(const struct session *session, redlock_lock *lock); /* "node", "scanned" and "why" not */
char *client_words(const json_t *client);                              /* "worker-7 (pid 812 on web-3)"; free it */
void rows_print(FILE *out, const json_t *rows, int columns);           /* lines are cut there; 0: they are not */
int terminal_columns(int *lines);                                      /* 0: not known */
char *pattern_of(const char *words);                                   /* what begins so, or a pattern; free it */
char *pattern_of_name(const char *name, size_t *size);                 /* that alone; free it */

void print_columns(FILE *out, const char *line, int columns); /* so much of it as has so many; 0: all of it */

/* ls.c: whether it may go through all keys: 0, or the exit code; lists what matches the resource of the lock: a status.
 * It may say at a terminal how far it is. */
int list_may_run(struct session *session);
int list_run(struct session *session, redlock_lock *lock, int64_t limit_ms, bool tells);
int list_missing(const struct session *session, int status, bool is_cut, const json_t *rows,
                 json_t *nodes); /* says it */

/* status.c: what an inspect has found */
const char *verdict_name(int verdict); /* "held" */
char *verdict_words(const struct session *session, int verdict);
json_t *status_json(const struct session *session, int status, int verdict);

#endif
