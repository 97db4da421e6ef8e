/* virtual.h - a world for tests in Python: model servers, the network to them, and clients that a test calls.
 *
 * One world at a time. Nothing happens in it but within these calls; time passes where a call waits, and where the test
 * lets it pass. A call that fails, because the world can not go on, leaves the reason in virtual_failure(). */
#ifndef SIM_VIRTUAL_H
#define SIM_VIRTUAL_H

#include <stddef.h>
#include <stdint.h>

#include "../../../core/include/redlock.h"

#define VIRTUAL_API __attribute__((visibility("default")))

enum { FIRST_PORT = 20000, FIRST_PATH = 21000, DATABASES = 4 };
enum boot { BOOT_EMPTY, BOOT_WITH_SAVED, BOOT_WITH_ALL }; /* with what data */

struct connection;
struct event;
struct request;
struct world;

/* Any function of redlock.h: integers and pointers are passed alike where tests run. */
typedef int64_t virtual_function(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

VIRTUAL_API void virtual_start(uint64_t seed, int64_t delay_min_ns, int64_t delay_max_ns);
VIRTUAL_API const char *virtual_failure(void);  /* "": there was none */
VIRTUAL_API const char *virtual_event(int ago); /* what happened, the last event for 0; "": no more is kept */

/* ---- time ---- */

VIRTUAL_API int64_t virtual_now_ns(void);   /* since the world began */
VIRTUAL_API int64_t virtual_epoch_ns(void); /* the time of day at which it did */
/* Lets it pass until then at most: 1 as soon as a call has returned or a watched path has news; 0: it is that late. */
VIRTUAL_API int virtual_run(int64_t until_ns);

/* ---- clients: each in a process of its own ---- */

VIRTUAL_API redlock_client *virtual_client(int *process);
/* Calls a function of redlock.h in a thread of the process: its number. */
VIRTUAL_API int virtual_call(int process, virtual_function *function, const int64_t *arguments);
/* 1: the call in that thread has returned, and the thread is free. */
VIRTUAL_API int virtual_returned(int process, int thread, int64_t *result);

/* ---- servers, at ports from FIRST_PORT on ---- */

VIRTUAL_API int virtual_server(void); /* a new one: its number */
VIRTUAL_API const char *virtual_command(int server, const char *bytes, size_t size, size_t *reply_size);
VIRTUAL_API void virtual_stop(int server, int on); /* as by SIGSTOP */
VIRTUAL_API void virtual_kill(int server);
VIRTUAL_API void virtual_boot(int server, enum boot how);
VIRTUAL_API void virtual_step_clock(int server, int64_t by_ns);

/* ---- paths to them, at ports from FIRST_PATH on: up is 0, down is 1 ---- */

VIRTUAL_API int virtual_path(int server); /* a new one: its number */
VIRTUAL_API void virtual_path_leads(int path, int server);
VIRTUAL_API void virtual_path_refuses(int path);
VIRTUAL_API void virtual_path_swallows(int path); /* all bytes, until it goes on */
VIRTUAL_API void virtual_path_delays(int path, int64_t up_ns, int64_t down_ns);
VIRTUAL_API void virtual_shut(int path, int on); /* connections wait until it is open */
VIRTUAL_API void virtual_hold(int path, int direction, int only_those_of_now);
VIRTUAL_API void virtual_go(int path);
VIRTUAL_API void virtual_drop(int path, int is_late); /* late: what is held up is left for virtual_deliver */
VIRTUAL_API void virtual_deliver(int path);
VIRTUAL_API int virtual_connections(int path);
VIRTUAL_API size_t virtual_held(int path, int direction, char *bytes, size_t size); /* how many there are */

/* ---- paths that are watched: what clients send waits there for the test, as for a proxy or a server of its own ----
 */

VIRTUAL_API void virtual_watch(int path, int on);
VIRTUAL_API int virtual_news(void); /* whether something came on such a path; virtual_run returns for it */
VIRTUAL_API int virtual_next_connection(int path, int after, uint32_t *serial);             /* -1: there are no more */
VIRTUAL_API size_t virtual_kept(int connection, uint32_t serial, char *bytes, size_t size); /* how many there are */
VIRTUAL_API size_t virtual_pass(int connection, uint32_t serial, size_t size); /* of them; 0 where they are held */
VIRTUAL_API void virtual_take(int connection, uint32_t serial);                /* all: the server never gets them */
VIRTUAL_API void virtual_say(int connection, uint32_t serial, const char *bytes, size_t size); /* to the client */
VIRTUAL_API void virtual_end(int connection, uint32_t serial, int is_reset);

/* ---- what a test listens to ---- */

VIRTUAL_API int virtual_readable(int descriptor); /* of a client */
VIRTUAL_API int virtual_listen(int server,
                               const char *channel); /* the number of a connection that has subscribed, or -1 */
VIRTUAL_API size_t virtual_heard(int connection, char *bytes, size_t size); /* takes them; how many there are */
VIRTUAL_API void virtual_listen_no_more(int connection);

/* ---- ears.c ---- */

void ears_start(struct world *world);

/* ---- paths.c ---- */

void paths_start(struct world *world);
int path_server(int path); /* -1: there is no such path */
void path_opens(int path, struct connection *connection);
int path_keeps(struct connection *connection, const struct event *event);
int64_t path_delay(const struct connection *connection, uint32_t kind);
int path_has_news(void);
size_t path_pass(int connection, uint32_t serial, size_t size);

/* ---- server.c ---- */

void execute_request(struct request *request);
void start_server(int index);
void boot_server(int index, enum boot how);

/* ---- info.c ---- */

void count_command(const struct request *request, const char *name);

#endif
