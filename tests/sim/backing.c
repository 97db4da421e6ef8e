/* What a holder may count on: keys with its token that are on the servers, and keys that a server has lost without its
 * holder having been told.
 *
 * Servers lose keys here: a restart without data, FLUSHALL, a key deleted by hand, a master that becomes the replica of
 * an empty one. There is no restart guard yet, so others may then take the lock at once. What is promised is that a
 * holder that has been told stops counting: by the run_id or the role in a set-up that it has read to the end, or by
 * the answer of an extension that the token is gone. */
#include "sim.h"

#include <string.h>

/* ---- what was lost ---- */

/* The last one: a token whose SET was sent again over another connection may have been lost twice. */
static struct loss *loss_of(struct resource *resource, const char *token, int node)
{
  for (uint32_t i = 1; i <= LOSSES_MAX; i++) {
    struct loss *loss = &resource->losses[(resource->loss_count - i) % LOSSES_MAX];
    if (loss->node == node && !memcmp(loss->token, token, TOKEN_SIZE))
      return loss;
  }
  return NULL;
}

void backing_lose(struct world *world, struct node *node, int index)
{
  struct resource *resource = &world->resources[index];
  struct key *key = &node->keys[index];
  server_expire(world, node, index);
  if (!key->live)
    return;
  struct loss *loss = &resource->losses[resource->loss_count++ % LOSSES_MAX];
  *loss = (struct loss){.node = node->index, .link = key->link, .epoch = node->epoch++};
  memcpy(loss->token, key->token, TOKEN_SIZE);
  node->restarted_at = world->now;
  server_free(world, key);
  oracle_rob(world, index, loss->token);
  TRACE(world, "node %d    loses the key of %s", node->index, resource->name);
}

void backing_lose_all(struct world *world, struct node *node)
{
  for (int i = 0; i < world->resource_count; i++)
    backing_lose(world, node, i);
  node->epoch++;
  node->restarted_at = world->now;
}

int backing_was_lost(const struct resource *resource, const char *token)
{
  for (int i = 0; i < LOSSES_MAX; i++)
    if (!memcmp(resource->losses[i].token, token, TOKEN_SIZE))
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
  connection->setup_replica |= is_replica;
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
  gone->reply_end = reply_end;
  gone->read = 0;
  memcpy(gone->token, token, TOKEN_SIZE);
}

/* The process counts on the server under another address, too, from which it has not heard yet. */
static int has_another_address(const struct connection *connection)
{
  for (int i = 0; i < connection->process->world->node_count; i++)
    if (i != connection->link_node && connection->process->informed[i].server == connection->node)
      return 1;
  return 0;
}

/* A token's holder learns that it is gone on the server, or has not learnt it after all. */
static void tell(struct connection *connection, const struct gone *gone, int told)
{
  struct loss *loss = loss_of(&connection->process->world->resources[gone->resource], gone->token, connection->node);
  uint32_t bit = UINT32_C(1) << connection->process->index;
  if (!loss || loss->link != connection->link_node || has_another_address(connection))
    return;
  loss->told = told ? loss->told | bit : loss->told & ~bit;
  connection->process->world->changes++;
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

/* Every address that leads to the server, as far as the process knows, has told of it. */
static int was_told(const struct process *process, const struct loss *loss)
{
  if (loss->told >> process->index & 1)
    return 1;
  for (int i = 0; i < process->world->node_count; i++) {
    const struct informed *informed = &process->informed[i];
    int is_new = informed->server < 0 && process->world->leads_to[process->index][i] == loss->node;
    if (is_new || (informed->server == loss->node && informed->epoch <= loss->epoch))
      return 0;
  }
  return 1;
}

/* ---- counting ---- */

struct ends {
  int64_t largest[NODES_MAX * (NODES_MAX + 1)];
  int count;
};

static void add(struct ends *ends, int64_t end)
{
  int at = ends->count++;
  for (; at > 0 && ends->largest[at - 1] < end; at--)
    ends->largest[at] = ends->largest[at - 1];
  ends->largest[at] = end;
}

/* The last loss of the token there over each address. */
static uint32_t untold_links(const struct process *process, const struct resource *resource, const char *token,
                             int node)
{
  uint32_t seen = 0, untold = 0;
  for (uint32_t i = 1; i <= LOSSES_MAX; i++) {
    const struct loss *loss = &resource->losses[(resource->loss_count - i) % LOSSES_MAX];
    uint32_t link = UINT32_C(1) << loss->link;
    if (loss->node != node || (seen & link) || memcmp(loss->token, token, TOKEN_SIZE))
      continue;
    seen |= link;
    if (!was_told(process, loss))
      untold |= link;
  }
  return untold;
}

/* The key that is on the server, and those that it has lost without the process having been told. All count where they
 * were set over different addresses: no run_id tells that a server which was restarted is the one that was there. */
static void add_server(struct ends *ends, struct process *process, int resource, const char *token, int node)
{
  struct world *world = process->world;
  const struct key *key = &world->nodes[node].keys[resource];
  uint32_t untold = untold_links(process, &world->resources[resource], token, node);
  if (key->live && !memcmp(key->token, token, TOKEN_SIZE)) {
    add(ends, key->expires_at);
    untold &= ~(UINT32_C(1) << key->link);
  }
  for (; untold; untold &= untold - 1)
    add(ends, RLK_NEVER);
}

/* Until when a majority of the servers has the token, or has lost it without the process having been told. A server
 * with two addresses for everybody, for good, counts like two: that is a loss of tolerance, not of exclusion. */
int64_t backing_until(struct process *process, int resource, const char *token)
{
  const struct world *world = process->world;
  struct ends ends = {.count = 0};
  for (int i = 0; i < world->node_count; i++)
    add_server(&ends, process, resource, token, i == world->twin ? 0 : i);
  return ends.count > world->node_count / 2 ? ends.largest[world->node_count / 2] : 0;
}
