#include "life.h"

#include <stdlib.h>

#include "../wait/room.h"
#include "step.h"

void rlk_client_add_node(redlock_client *c, const struct rlk_url *url)
{
  struct rlk_net *net = &c->engine.net;
  int index = net->node_count++;
  c->engine.voters[index] = (struct rlk_voter){.finding = RLK_FOUND_NOTHING};
  rlk_node_init(&net->nodes[index], net, index);
  net->nodes[index].voter = &c->engine.voters[index];
  net->nodes[index].url = *url;
}

void rlk_client_free_nodes(redlock_client *c, struct rlk_node *nodes, int count)
{
  for (int i = 0; i < count; i++) {
    rlk_timer_clear(&c->engine.net.timers, &nodes[i].timer);
    rlk_node_free(&nodes[i]);
    free(c->engine.peers[i].programs.text);
    c->engine.peers[i].programs.text = NULL;
  }
  free(nodes);
}

void rlk_client_free_texts(redlock_client *c)
{
  for (int i = 0; i < RLK_OPTION_COUNT; i++)
    free(c->engine.net.texts[i]);
}

static void destroy(redlock_client *c)
{
  rlk_claims_free(&c->engine);
  rlk_waits_free(c->engine.waits);
  rlk_client_free_nodes(c, c->engine.net.nodes, c->engine.net.node_count);
  rlk_timers_free(&c->engine.net.timers);
  rlk_timers_free(&c->engine.renewal_timers);
  if (!c->engine.net.env.stepped)
    rlk_poller_close(&c->engine.net.poller);
  rlk_client_free_texts(c);
  rlk_tls_free(c->engine.net.tls);
  rlk_events_free(&c->engine.net.events);
  free(c->bootstrap);
  rlk_eventcount_free(&c->eventcount);
  pthread_mutex_unlock(&c->mutex);
  pthread_mutex_destroy(&c->mutex);
  free(c);
}

void rlk_client_unref(redlock_client *c)
{
  if (c->driver_rings) /* now, since another thread may free the client as soon as the mutex is released */
    rlk_poller_wake(&c->engine.net.poller);
  c->driver_rings = 0;
  if (--c->users == 0)
    destroy(c);
  else
    rlk_client_leave(c);
}
