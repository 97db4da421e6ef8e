#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../include/redlock.h"
#include "../base/macros.h"
#include "quorum.h"

#define STALL_MS 1000 /* a stall of all nodes that an attempt outlasts */

enum type { INT, AUTO_INT, COUNT, FLOAT, BOOL, CHOICE, STRING, NODES };
enum scope { CLIENT, BOTH };

/* The range of an option in words, from its numbers. */
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define RANGE_INT(min, max, also) RLK_PARTED(TEXT(min)) " to " RLK_PARTED(TEXT(max)) also
#define RANGE_AUTO_INT(min, max, also) "auto, or " RANGE_INT(min, max, also)
#define RANGE_COUNT(min, max, also) TEXT(min) " to " TEXT(max) also
#define RANGE_FLOAT(min, max, also) RANGE_COUNT(min, max, also)
#define RANGE_BOOL(min, max, also) "true or false" also
#define RANGE_CHOICE(min, max, also) also
#define RANGE_STRING(min, max, also) "at most " TEXT(max) " bytes" also
#define RANGE_NODES(min, max, also)                                                                                    \
  "1 to " TEXT(RLK_NODES_MAX) " URLs: redis://[user:password@]host[:port][/database], rediss:// for TLS, or "          \
                              "unix://[user:password@]/path[?db=n]" also

#define RLK_PARTED(word) word
static const char *const plain_ranges[] = {
#define RANGE(symbol, name, type, unit, initial, min, max, also, ...) [RLK_OPT_##symbol] = RANGE_##type(min, max, also),
    RLK_OPTIONS(RANGE)
#undef RANGE
};
#undef RLK_PARTED
#define RLK_PARTED(word) RLK_NAMED(word)

static const struct row {
  const char *name;
  enum type type;
  const char *unit;
  const char *initial;
  double min, max;
  const char *range;
  enum scope scope;
  const char *purpose;
  const char *help;
} rows[RLK_OPTION_COUNT] = {
#define ROW(symbol, name, type, unit, initial, min, max, also, scope, purpose, help)                                   \
  [RLK_OPT_##symbol] = {name,  type,    unit, initial, (double)(min), (double)(max), RANGE_##type(min, max, also),     \
                        scope, purpose, help},
    RLK_OPTIONS(ROW)
#undef ROW
};

static const char *const type_names[] = {"int", "int", "int", "float", "bool", "string", "string", "nodes"};

const char *redlock_option_at(int index, int field)
{
  if (index < 0 || index >= RLK_OPTION_COUNT)
    return NULL;
  switch (field) {
  case REDLOCK_OPTION_NAME: return rows[index].name;
  case REDLOCK_OPTION_TYPE: return type_names[rows[index].type];
  case REDLOCK_OPTION_UNIT: return rows[index].unit;
  case REDLOCK_OPTION_DEFAULT: return rows[index].initial;
  case REDLOCK_OPTION_RANGE: return plain_ranges[index];
  case REDLOCK_OPTION_RANGE_PARTS: return rows[index].range;
  case REDLOCK_OPTION_SCOPE: return rows[index].scope == BOTH ? "both" : "client";
  case REDLOCK_OPTION_HELP: return rows[index].help;
  case REDLOCK_OPTION_PURPOSE: return rows[index].purpose;
  default: return NULL;
  }
}

int rlk_option_is_text(int option)
{
  return rows[option].type == STRING || rows[option].type == NODES;
}

size_t rlk_option_size_max(int option)
{
  return (size_t)rows[option].max;
}

int rlk_option_find(const char *name, int scope_lock)
{
  for (int i = 0; i < RLK_OPTION_COUNT; i++)
    if (rows[i].name[0] == name[0] && strcmp(rows[i].name, name) == 0)
      return scope_lock && rows[i].scope != BOTH ? -1 : i;
  return -1;
}

void rlk_options_defaults(struct rlk_numbers *numbers)
{
  struct rlk_text nowhere = rlk_text_in(NULL, 0);
  memset(numbers, 0, sizeof *numbers);
  for (int i = 0; i < RLK_OPTION_COUNT; i++)
    if (!rlk_option_is_text(i))
      rlk_option_parse(numbers, i, rows[i].initial, &nowhere);
  numbers->permits_are_set = 0;
}

static int parse_bool(const char *value, int64_t *out)
{
  static const char *const words[] = {"true", "false", "1", "0", "yes", "no", "on", "off"};
  for (int i = 0; i < 8; i++)
    if (strcasecmp(value, words[i]) == 0) {
      *out = i % 2 == 0;
      return 1;
    }
  return 0;
}

/* The words of a range such as "auto, push or poll": the i-th and its size, or NULL. */
static const char *choice_at(const char *range, int i, size_t *size)
{
  for (; i > 0 && range; i--) {
    const char *comma = strstr(range, ", "), *last = strstr(range, " or ");
    range = comma ? comma + 2 : last ? last + 4 : NULL;
  }
  *size = range ? strcspn(range, ", ") : 0;
  return range;
}

static int parse_choice(const char *value, const struct row *row, int64_t *out)
{
  size_t size;
  const char *word;
  for (int i = 0; (word = choice_at(row->range, i, &size)); i++)
    if (strlen(value) == size && strncmp(word, value, size) == 0) {
      *out = i;
      return 1;
    }
  return 0;
}

static int parse_int(const char *value, const struct row *row, int64_t *out)
{
  char *end;
  long long n;
  errno = 0;
  n = strtoll(value, &end, 10);
  if (errno || end == value || *end || (double)n < row->min || (double)n > row->max)
    return 0;
  *out = n;
  return 1;
}

/* Digits with a point, whatever the program's locale says of commas. */
static int parse_float(const char *value, const struct row *row, double *out)
{
  double x = 0, place = 1;
  int digits = 0;
  value += *value == '+';
  for (; *value >= '0' && *value <= '9'; value++, digits++)
    x = x * 10 + (*value - '0');
  if (*value == '.')
    for (value++; *value >= '0' && *value <= '9'; value++, digits++)
      x += (*value - '0') * (place /= 10);
  if (digits == 0 || *value || x < row->min || x > row->max)
    return 0;
  *out = x;
  return 1;
}

int rlk_refuse(struct rlk_text *why, const char *words)
{
  rlk_text_add(why, words);
  return REDLOCK_INVALID;
}

int rlk_option_refuse(int option, const char *name, const char *value, struct rlk_text *why)
{
  rlk_text_format(why, RLK_NAMED("%s") " is \"", name);
  rlk_text_escaped(why, value, strlen(value));
  rlk_text_format(why, "\"; allowed: %s", rows[option].range);
  return REDLOCK_INVALID;
}

int rlk_option_parse(struct rlk_numbers *numbers, int option, const char *value, struct rlk_text *why)
{
  const struct row *row = &rows[option];
  int ok = 0;
  /* strtoll would skip spaces; a number starts with a digit, a sign or a point */
  int starts = *value && strchr("+-.0123456789", *value) != NULL;
  switch (row->type) {
  case BOOL: ok = parse_bool(value, &numbers->v[option].i); break;
  case CHOICE: ok = parse_choice(value, row, &numbers->v[option].i); break;
  case FLOAT: ok = starts && parse_float(value, row, &numbers->v[option].d); break;
  case AUTO_INT:
    if (strcmp(value, "auto") == 0) {
      numbers->v[option].i = RLK_AUTO;
      return REDLOCK_OK;
    } /* fall through */
  case COUNT:
  case INT: ok = starts && parse_int(value, row, &numbers->v[option].i); break;
  default: break;
  }
  if (!ok)
    return rlk_option_refuse(option, row->name, value, why);
  numbers->permits_are_set |= option == RLK_OPT_PERMITS;
  return REDLOCK_OK;
}

/* Up to 9 decimals, without zeros at the end. */
static void format_float(double x, struct rlk_text *out)
{
  char digits[32];
  int64_t billionths = (int64_t)(x * 1e9 + 0.5);
  int size = snprintf(digits, sizeof digits, "%lld.%09lld", (long long)(billionths / 1000000000),
                      (long long)(billionths % 1000000000));
  while (size > 2 && digits[size - 1] == '0' && digits[size - 2] != '.')
    size--;
  rlk_text_bytes(out, digits, (size_t)size);
}

void rlk_option_format(const struct rlk_numbers *numbers, int option, struct rlk_text *out)
{
  switch (rows[option].type) {
  case BOOL: rlk_text_add(out, numbers->v[option].i ? "true" : "false"); break;
  case FLOAT: format_float(numbers->v[option].d, out); break;
  case CHOICE: {
    size_t size;
    const char *word = choice_at(rows[option].range, (int)numbers->v[option].i, &size);
    rlk_text_bytes(out, word, size);
    break;
  }
  default:
    if (numbers->v[option].i == RLK_AUTO)
      rlk_text_add(out, "auto");
    else
      rlk_text_format(out, "%lld", (long long)numbers->v[option].i);
  }
}

/* Edits between two names; both are short. */
static int distance(const char *a, const char *b)
{
  int row[65], n = (int)strlen(b);
  if (n > 64 || strlen(a) > 64)
    return 99;
  for (int j = 0; j <= n; j++)
    row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      row[j] = change < row[j] ? change : row[j];
    }
  }
  return row[n];
}

void rlk_option_unknown(const char *name, int scope_lock, struct rlk_text *why)
{
  int best = -1, best_distance = (int)rlk_larger(2, (int64_t)strlen(name) / 3) + 1;
  if (scope_lock && rlk_option_find(name, 0) >= 0) {
    rlk_text_format(why, RLK_NAMED("%s") " is an option of the client, not of a lock", name);
    return;
  }
  for (int i = 0; i < RLK_OPTION_COUNT; i++) {
    int d = strlen(name) > 2 && strstr(rows[i].name, name) ? 1 : distance(name, rows[i].name);
    if (d < best_distance && (!scope_lock || rows[i].scope == BOTH)) {
      best = i;
      best_distance = d;
    }
  }
  rlk_text_add(why, "there is no option \"");
  rlk_text_escaped(why, name, strlen(name));
  rlk_text_add(why, "\"");
  if (best >= 0)
    rlk_text_format(why, "; did you mean " RLK_NAMED("%s") "?", rows[best].name);
}

/* auto: a majority may take as long as a stall of all nodes lasts; nodes late beyond a majority get only a few round
 * trips (rule A.2). */
static void node_timeouts(int64_t ttl_ms, struct rlk_terms *terms)
{
  int64_t least_ms = rlk_smaller(ttl_ms / 4, 50), most_ms = rlk_larger(ttl_ms / 10, least_ms);
  terms->patience_min_ns = least_ms * 1000000;
  terms->patience_max_ns = most_ms * 1000000;
  terms->node_timeout_ns = rlk_smaller(most_ms, STALL_MS) * 1000000;
}

#define TTL RLK_NAMED("ttl_ms")
#define MAX_TTL RLK_NAMED("max_ttl_ms")
#define NODE_TIMEOUT RLK_NAMED("node_timeout_ms")

int rlk_terms_for(const struct rlk_numbers *numbers, int64_t ttl_ms, struct rlk_terms *terms, struct rlk_text *why)
{
  int64_t max_ttl_ms = RLK_INT(numbers, MAX_TTL_MS);
  int64_t ttl = ttl_ms ? ttl_ms : RLK_INT(numbers, TTL_MS);
  int64_t node_timeout_ms = RLK_INT(numbers, NODE_TIMEOUT_MS);
  int64_t min_validity_ms = RLK_INT(numbers, MIN_VALIDITY_MS);
  if (ttl > max_ttl_ms && ttl <= RLK_DAY_MS) {
    rlk_text_format(why,
                    TTL " " RLK_MS " is above " MAX_TTL ", " RLK_MS ": renew a shorter lock, or give all programs of "
                        "these nodes a " MAX_TTL " of " RLK_MS " (a node that loses its keys is out for as long)",
                    (long long)ttl, (long long)max_ttl_ms, (long long)ttl);
    return REDLOCK_INVALID;
  }
  if (ttl < RLK_TTL_MS_MIN || ttl > max_ttl_ms) {
    rlk_text_format(why, TTL " is " RLK_MS "; allowed: " RLK_MS " to " MAX_TTL " (" RLK_MS ")", (long long)ttl,
                    (long long)RLK_TTL_MS_MIN, (long long)max_ttl_ms);
    return REDLOCK_INVALID;
  }
  if (node_timeout_ms != RLK_AUTO && node_timeout_ms > ttl / 4) {
    rlk_text_format(why,
                    NODE_TIMEOUT " is " RLK_MS "; allowed for " TTL " " RLK_MS ": at most a quarter of it (" RLK_MS ")",
                    (long long)node_timeout_ms, (long long)ttl, (long long)(ttl / 4));
    return REDLOCK_INVALID;
  }
  if (node_timeout_ms == RLK_AUTO)
    node_timeouts(ttl, terms);
  else
    terms->node_timeout_ns = terms->patience_min_ns = terms->patience_max_ns = node_timeout_ms * 1000000;
  if (min_validity_ms == RLK_AUTO)
    min_validity_ms = rlk_larger(ttl / 10, 5);
  terms->ttl_ms = ttl;
  terms->lease_ns = ttl * 1000000 - rlk_drift_ns(ttl, RLK_FLOAT(numbers, DRIFT_FACTOR));
  terms->min_validity_ns = min_validity_ms * 1000000;
  if (terms->lease_ns - terms->min_validity_ns - terms->node_timeout_ns > 0)
    return REDLOCK_OK;
  rlk_text_format(why,
                  TTL " " RLK_MS " is too short: less drift, " RLK_NAMED(
                      "min_validity_ms") " (" RLK_MS ") must leave more than " NODE_TIMEOUT " (" RLK_MS ")",
                  (long long)ttl, (long long)min_validity_ms, (long long)(terms->node_timeout_ns / 1000000));
  return REDLOCK_INVALID;
}
