/* The rows of a list. */
#include <stdlib.h>
#include <string.h>

#include "../node/meaning.h"
#include "listing.h"

enum { ROWS_MAX = 10000, SLOTS_MAX = 256 };

static void free_row(struct rlk_listed *row)
{
  free(row->first);
  free(row->entry);
  free(row);
}

void rlk_listing_drop(redlock_lock *lock)
{
  struct rlk_listing *list = lock->listing;
  if (!list)
    return;
  for (int i = 0; i < list->count; i++)
    free_row(list->rows[i]);
  free(list->rows);
  free(list->globs);
  free(list);
  lock->listing = NULL;
}

static int order_of(const struct rlk_listed *row, const char *resource, size_t size, int slot)
{
  int order = memcmp(row->resource, resource, row->size < size ? row->size : size);
  if (order == 0)
    order = (row->size > size) - (row->size < size);
  return order ? order : row->slot - slot;
}

/* The place of the row, or that where it is to stand. */
static int place_of(const struct rlk_listing *list, const char *resource, size_t size, int slot, int *is_there)
{
  int low = 0, high = list->count;
  *is_there = 0;
  while (low < high && !*is_there) {
    int middle = (low + high) / 2, order = order_of(list->rows[middle], resource, size, slot);
    *is_there = order == 0;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return high;
}

static struct rlk_listed *new_row(const redlock_lock *lock, const char *resource, size_t size, int slot)
{
  size_t head = sizeof(struct rlk_listed) + (size_t)lock->engine->net.node_count * sizeof(struct rlk_cell);
  struct rlk_listed *row = calloc(1, head + size + 1);
  if (!row)
    return NULL;
  row->resource = (char *)row + head;
  row->size = size;
  row->slot = slot;
  memcpy(row->resource, resource, size);
  return row;
}

static int make_room(struct rlk_listing *list)
{
  int room = list->room ? 2 * list->room : 64;
  struct rlk_listed **rows = list->count < list->room ? list->rows : realloc(list->rows, (size_t)room * sizeof *rows);
  if (!rows)
    return -1;
  list->room = list->count < list->room ? list->room : room;
  list->rows = rows;
  return 0;
}

void rlk_listing_add(redlock_lock *lock, const char *resource, size_t size, int slot)
{
  struct rlk_listing *list = lock->listing;
  int is_there, at = place_of(list, resource, size, slot, &is_there);
  struct rlk_listed *row = NULL;
  if (is_there || slot >= SLOTS_MAX)
    return;
  if (list->count < ROWS_MAX && make_room(list) == 0)
    row = new_row(lock, resource, size, slot);
  list->is_cut |= !row;
  if (!row)
    return;
  memmove(list->rows + at + 1, list->rows + at, (size_t)(list->count - at) * sizeof *list->rows);
  list->rows[at] = row;
  list->count++;
}

int rlk_listed_keys(const redlock_lock *lock, const struct rlk_listed *row)
{
  int keys = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    keys += row->cells[i].until_ns != 0;
  return keys;
}

/* A key may have been deleted since it was found. */
static int is_worth_a_row(const redlock_lock *lock, const struct rlk_listed *row)
{
  return rlk_listed_keys(lock, row) || row->waiting || lock->listing->is_exact;
}

void rlk_listing_keep(redlock_lock *lock, int looked)
{
  struct rlk_listing *list = lock->listing;
  int kept = 0;
  for (int i = 0; i < list->count; i++) {
    if (i < looked && is_worth_a_row(lock, list->rows[i]))
      list->rows[kept++] = list->rows[i];
    else
      free_row(list->rows[i]);
  }
  list->is_cut |= looked < list->count;
  list->count = kept;
}

int rlk_listed_like(const redlock_lock *lock, const struct rlk_listed *row, int node, int64_t *ends_ns)
{
  const struct rlk_cell *cell = &row->cells[node];
  int count = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++) {
    const struct rlk_cell *other = &row->cells[i];
    int is_like =
        other->until_ns && other->form == cell->form && (cell->form == 'r' || strcmp(other->token, cell->token) == 0);
    if (ends_ns)
      ends_ns[i] = is_like ? other->until_ns : 0;
    count += is_like;
  }
  return count;
}

/* ---- what nodes say ---- */

int rlk_field_take(struct rlk_field *rest, struct rlk_field *field)
{
  char *colon;
  size_t size, used;
  if (!rest->size || *rest->bytes < '0' || *rest->bytes > '9')
    return 0;
  size = strtoul(rest->bytes, &colon, 10); /* a NUL ends the reply */
  used = (size_t)(colon - rest->bytes) + 1;
  if (*colon != ':' || used > rest->size || size > rest->size - used)
    return 0;
  *field = (struct rlk_field){rest->bytes + used, size};
  rest->bytes += used + size;
  rest->size -= used + size;
  return 1;
}

int64_t rlk_field_number(const struct rlk_field *field)
{
  int64_t value = 0;
  for (size_t i = 0; i < field->size && i < 18 && field->bytes[i] >= '0' && field->bytes[i] <= '9'; i++)
    value = value * 10 + (field->bytes[i] - '0');
  return value;
}

static char *text_of(const struct rlk_field *field)
{
  char *text = calloc(1, field->size + 1);
  if (text)
    memcpy(text, field->bytes, field->size);
  return text;
}

/* Of several tokens the client of the one that most nodes have. */
static void note_entry(const redlock_lock *lock, struct rlk_listed *row, int node, const struct rlk_field *entry)
{
  int best = 0;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (i != node && row->cells[i].until_ns && rlk_listed_like(lock, row, i, NULL) > best)
      best = rlk_listed_like(lock, row, i, NULL);
  if (!entry->size || (row->entry && rlk_listed_like(lock, row, node, NULL) <= best))
    return;
  free(row->entry);
  row->entry = text_of(entry);
  memcpy(row->client, row->cells[node].token, RLK_TOKEN_CLIENT_DIGITS);
}

static void note_cell(const redlock_lock *lock, struct rlk_listed *row, int node, const struct rlk_field *f,
                      int64_t now)
{
  struct rlk_cell *cell = &row->cells[node];
  int64_t waiting = rlk_field_number(&f[5]);
  cell->form = f[0].size ? f[0].bytes[0] : 0;
  cell->until_ns = cell->form ? rlk_pttl_end_ns(f[2].bytes[0] == '-' ? -1 : rlk_field_number(&f[2]), now) : 0;
  memset(cell->token, 0, sizeof cell->token);
  memcpy(cell->token, f[1].bytes, f[1].size < RLK_TOKEN_SIZE ? f[1].size : RLK_TOKEN_SIZE);
  cell->readers = rlk_field_number(&f[3]);
  note_entry(lock, row, node, &f[4]);
  if (waiting <= row->waiting)
    return;
  row->waiting = waiting;
  row->first_ms = rlk_field_number(&f[7]);
  free(row->first);
  row->first = f[6].size ? text_of(&f[6]) : NULL;
}

int rlk_listing_take_rows(redlock_lock *lock, int node, struct rlk_field rest, int64_t now)
{
  struct rlk_listing *list = lock->listing;
  struct rlk_field fields[8];
  for (int i = list->first; i < list->first + list->batch; i++) {
    for (int j = 0; j < 8; j++)
      if (!rlk_field_take(&rest, &fields[j]))
        return 0;
    note_cell(lock, list->rows[i], node, fields, now);
  }
  return 1;
}
