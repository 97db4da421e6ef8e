#include "growth.h"

#include <string.h>

#include "command.h"
#include "guard.h"

#define FLOOR_MS 10000 /* what every client uses where no marker is left: the default of ttl_ms */

#ifdef RLK_TEST_BUILD
int64_t rlk_test_floor_ms;
#endif

int64_t rlk_growth_floor_ms(const struct rlk_net *net)
{
  int64_t setting_ms = RLK_INT(&net->options, MAX_TTL_MS);
#ifdef RLK_TEST_BUILD
  if (setting_ms == RLK_AUTO && rlk_test_floor_ms)
    return rlk_test_floor_ms;
#endif
  return setting_ms == RLK_AUTO ? FLOOR_MS : setting_ms;
}

uint64_t rlk_growth_order(struct rlk_net *net)
{
  return ++net->order;
}

void rlk_growth_note(struct rlk_node *n, const struct rlk_marker *marker, uint64_t order)
{
  int is_new = !rlk_marker_is_same(&n->mark, marker);
  n->mark = *marker;
  n->read_order = order;
  if (!is_new)
    return;
  n->known_order = rlk_growth_order(n->net);
  n->net->raised_order = 0;
}

/* ---- what is sent ---- */

static void sent(struct rlk_node *n, size_t before, int64_t now)
{
  rlk_request_add(
      n->line, before,
      (struct rlk_request){.kind = RLK_REQUEST_GROWTH, .sent_ns = now, .lease_ns = (int64_t)rlk_growth_order(n->net)});
  n->is_growing = 1;
}

static void ask(struct rlk_node *n, int64_t now)
{
  struct rlk_line *l = n->line;
  size_t before = rlk_buffer_size(&l->out);
  if (!n->is_growing && rlk_requests_reserve(&l->requests, 1) == 0 &&
      rlk_command_get(&l->out, n->net->marker_key, n->net->marker_key_size) == 0)
    sent(n, before, now);
}

/* In place of the marker as it is known. */
static void change(struct rlk_node *n, const struct rlk_marker *marker, int64_t now)
{
  struct rlk_line *l = n->line;
  size_t before = rlk_buffer_size(&l->out);
  char text[RLK_MARKER_SIZE];
  struct rlk_text out = rlk_text_in(text, sizeof text);
  rlk_marker_write(marker, &out);
  if (!n->is_growing && rlk_requests_reserve(&l->requests, 1) == 0 &&
      rlk_command_change(&l->out, n->net->marker_key, n->net->marker_key_size, n->marker, text) == 0)
    sent(n, before, now);
}

/* ---- markers that are not complete ---- */

static uint64_t newest_marker(const struct rlk_net *net)
{
  uint64_t newest = 0;
  for (int i = 0; i < net->node_count; i++)
    if (net->nodes[i].known_order > newest)
      newest = net->nodes[i].known_order;
  return newest;
}

/* What the marker of another node says counts if it was read after this one was known to be there. Where none is
 * complete, all have to be read after the last of them was known: then they were all without at one time. 1 if that is
 * so; else it was asked for. */
static int is_read(struct rlk_node *other, const struct rlk_node *n, uint64_t newest, int64_t now)
{
  int is_complete = rlk_marker_is_complete(&other->mark);
  if (other->read_order > (is_complete ? n->known_order : newest))
    return 1;
  ask(other, now);
  return 0;
}

/* One complete marker of another node is enough; all that can be read are. */
static void complete(struct rlk_node *n, int64_t now)
{
  struct rlk_net *net = n->net;
  struct rlk_marker marker = n->mark;
  uint64_t newest = newest_marker(net);
  int all_are_read = 1, all_are_up = 1;
  for (int i = 0; i < net->node_count; i++) {
    struct rlk_node *other = &net->nodes[i];
    if (other == n)
      continue;
    if (other->state != RLK_NODE_READY || other->is_unmarked) {
      all_are_up = 0;
      continue;
    }
    all_are_read &= is_read(other, n, newest, now);
    if (other->mark.max_ttl_ms > marker.max_ttl_ms)
      marker.max_ttl_ms = other->mark.max_ttl_ms;
    if (other->mark.agreed_ms > marker.agreed_ms)
      marker.agreed_ms = other->mark.agreed_ms;
  }
  if (!all_are_read)
    return;
  if (!marker.max_ttl_ms && all_are_up)
    marker.max_ttl_ms = marker.agreed_ms = rlk_growth_floor_ms(net);
  marker.quarantine_ms = marker.max_ttl_ms;
  if (marker.max_ttl_ms)
    change(n, &marker, now);
}

/* ---- a longer TTL ---- */

/* 1 if all nodes have it as their max_ttl, as this client knows. */
static int raise_all(struct rlk_net *net, int64_t ttl_ms, int64_t now)
{
  int all = 1;
  for (int i = 0; i < net->node_count; i++) {
    struct rlk_node *n = &net->nodes[i];
    struct rlk_marker marker = n->mark;
    if (marker.max_ttl_ms >= ttl_ms)
      continue;
    marker.max_ttl_ms = ttl_ms;
    change(n, &marker, now);
    all = 0;
  }
  return all;
}

/* 1 if all nodes have been read since: then all had it at one time. */
static int look_again(struct rlk_net *net, int64_t now)
{
  int all = 1;
  for (int i = 0; i < net->node_count; i++)
    if (net->nodes[i].read_order < net->raised_order) {
      ask(&net->nodes[i], now);
      all = 0;
    }
  return all;
}

static int can_agree(const struct rlk_net *net)
{
  for (int i = 0; i < net->node_count; i++)
    if (net->nodes[i].state != RLK_NODE_READY || !rlk_marker_is_complete(&net->nodes[i].mark))
      return 0;
  return 1;
}

/* All nodes raise their max_ttl, are seen to have it at one time, and then grant leases that long. */
static void agree(struct rlk_net *net, int64_t now)
{
  int64_t ttl_ms = net->wanted_ms;
  if (!can_agree(net))
    return;
  if (!raise_all(net, ttl_ms, now)) {
    net->raised_order = 0;
    return;
  }
  if (!net->raised_order || net->raised_ms != ttl_ms) {
    net->raised_order = rlk_growth_order(net);
    net->raised_ms = ttl_ms;
  }
  if (!look_again(net, now))
    return;
  for (int i = 0; i < net->node_count; i++) {
    struct rlk_node *n = &net->nodes[i];
    struct rlk_marker marker = n->mark;
    marker.agreed_ms = ttl_ms;
    if (n->mark.agreed_ms < ttl_ms)
      change(n, &marker, now);
  }
}

void rlk_growth_go_on(struct rlk_net *net, int64_t now)
{
  int is_agreed = 1;
  if (rlk_guard_of(net) != RLK_GUARD_MARKER)
    return;
  for (int i = 0; i < net->node_count; i++) {
    struct rlk_node *n = &net->nodes[i];
    if (n->state == RLK_NODE_READY && !n->is_unmarked && !rlk_marker_is_complete(&n->mark))
      complete(n, now);
    is_agreed &= n->mark.agreed_ms >= net->wanted_ms;
  }
  if (!is_agreed)
    agree(net, now);
}

int rlk_growth_want(struct rlk_node *n, int64_t ttl_ms, int64_t now)
{
  struct rlk_net *net = n->net;
  struct rlk_text nowhere = rlk_text_in(NULL, 0);
  if (net->wanted_ms < ttl_ms)
    net->wanted_ms = ttl_ms;
  rlk_growth_go_on(net, now);
  return rlk_growth_blockers(net, &nowhere) ? RLK_QUARANTINED : RLK_WAITING;
}

int rlk_growth_blockers(const struct rlk_net *net, struct rlk_text *out)
{
  int count = 0;
  for (int i = 0; i < net->node_count; i++) {
    const struct rlk_node *n = &net->nodes[i];
    if ((n->state == RLK_NODE_READY && !n->is_unmarked) || rlk_node_can_ask(n, 0, 0) == RLK_WAITING)
      continue;
    rlk_text_format(out, "%s%s", count++ ? ", " : "", n->url.name);
  }
  return count;
}
