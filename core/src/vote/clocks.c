#include "clocks.h"

#include "../node/state.h"
#include "../rules/quorum.h"

#define MS RLK_NS_PER_MS
#define AHEAD_NS (1000 * MS)

/* ---- steps ---- */

/* Did it answer since, without the step that another node has made? Or with the same one, at what may be the same
 * moment? 0: it says nothing of it. */
static int witness(const struct rlk_voter *v, const struct rlk_step *step)
{
  if (!v->clock.at_ns || v->clock.at_ns <= step->from_ns || v->clock_since_ns >= step->to_ns)
    return 0;
  return rlk_step_may_be_same(&v->step, step) ? 1 : -1;
}

/* It has still to answer, and may show then that its clock was not stepped. */
static int is_awaited(const struct rlk_node *n, const struct rlk_step *step)
{
  return n->state == RLK_NODE_READY && !n->silent_ns && n->voter->clock_since_ns < step->to_ns;
}

/* This machine may have stood still for a moment, which its clock did not notice: then all nodes that can answer are
 * stepped by one amount (rule C.3.2). */
static int is_own(const struct rlk_net *net, const struct rlk_step *step)
{
  int alike = 0;
  if (net->node_count < 3 || step->high_ns > AHEAD_NS)
    return 0;
  for (int i = 0; i < net->node_count; i++) {
    int said = witness(net->nodes[i].voter, step);
    if (said < 0 || (said == 0 && is_awaited(&net->nodes[i], step)))
      return 0;
    alike += said;
  }
  return alike >= rlk_quorum(net->node_count);
}

static void tell_own(struct rlk_net *net, const struct rlk_step *step)
{
  char words[RLK_EVENT_DETAIL_SIZE];
  struct rlk_text text = rlk_text_in(words, sizeof words);
  rlk_text_format(
      &text,
      "the clocks of all nodes seem to be stepped forward by %lld ms: this machine may have stood still, and "
      "leases end earlier by as much",
      (long long)(step->high_ns / MS));
  rlk_event_add(&net->events, RLK_EVENT_WARNING, -1, words);
}

/* Each reading may show that a step was, or was not, that of all nodes. */
RLK_COLD static void judge_steps(struct rlk_net *net, int64_t now)
{
  int was_own = net->has_own_step, is_own_now = 0;
  const struct rlk_step *own = NULL;
  for (int i = 0; i < net->node_count; i++) {
    struct rlk_voter *v = net->nodes[i].voter;
    if (!v->step.high_ns)
      continue;
    v->is_own_step = is_own(net, &v->step);
    if (v->is_own_step)
      own = &v->step;
    if (v->quarantined_until_ns != RLK_NEVER)
      rlk_guard_quarantine(&net->nodes[i], now);
  }
  is_own_now = own && now < own->to_ns + rlk_guard_time_ns(net);
  net->has_own_step = is_own_now;
  if (is_own_now && !was_own)
    tell_own(net, own);
}

/* It is a clock like one that was never read. */
static void begin_anew(struct rlk_voter *v, int64_t now)
{
  v->clock_since_ns = now;
  v->is_right = 0;
}

void rlk_clocks_note(struct rlk_node *n, const struct rlk_clock_sample *sample)
{
  struct rlk_voter *v = n->voter;
  struct rlk_step step;
  if (!rlk_clock_is_known(&v->clock, sample->read_ns, RLK_FLOAT(&n->net->options, DRIFT_FACTOR)))
    begin_anew(v, sample->read_ns);
  step = rlk_clock_note(&v->clock, sample, RLK_FLOAT(&n->net->options, DRIFT_FACTOR));
  if (step.high_ns && !RLK_MUTANT(CLOCK_STEP_IGNORED)) {
    v->step = step;
    n->stepped_ns += step.high_ns;
    rlk_node_tell(n, RLK_OUTCOME_STEPPED);
    judge_steps(n->net, sample->read_ns);
  } else if (n->net->has_own_step) {
    judge_steps(n->net, sample->read_ns);
  }
}

/* ---- comparing ---- */

/* Is it right by the clock of this machine? That says nothing of a server that has the same one. */
static int is_vouched_for(const struct rlk_node *n, int64_t now)
{
  const struct rlk_env *env = &n->net->env;
  const struct rlk_link *link = &n->line->link;
  if (link->ops->is_local && link->ops->is_local(link))
    return 0;
  return n->voter->clock.low_ns + now - env->platform->wall_ns(env->context) <= AHEAD_NS;
}

/* It was read since then, and drift cannot hide a step since. */
static int is_known_since(const struct rlk_node *n, int64_t from_ns, int64_t now)
{
  const struct rlk_clock *clock = &n->voter->clock;
  return clock->at_ns >= from_ns && rlk_clock_is_known(clock, now, RLK_FLOAT(&n->net->options, DRIFT_FACTOR));
}

/* So many clocks cannot all be ahead. */
static int witnesses_min(const struct rlk_net *net)
{
  return net->node_count - rlk_quorum(net->node_count) + 1;
}

static int is_ahead(const struct rlk_node *n, const struct rlk_clock *const *clocks, int count, int64_t now)
{
  const struct rlk_net *net = n->net;
  return !n->voter->is_right &&
         rlk_clock_ahead_ns(&n->voter->clock, clocks, count, witnesses_min(net) - 1, now,
                            RLK_FLOAT(&net->options, DRIFT_FACTOR)) > AHEAD_NS &&
         !is_vouched_for(n, now);
}

/* A clock that was not ahead of the others when they were first compared stays right: if another one is set back later,
 * that shows in the other one. */
RLK_COLD static void note_those_ahead(struct rlk_net *net, int64_t from_ns, int64_t now)
{
  const struct rlk_clock *clocks[RLK_NODES_MAX];
  int count = 0;
  for (int i = 0; i < net->node_count; i++)
    if (is_known_since(&net->nodes[i], from_ns, now))
      clocks[count++] = &net->nodes[i].voter->clock;
  for (int i = 0; i < net->node_count && !RLK_MUTANT(CLOCK_STEP_IGNORED); i++) {
    struct rlk_node *n = &net->nodes[i];
    struct rlk_voter *v = n->voter;
    int is_ahead_now, was_ahead = now < v->ahead_until_ns;
    if (!is_known_since(n, from_ns, now))
      continue;
    is_ahead_now = is_ahead(n, clocks, count, now);
    v->is_right |= !is_ahead_now && count >= witnesses_min(net);
    v->ahead_until_ns = is_ahead_now ? v->clock_since_ns + rlk_guard_time_ns(net) : 0;
    if (!was_ahead && now < v->ahead_until_ns && n->state == RLK_NODE_READY) /* else it is told with the set-up */
      rlk_guard_tell(n, now);
  }
}

/* Nearly always all are known to be right. */
void rlk_clocks_compare(struct rlk_net *net, int64_t from_ns, int64_t now)
{
  int is_open = 0;
  if (!rlk_net_has_markers(net))
    return;
  for (int i = 0; i < net->node_count; i++)
    is_open |= !net->nodes[i].voter->is_right && is_known_since(&net->nodes[i], from_ns, now);
  if (is_open)
    note_those_ahead(net, from_ns, now);
}
