/* What a holder may count on: keys with its token that are on the servers, and keys that a server has lost without its
 * holder having been told.
 *
 * Servers lose keys here: a restart without data, FLUSHALL, a key deleted by hand, a master that becomes the replica of
 * an empty one. Without the restart guard others may then take the lock at once. What is promised is that a holder that
 * has been told stops counting: by the run_id or the role in a set-up that it has read to the end, or by the answer of
 * an extension that the token is gone. With the guard a holder keeps what it has, and nobody else is let in. */
#include "sim.h"

#include <string.h>

/* ---- what was lost ---- */

static int is_loss_of(const struct loss *loss, const char *token, int node)
{
  return loss->node == node && !memcmp(loss->token, token, TOKEN_SIZE);
}

void backing_lose(struct world *world, struct node *node, int index, int by_hand)
{
  struct resource *resource = &world->resources[index];
  struct key *key = &node->keys[index];
  server_expire(world, node, index);
  if (!key->live)
    return;
  uint32_t epoch = node->epoch++;
  struct reader string = {.expires_at = key->expires_at};
  memcpy(string.token, key->token, TOKEN_SIZE);
  memcpy(string.links, key->links, sizeof string.links);
  node->restarted_at = world->now;
  for (int i = 0; i == 0 || i < key->reader_count; i++) {
    const struct reader *holder = key->reader_count ? &key->readers[i] : &string;
    struct loss *loss = &resource->losses[resource->loss_count++ % LOSSES_MAX];
    *loss = (struct loss){.node = node->index, .by_hand = by_hand, .epoch = epoch, .expires_at = holder->expires_at};
    memcpy(loss->token, holder->token, TOKEN_SIZE);
    memcpy(loss->links, holder->links, sizeof loss->links);
    if (by_hand || !world->guarded)
      oracle_rob(world, index, loss->token);
  }
  keys_delete(world, node, index);
  TRACE(world, "node %d    loses the key of %s", node->index, resource->name);
}

static void lose_leases(struct world *world, struct node *node)
{
  keys_forget_queues(world, node);
  for (int i = 0; i < world->key_count; i++)
    backing_lose(world, node, i, 0);
  node->epoch++;
  node->restarted_at = world->now;
}

void backing_lose_all(struct world *world, struct node *node)
{
  lose_leases(world, node);
  marker_lose(node);
  keys_age_fences(world, node, 1);
}

/* The data are those of long ago: its marker was there, no lease of today, and fencing numbers had just begun. */
void backing_age(struct world *world, struct node *node)
{
  lose_leases(world, node);
  keys_age_fences(world, node, 0);
}

int backing_was_lost(const struct resource *resource, const char *token)
{
  for (int i = 0; i < LOSSES_MAX; i++)
    if (!memcmp(resource->losses[i].token, token, TOKEN_SIZE))
      return 1;
  return 0;
}

int backing_was_robbed(const struct world *world, const struct resource *resource, const char *token)
{
  for (int i = 0; i < LOSSES_MAX; i++)
    if (!memcmp(resource->losses[i].token, token, TOKEN_SIZE) && (resource->losses[i].by_hand || !world->guarded))
      return 1;
  for (int i = 0; i < EXCUSED_MAX; i++)
    if (!memcmp(resource->excused[i], token, TOKEN_SIZE))
      return 1;
  return 0;
}

/* ---- what a process has been told ---- */

void backing_start(struct process *process)
{
  for (int i = 0; i < NODES_MAX; i++)
    process->informed[i] = (struct informed){.server = -1};
}

/* The server has executed a command of the set-up; its reply ends there. */
void backing_setup(struct world *world, struct connection *connection, uint64_t reply_end, int tells, int is_replica)
{
  const struct node *node = &world->nodes[connection->node];
  connection->setup_end = reply_end;
  connection->other_end = 0;
  if (!tells)
    return;
  connection->setup_tells = 1;
  connection->setup_replica = is_replica; /* the last word on the role counts */
  connection->setup_incarnation = node->incarnation + (connection->to_replica ? REPLICA_INCARNATION : 0);
  connection->setup_epoch = node->epoch;
}

/* Once an answer to anything else is read, those to the set-up have been. */
void backing_other(struct connection *connection, uint64_t reply_end)
{
  if (connection->setup_tells && !connection->other_end)
    connection->other_end = reply_end;
}

static int has_read_setup(const struct connection *connection)
{
  if (connection->other_end && connection->read_total >= connection->other_end)
    return 1;
  return connection->read_total >= connection->setup_end && !connection->want_write &&
         connection->up.head == connection->up.end;
}

static void conclude(struct connection *connection)
{
  struct informed *informed = &connection->process->informed[connection->link_node];
  int other = informed->server != connection->node || informed->incarnation != connection->setup_incarnation;
  connection->setup_tells = 0;
  if (informed->server != connection->node) /* to the client it is a new server, with none of the keys */
    connection->process->world->nodes[connection->node].restarted_at = connection->process->world->now;
  if (other || connection->setup_replica)
    informed->epoch = connection->setup_epoch;
  informed->server = connection->node;
  informed->incarnation = connection->setup_incarnation;
  connection->process->world->changes++;
}

void backing_gone(struct connection *connection, int resource, const char *token, uint64_t reply_end)
{
  struct gone *gone = &connection->gone[connection->gone_count++ % GONE_KEPT];
  gone->resource = resource;
  gone->losses = connection->process->world->resources[resource].loss_count;
  gone->reply_end = reply_end;
  gone->read = 0;
  memcpy(gone->token, token, TOKEN_SIZE);
}

/* A token's holder learns that it is gone on the server, or has not learnt it after all. The same server under another
 * address has said nothing yet. */
static void tell(struct connection *connection, const struct gone *gone, int told)
{
  struct resource *resource = &connection->process->world->resources[gone->resource];
  int process = connection->process->index;
  uint8_t link = (uint8_t)(1u << connection->link_node);
  for (uint32_t i = gone->losses; i > 0 && gone->losses - i < LOSSES_MAX; i--) {
    struct loss *loss = &resource->losses[(i - 1) % LOSSES_MAX];
    if (!is_loss_of(loss, gone->token, connection->node) || !(loss->links[process] & link))
      continue;
    loss->told[process] = told ? loss->told[process] | link : loss->told[process] & (uint8_t)~link;
    connection->process->world->changes++;
    return;
  }
}

/* The client has read more of the connection. */
void backing_read(struct connection *connection)
{
  connection->reads++;
  if (connection->setup_tells && has_read_setup(connection))
    conclude(connection);
  for (int i = 0; i < GONE_KEPT; i++) {
    struct gone *gone = &connection->gone[i];
    if (!gone->reply_end || connection->read_total < gone->reply_end)
      continue;
    gone->reply_end = 0;
    gone->read = connection->reads;
    tell(connection, gone, 1);
  }
}

/* Of the bytes that were read last it may have thrown some away. */
void backing_close(struct connection *connection)
{
  for (int i = 0; i < GONE_KEPT; i++)
    if (connection->gone[i].read && connection->gone[i].read == connection->reads)
      tell(connection, &connection->gone[i], 0);
}

/* The addresses over which the process was told of the key, and not yet of its loss: neither by an answer nor by a
 * set-up. With the guard a set-up changes nothing: nobody else is let in there. */
static uint32_t untold_links(const struct process *process, const struct loss *loss)
{
  uint32_t untold = loss->links[process->index] & ~(uint32_t)loss->told[process->index];
  for (int i = 0; i < process->world->node_count && !process->world->guarded; i++) {
    const struct informed *informed = &process->informed[i];
    if (informed->server != loss->node || informed->epoch > loss->epoch)
      untold &= ~(UINT32_C(1) << i);
  }
  return untold;
}

/* ---- counting ---- */

struct backing { /* one key */
  uint32_t links;
  int64_t until;
};

struct backings {
  struct backing key[NODES_MAX * (NODES_MAX + 1)];
  int count;
};

static void add(struct backings *backings, uint32_t links, int64_t until)
{
  if (until > 0)
    backings->key[backings->count++] = (struct backing){links, until};
}

/* A key that was lost backs its holder like one that is there. Over the same address both are one to the holder. Over
 * another one they are two: no run_id tells that a server which was restarted is the one that was there. */
static void add_lost(struct backings *backings, int first, uint32_t untold, int64_t until)
{
  for (int i = first; i < backings->count; i++) {
    struct backing *key = &backings->key[i];
    if ((key->links & untold) && key->until < until)
      key->until = until;
    untold &= ~key->links;
  }
  if (untold)
    add(backings, untold, until);
}

/* The key that is on the server, and those that it has lost, the last one first: what was told of that concerns those
 * before, too. */
static void add_server(struct backings *backings, const struct process *process, int index, const char *token, int node)
{
  const struct resource *resource = &process->world->resources[index];
  const struct key *key = &process->world->nodes[node].keys[index];
  const struct reader *reader = keys_reader(key, token);
  int first = backings->count;
  uint32_t told = 0;
  if (key->live && !memcmp(key->token, token, TOKEN_SIZE))
    add(backings, key->links[process->index], key->expires_at);
  if (reader)
    add(backings, reader->links[process->index], reader->expires_at);
  for (uint32_t i = resource->loss_count; i > 0 && resource->loss_count - i < LOSSES_MAX; i--) {
    const struct loss *loss = &resource->losses[(i - 1) % LOSSES_MAX];
    uint32_t untold = is_loss_of(loss, token, node) ? untold_links(process, loss) : 0;
    if (!is_loss_of(loss, token, node))
      continue;
    add_lost(backings, first, untold & ~told, loss->expires_at);
    told |= loss->links[process->index] & ~untold;
  }
}

static int64_t nth_largest(struct backings *backings, int n)
{
  for (int i = 0; i <= n; i++)
    for (int j = backings->count - 1; j > i; j--)
      if (backings->key[j].until > backings->key[j - 1].until) {
        struct backing larger = backings->key[j];
        backings->key[j] = backings->key[j - 1];
        backings->key[j - 1] = larger;
      }
  return backings->key[n].until;
}

/* Until when a majority of the servers has the token, or has lost it without the process having been told. A server
 * with two addresses for everybody, for good, counts like two: that is a loss of tolerance, not of exclusion. */
int64_t backing_until(struct process *process, int resource, const char *token)
{
  const struct world *world = process->world;
  struct backings backings = {.count = 0};
  for (int i = 0; i < world->node_count; i++)
    add_server(&backings, process, resource, token, i == world->twin ? 0 : i);
  return backings.count > world->node_count / 2 ? nth_largest(&backings, world->node_count / 2) : 0;
}
