#include "eligibility.h"

#include <string.h>

#define KNOWN_NS (60000 * RLK_NS_PER_MS) /* how long a node's answer to a SET predicts the next one */

static int is_recent(int64_t moment_ns, int64_t now)
{
  return moment_ns && now - moment_ns < KNOWN_NS;
}

static int is_full(const struct rlk_line *l)
{
  return l->maxmemory > 0 && l->used_memory >= l->maxmemory;
}

/* What INFO says counts unless a SET was answered later. A snapshot that failed need not keep it from writing. */
enum rlk_why rlk_refusal(const struct rlk_node *n, struct rlk_reason *why, int64_t now)
{
  const struct rlk_line *l = n->line;
  int has_written_since = n->wrote_ns > n->informed_ns;
  char detail[RLK_WHY_SIZE];
  struct rlk_text text = rlk_text_in(detail, sizeof detail);
  if (is_full(l) && !has_written_since) {
    rlk_text_format(&text, "used_memory %lld, maxmemory %lld", (long long)l->used_memory, (long long)l->maxmemory);
    return rlk_because(why, RLK_WHY_FULL, detail);
  }
  if (is_recent(n->refused_set_ns, now)) {
    rlk_because(why, RLK_WHY_STORES_NO_KEY, n->refused_set_why.words);
    return why->why = n->refused_set_why.why == RLK_WHY_ERROR ? RLK_WHY_STORES_NO_KEY : n->refused_set_why.why;
  }
  if (strcmp(l->aof_write, "err") == 0 && !has_written_since)
    return rlk_because(why, RLK_WHY_AOF, NULL);
  if (strcmp(l->snapshot, "err") == 0 && !is_recent(n->wrote_ns, now))
    return rlk_because(why, RLK_WHY_SNAPSHOT, NULL);
  return RLK_WHY_NONE;
}

int rlk_would_grant(const struct rlk_node *n, int64_t now)
{
  struct rlk_reason why;
  return rlk_may_vote(n, now) && !rlk_refusal(n, &why, now);
}
