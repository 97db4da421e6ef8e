/* The step, run by every thread that works in a client, and the mutex around it. */
#ifndef RLK_STEP_H
#define RLK_STEP_H

#include "client.h"

/* Runs deadlines and renewals that are due at now; the caller flushes. */
void rlk_client_step(redlock_client *client, int64_t now_ns);
/* Takes the outcomes of a node that is awake. */
void rlk_client_hear(redlock_client *client, struct rlk_node *node, int64_t now_ns);
/* The same of any node, after every call that may yield outcomes. */
static inline void rlk_client_pull(redlock_client *client, struct rlk_node *node, int64_t now_ns)
{
  if (node->is_awake)
    rlk_client_hear(client, node, now_ns);
}

void rlk_client_flush(redlock_client *client);
/* Looks for input without waiting. */
void rlk_client_poll(redlock_client *client);
/* Does all that is due; another thread may drive meanwhile. */
void rlk_client_service(redlock_client *client);
void rlk_client_handle(redlock_client *client, const struct rlk_poll_event *events, int count);
void rlk_client_look_for_cancels(redlock_client *client);
/* At the door of every entry: notices a fork that no handler saw. */
void rlk_client_enter(redlock_client *client);
void rlk_client_leave(redlock_client *client);
void rlk_client_unlock(redlock_client *client);
void rlk_client_notify(redlock_client *client);      /* the public descriptor turns readable */
void rlk_client_wake_driver(redlock_client *client); /* ends the driver's sleep, once per burst */
/* Queued requests leave at once, or with the driver's next write. */
void rlk_client_send(redlock_client *client);
/* ... or leaves with the next redlock_client_process: the descriptor turns readable. */
void rlk_client_mark_queued(redlock_client *client);

#endif
