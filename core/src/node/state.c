#include "state.h"

void rlk_node_be(struct rlk_line *l, enum rlk_node_state state)
{
  l->state = state;
  l->node->state = l->node->line->state;
}

void rlk_node_hurry(struct rlk_node *n)
{
  n->is_awake = n->is_urgent = 1;
}

void rlk_node_tell(struct rlk_node *n, enum rlk_outcome_kind kind)
{
  n->news |= UINT32_C(1) << kind;
  rlk_node_hurry(n);
}

RLK_COLD void rlk_node_end_line(struct rlk_line *l, enum rlk_why why, const char *error)
{
  rlk_node_hurry(l->node);
  if (l->end.why)
    return;
  if (error)
    rlk_because_of(&l->end, why, error);
  else
    rlk_because(&l->end, why, NULL);
}
