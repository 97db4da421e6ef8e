/* slots.c - the permits of a resource. The library looks at one of them at a time, so each has a lock of its own here.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

void slot_set(redlock_lock *lock, int permits, int slot)
{
  lock_set_number(lock, "permits", permits);
  lock_set_number(lock, "slot", slot);
}

/* See the token in redlock.h: 40 digits; of a permit 37, "p" and the number of permits less one. */
int permits_of(const char *token, size_t size)
{
  static const char digits[] = "0123456789abcdef";
  size_t number = size == 40 && token[37] == 'p' ? 38 : 40;
  char text[4] = "";
  if (size != 40 || strspn(token, digits) != (number == 40 ? 40 : 37))
    return -1;
  memcpy(text, token + number, 40 - number);
  return number == 40 ? 0 : strspn(text, digits) == 2 ? (int)strtol(text, NULL, 16) + 1 : -1;
}

int slots_inspect(struct slots *slots, struct session *session)
{
  bool is_one = session_option_ms(session, "slot") >= 0;
  *slots = (struct slots){.session = session, .count = is_one ? 1 : (int)session_option_ms(session, "permits")};
  slots->locks = must(calloc((size_t)slots->count, sizeof *slots->locks));
  const char *resource = session->args->resource;
  for (int i = 0; i < slots->count; i++) {
    slots->locks[i] = must(redlock_lock_new(session->client, resource, strlen(resource)));
    if (slots->count > 1)
      slot_set(slots->locks[i], slots->count, i);
  }
  int status = session_inspect_all(session, slots->locks, slots->count);
  for (int i = 0; i < slots->count && status == REDLOCK_OK; i++)
    status = redlock_lock_status(slots->locks[i]) == REDLOCK_BUSY ? REDLOCK_OK : redlock_lock_status(slots->locks[i]);
  for (int i = 0; i < slots->count; i++) {
    int verdict = redlock_lock_verdict(slots->locks[i]);
    slots->held += has_holder(verdict);
    slots->free += verdict == REDLOCK_VERDICT_FREE;
    slots->split += verdict == REDLOCK_VERDICT_SPLIT;
  }
  return status;
}

void slots_free(struct slots *slots)
{
  for (int i = 0; i < slots->count; i++)
    redlock_lock_free(slots->locks[i]);
  free(slots->locks);
}

/* Whether one more may hold the resource. */
int slots_verdict(const struct slots *slots)
{
  return slots->free > 0                              ? REDLOCK_VERDICT_FREE
         : slots->held == slots->count                ? REDLOCK_VERDICT_HELD
         : slots->held + slots->split == slots->count ? REDLOCK_VERDICT_SPLIT
                                                      : REDLOCK_VERDICT_UNKNOWN;
}

char *slots_words(const struct slots *slots)
{
  int unknown = slots->count - slots->held - slots->free;
  char *more = unknown > 0 ? format(", %d not known", unknown) : format("%s", "");
  char *words = format("%d of %d permits held%s", slots->held, slots->count, more);
  free(more);
  return words;
}
