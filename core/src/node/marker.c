#include "marker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rlk_marker_read(const char *text, struct rlk_marker *m)
{
  char setting[12];
  int end = 0;
  int fields = sscanf(
      text, "v1 %40[0-9a-zA-Z] %15" SCNd64 " %5d %16[0-9a-f] %11[0-9a-z] %9" SCNd64 " %9" SCNd64 " %9" SCNd64 "%n",
      m->run_id, &m->since_ms, &m->nodes, m->nonce, setting, &m->quarantine_ms, &m->max_ttl_ms, &m->agreed_ms, &end);
  if (fields != 8 || end == 0 || text[end] || m->since_ms < 0)
    return 0;
  m->setting_ms = strcmp(setting, "auto") == 0 ? 0 : strtoll(setting, NULL, 10);
  return m->quarantine_ms >= 0 && m->max_ttl_ms >= m->quarantine_ms && m->agreed_ms >= 0 &&
         m->agreed_ms <= m->max_ttl_ms && (m->setting_ms > 0 || strcmp(setting, "auto") == 0);
}

void rlk_marker_tail(const struct rlk_marker *m, struct rlk_text *out)
{
  rlk_text_format(out, "%d %s ", m->nodes, m->nonce);
  if (m->setting_ms)
    rlk_text_format(out, "%" PRId64, m->setting_ms);
  else
    rlk_text_add(out, "auto");
  rlk_text_format(out, " %" PRId64 " %" PRId64 " %" PRId64, m->quarantine_ms, m->max_ttl_ms, m->agreed_ms);
}

void rlk_marker_write(const struct rlk_marker *m, struct rlk_text *out)
{
  rlk_text_format(out, "v1 %s %" PRId64 " ", m->run_id, m->since_ms);
  rlk_marker_tail(m, out);
}

size_t rlk_marker_beginning(const char *text)
{
  const char *at = text;
  for (int words = 0; words < 5; words++) {
    at += strcspn(at, " ");
    at += *at == ' ';
  }
  return (size_t)(at - text);
}

int rlk_marker_is_same(const struct rlk_marker *one, const struct rlk_marker *other)
{
  return strcmp(one->run_id, other->run_id) == 0 && one->since_ms == other->since_ms &&
         strcmp(one->nonce, other->nonce) == 0;
}
