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
/* Lets it pass until then at most: 1 as soon as a call has returned; 0: it is that late. */
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
VIRTUAL_API void virtual_boot(int server, int with_data);
VIRTUAL_API void virtual_step_clock(int server, int64_t by_ns);

/* ---- paths to them, at ports from FIRST_PATH on: up is 0, down is 1 ---- */

VIRTUAL_API int virtual_path(int server); /* a new one: its number */
VIRTUAL_API void virtual_path_leads(int path, int server);
VIRTUAL_API void virtual_path_refuses(int path);
VIRTUAL_API void virtual_hold(int path, int direction, int only_those_of_now);
VIRTUAL_API void virtual_go(int path);
VIRTUAL_API void virtual_drop(int path, int is_late); /* late: what is held up is left for virtual_deliver */
VIRTUAL_API void virtual_deliver(int path);
VIRTUAL_API int virtual_connections(int path);
VIRTUAL_API size_t virtual_held(int path, int direction, char *bytes, size_t size); /* how many there are */

/* ---- paths.c ---- */

void paths_start(struct world *world);
int path_server(int path); /* -1: there is no such path */
void path_opens(int path, struct connection *connection);
int path_keeps(struct connection *connection, const struct event *event);

/* ---- server.c ---- */

void execute_request(struct request *request);
void count_command(const struct request *request, const char *name);
void start_server(int index);
void empty_server(int index);

#endif
