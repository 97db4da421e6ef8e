/* The rows of a list. */
#include <string.h>

#include "../lock/listing.h"
#include "api.h"
#include "held_by.h"

/* A node that has what most nodes have; -1: none has a key. */
static int node_of(const redlock_lock *lock, const struct rlk_listed *row, int *nodes)
{
  int node = -1;
  *nodes = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    int like = row->cells[i].until_ns ? rlk_listed_like(lock, row, i, NULL) : 0;
    if (like > *nodes) {
      node = i;
      *nodes = like;
    }
  }
  return node;
}

static const char *kind_of(const struct rlk_listed *row, const struct rlk_cell *cell)
{
  if (row->slot || (cell && rlk_token_permits(cell->token, strlen(cell->token)) > 0))
    return "permits";
  if (!cell)
    return "";
  switch (cell->form) {
  case 's': return "plain";
  case 'r': return "shared";
  case 'h': return "hash";
  default: return "other";
  }
}

/* As many as a majority knows of at least. */
static int64_t readers_of(const redlock_lock *lock, const struct rlk_listed *row)
{
  int64_t readers[RLK_NODES_MAX];
  for (int i = 0; i < lock->engine->net.node_count; i++)
    readers[i] = row->cells[i].form == 'r' ? row->cells[i].readers : 0;
  return rlk_valid_until(readers, lock->engine->net.node_count, lock->engine->quorum);
}

static void held_by(const redlock_lock *lock, const struct rlk_listed *row, const struct rlk_cell *cell,
                    struct rlk_text *out)
{
  int is_known = row->entry && strncmp(row->client, cell->token, RLK_TOKEN_CLIENT_DIGITS) == 0;
  rlk_text_add(out, ",\"held_by\":");
  if (!is_known || !rlk_entry_json(row->entry, "held_ms", rlk_held_ms(lock, cell->token), out)) {
    rlk_text_add(out, "null");
    return;
  }
  if (cell->form == 'r')
    rlk_text_format(out, ",\"readers\":%lld", (long long)readers_of(lock, row));
  rlk_text_add(out, "}");
}

static void holder(const redlock_lock *lock, const struct rlk_listed *row, int node, struct rlk_text *out, int64_t now)
{
  const struct rlk_cell *cell = &row->cells[node];
  int64_t ends_ns[RLK_NODES_MAX];
  rlk_listed_like(lock, row, node, ends_ns);
  rlk_text_add(out, ",\"holder\":");
  rlk_text_json(out, cell->token, strlen(cell->token), SIZE_MAX);
  rlk_text_format(out, ",\"holder_ttl_ms\":%lld", (long long)rlk_holder_left_ms(lock, ends_ns, now));
  held_by(lock, row, cell, out);
}

static void waiters(const struct rlk_listed *row, struct rlk_text *out)
{
  rlk_text_format(out, ",\"waiting\":%lld,\"first\":", (long long)row->waiting);
  rlk_text_add(out, rlk_entry_json(row->first, "waited_ms", row->first_ms, out) ? "}" : "null");
}

static void json(const redlock_lock *lock, const struct rlk_listed *row, struct rlk_text *out, int64_t now)
{
  int like, node = node_of(lock, row, &like), is_held = node >= 0 && like >= lock->engine->quorum;
  const struct rlk_cell *cell = node >= 0 ? &row->cells[node] : NULL;
  int permits = cell ? rlk_token_permits(cell->token, strlen(cell->token)) : 0;
  rlk_text_add(out, "{\"resource\":");
  rlk_text_json(out, row->resource, row->size, SIZE_MAX);
  rlk_text_format(out, ",\"kind\":\"%s\"", kind_of(row, cell));
  if (row->slot || permits > 0)
    rlk_text_format(out, ",\"slot\":%d", row->slot);
  if (permits > 0)
    rlk_text_format(out, ",\"permits\":%d", permits);
  rlk_text_format(out, ",\"verdict\":\"%s\",\"nodes\":%d",
                  !cell               ? "free"
                  : !is_held          ? "split"
                  : cell->form == 'r' ? "shared"
                                      : "held",
                  is_held ? like : rlk_listed_keys(lock, row));
  if (is_held)
    holder(lock, row, node, out, now);
  waiters(row, out);
  rlk_text_add(out, "}");
}

/* Of a list that is not being made any more. */
static const struct rlk_listing *list_of(const redlock_lock *lock)
{
  return rlk_in_flight(lock) && lock->op.kind == REDLOCK_LIST ? NULL : lock->listing;
}

int64_t redlock_lock_listed(redlock_lock *lock, int what)
{
  redlock_client *c = rlk_enter_lock(lock);
  const struct rlk_listing *list = c ? list_of(lock) : NULL;
  int64_t value = c && what >= REDLOCK_LISTED_ROWS && what <= REDLOCK_LISTED_KEYS ? 0 : -REDLOCK_INVALID;
  if (what == REDLOCK_LISTED_ROWS && list)
    value = list->count;
  else if (what == REDLOCK_LISTED_MORE && list)
    value = list->is_cut;
  else if (what == REDLOCK_LISTED_KEYS && c && lock->listing)
    value = lock->listing->keys;
  rlk_leave(c, REDLOCK_OK);
  return value;
}

int64_t redlock_lock_row(redlock_lock *lock, int64_t index, int field, char *buf, size_t size)
{
  struct rlk_text out = rlk_text_in(buf, size);
  redlock_client *c = rlk_enter_lock(lock);
  const struct rlk_listing *list = c ? list_of(lock) : NULL;
  if (c && (index < 0 || field < REDLOCK_ROW_JSON || field > REDLOCK_ROW_RESOURCE))
    return rlk_leave(c, -REDLOCK_INVALID);
  if (!list || index >= list->count)
    return rlk_leave_text(c, &out);
  if (field == REDLOCK_ROW_JSON)
    json(lock, list->rows[index], &out, rlk_client_now(c));
  else
    rlk_text_bytes(&out, list->rows[index]->resource, list->rows[index]->size);
  return rlk_leave_text(c, &out);
}
