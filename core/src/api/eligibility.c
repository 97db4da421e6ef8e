#include "eligibility.h"

#include <string.h>

#define KNOWN_NS (60000 * RLK_NS_PER_MS) /* so long a node's answer to a SET says what it does with the next */

static int is_recent(int64_t moment_ns, int64_t now)
{
  return moment_ns && now - moment_ns < KNOWN_NS;
}

static int is_full(const struct rlk_line *l)
{
  return l->maxmemory > 0 && l->used_memory >= l->maxmemory;
}

/* What INFO says counts unless a SET was answered later. A snapshot that failed need not keep it from writing. */
void rlk_refusal_words(const struct rlk_node *n, struct rlk_text *out, int64_t now)
{
  const struct rlk_line *l = n->line;
  int has_written_since = n->wrote_ns > n->informed_ns;
  if (is_full(l) && !has_written_since)
    rlk_text_format(out, "its memory is full (used_memory %lld, maxmemory %lld): it grants no lock until it has room",
                    (long long)l->used_memory, (long long)l->maxmemory);
  else if (is_recent(n->refused_set_ns, now))
    rlk_text_format(out, "it refuses to store a key: %s", n->refused_set_why);
  else if (strcmp(l->aof_write, "err") == 0 && !has_written_since)
    rlk_text_add(out, "it cannot write its append-only file (aof_last_write_status err): it grants no lock");
  else if (strcmp(l->snapshot, "err") == 0 && !is_recent(n->wrote_ns, now))
    rlk_text_add(out,
                 "its last snapshot failed (rdb_last_bgsave_status err): with stop-writes-on-bgsave-error it grants "
                 "no lock");
}

int rlk_would_grant(const struct rlk_node *n, int64_t now)
{
  struct rlk_text why = rlk_text_in(NULL, 0);
  if (!rlk_may_vote(n, now))
    return 0;
  rlk_refusal_words(n, &why, now);
  return why.length == 0;
}
