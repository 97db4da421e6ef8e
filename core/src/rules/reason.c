#include "reason.h"

#include <string.h>

#include "../../include/redlock.h"
#include "../base/buffer.h"

static const struct {
  const char *name;
  enum rlk_passes passes;
  const char *words, *advice, *cause;
} rows[RLK_WHY_COUNT] = {[RLK_WHY_NONE] = {"", RLK_PASSES_BY_ITSELF, "", "", ""},
#define ROW(symbol, name, passes, words, advice, cause)                                                                \
  [RLK_WHY_##symbol] = {name, RLK_PASSES_##passes, words, advice, cause},
                         RLK_REASONS(ROW)
#undef ROW
};

enum rlk_why rlk_because(struct rlk_reason *reason, enum rlk_why why, const char *detail)
{
  const char *words = rows[why].words, *gap = detail ? strstr(words, "%s") : NULL;
  struct rlk_text text = rlk_text_in(reason->words, sizeof reason->words);
  reason->why = why;
  rlk_text_bytes(&text, words, gap ? (size_t)(gap - words) : strlen(words));
  if (detail && !gap)
    rlk_text_add(&text, ": ");
  if (detail)
    rlk_text_add(&text, detail);
  if (gap)
    rlk_text_add(&text, gap + 2);
  rlk_text_mark_cut(&text);
  return why;
}

/* Redis 7 and Valkey add to an error in a script where it was: " script: 1b716bd4, on @user_script:7." Where
 * that begins, or SIZE_MAX. */
static size_t place_at(const char *error)
{
  static const char before[] = " script: ";
  const char *end = strstr(error, "on @user_script"), *place = NULL;
  for (const char *at = error; end && (at = strstr(at, before)) && at < end; at++)
    place = at;
  return place ? (size_t)(place - error) : SIZE_MAX;
}

enum rlk_why rlk_because_of(struct rlk_reason *reason, enum rlk_why why, const char *words)
{
  struct rlk_text text = rlk_text_in(reason->words, sizeof reason->words);
  size_t place = place_at(words);
  reason->why = why;
  rlk_text_clean(&text, words);
  rlk_text_mark_cut(&text);
  if (place < sizeof reason->words)
    reason->words[place] = 0;
  return why;
}

const char *rlk_why_name(enum rlk_why why)
{
  return rows[why].name;
}

const char *rlk_why_words(enum rlk_why why)
{
  return rows[why].words;
}

const char *rlk_why_advice(enum rlk_why why)
{
  return rows[why].advice;
}

enum rlk_passes rlk_why_passes(enum rlk_why why)
{
  return rows[why].passes;
}

const char *redlock_reason_at(int index, int field)
{
  if (index < 0 || index + 1 >= RLK_WHY_COUNT)
    return NULL;
  switch (field) {
  case REDLOCK_REASON_NAME: return rows[index + 1].name;
  case REDLOCK_REASON_WORDS: return rows[index + 1].words;
  case REDLOCK_REASON_ADVICE: return rows[index + 1].advice;
  case REDLOCK_REASON_CAUSE: return rows[index + 1].cause;
  default: return NULL;
  }
}
