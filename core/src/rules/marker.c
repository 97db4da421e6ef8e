#include "marker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLUSTER_LETTERS "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-"

/* A marker that is read must be written back unchanged, so no field is cut or runs into the next. */
static size_t written_size(const char *text, const struct rlk_marker *m)
{
  char again[RLK_MARKER_SIZE];
  struct rlk_text out = rlk_text_in(again, sizeof again);
  rlk_marker_head(m, &out);
  rlk_text_format(&out, "%" PRId64, m->since_ms);
  rlk_marker_tail(m, &out);
  return strncmp(text, again, out.length) == 0 ? out.length : 0;
}

int rlk_marker_read(const char *text, struct rlk_marker *m)
{
  size_t size;
  int fields;
  m->replid2[0] = 0;
  fields =
      sscanf(text, "v2 %40[0-9a-zA-Z] %15" SCNd64 " %5d %7d %16[0-9a-f] %11" SCNd64 " %32[0-9A-Za-z._-] %16[0-9a-f]",
             m->run_id, &m->since_ms, &m->nodes, &m->database, m->nonce, &m->max_ttl_ms, m->cluster, m->replid2);
  if (fields < 7 || m->since_ms < 0 || m->nodes <= 0 || m->database < 0 || m->max_ttl_ms <= 0)
    return 0;
  size = written_size(text, m);
  if (fields == 7)
    return size > 0 && text[size] == 0;
  return size > 0 && strlen(m->replid2) == RLK_REPLID2_DIGITS && (text[size] == 0 || text[size] == ' ');
}

void rlk_marker_head(const struct rlk_marker *m, struct rlk_text *out)
{
  rlk_text_format(out, "v2 %s ", m->run_id);
}

void rlk_marker_tail(const struct rlk_marker *m, struct rlk_text *out)
{
  rlk_text_format(out, " %d %d %s %" PRId64 " %s%s%s", m->nodes, m->database, m->nonce, m->max_ttl_ms, m->cluster,
                  m->replid2[0] ? " " : "", m->replid2);
}

int rlk_marker_is_same(const struct rlk_marker *one, const struct rlk_marker *other)
{
  return strcmp(one->run_id, other->run_id) == 0 && strcmp(one->nonce, other->nonce) == 0 &&
         one->nodes == other->nodes && one->database == other->database && strcmp(one->cluster, other->cluster) == 0 &&
         (one->since_ms == other->since_ms || other->since_ms == 0);
}

int rlk_replid2_is_same(const char *before, const char *replid2)
{
  return !before[0] || !replid2[0] || strcmp(replid2, RLK_REPLID2_NONE) == 0 || strcmp(before, replid2) == 0;
}

int rlk_cluster_is_valid(const char *name)
{
  size_t size = strlen(name);
  return size >= 1 && size <= RLK_CLUSTER_MAX && strspn(name, CLUSTER_LETTERS) == size;
}
