/* Who holds a resource. Every client keeps an entry on the nodes, under libredlock:c: and its number, which begins
 * its tokens: so others can find the maker of a token. No decision about a lock depends on this. */
#ifndef RLK_HOLDER_H
#define RLK_HOLDER_H

#include "../node/node.h"
#include "lock.h"

/* The holder of a resource, as nodes reported it to a look (inspect, who). */
struct rlk_holder {
  int nodes;                        /* how many nodes have reported this token */
  int is_found;                     /* by redlock_lock_who, beside the operation of the lock */
  uint64_t awaited;                 /* nodes whose answer is outstanding, as bits */
  int64_t readers;                  /* how many hold it together (the holder has the longest lease); 0: not shared */
  char token[RLK_TOKEN_SIZE + 1];   /* "" if it is none of ours */
  char entry[RLK_CLIENT_ENTRY_MAX]; /* of the client that made it; "" unknown */
};

/* Makes the entry of this client; again in a forked child. */
void rlk_holder_init(struct rlk_engine *engine);
/* Writes the entry, behind the requests queued there, so that it outlives a lease that begins now. For a held lock, and
 * for a waiter with a place: an attempt that fails leaves no entry. */
void rlk_holder_publish(struct rlk_node *node, int64_t ttl_ms, int64_t now_ns);

static inline void rlk_holder_show(struct rlk_node *node, int64_t ttl_ms, int64_t now_ns)
{
  if (now_ns + ttl_ms * RLK_NS_PER_MS > node->entry_until_ns && node->state == RLK_NODE_READY)
    rlk_holder_publish(node, ttl_ms, now_ns);
}

/* Asks for the value under the lock's key: 0, or -1 when memory is out. */
int rlk_holder_ask_value(struct rlk_node *node, const redlock_lock *lock, struct rlk_request request);
/* A single attempt asks so behind its SET. */
void rlk_holder_ask_behind(redlock_lock *lock, struct rlk_node *node, int64_t now_ns);
/* One token, or readers, were seen on a majority of all nodes: others hold the lock. */
int rlk_holder_is_seen(const redlock_lock *lock);
/* The number of nodes whose key is the one on `node`; when that ends, by node, in ends_ns, or NULL. */
int rlk_holder_count_like(const redlock_lock *lock, int node, int64_t *ends_ns);
/* The value of the key at the node: its holder's entry is asked for there. */
void rlk_holder_value(redlock_lock *lock, struct rlk_node *node, const char *value, size_t size, int64_t now_ns);
/* The key there is no string: asks for its type. */
void rlk_holder_look(redlock_lock *lock, struct rlk_node *node, int64_t now_ns);
/* The holder's token, behind the SET of a single attempt; the type of its key if that is no string; the entry of the
 * holder's client; the SET of this client's entry; another form of the own token (form.c). */
extern const struct rlk_ask rlk_row_behind, rlk_row_type, rlk_row_entry, rlk_row_show, rlk_row_form;
/* Their replies; lock may be NULL: the answer is no longer wanted. 1: an operation waits for it. */
int rlk_holder_outcome(redlock_lock *lock, struct rlk_node *node, const struct rlk_outcome *outcome);
/* An inspect waits for that, until the time of its round is over. */
int rlk_holder_is_awaited(const redlock_lock *lock);
void rlk_holder_stop_waiting(redlock_lock *lock);
void rlk_holder_drop(redlock_lock *lock);

#endif
