/* Rules of the scripts that a mutant breaks: in the text that servers get. */
#include "script.h"
#include "../../core/src/base/mutant.h"

#include <stdlib.h>

struct change { /* of the script that has `of` in its text, in one place */
  int mutant;
  const char *of, *from, *to;
};

#define QUEUE "local function passes(h)"
#define CLAIM "'MSETNX'"
#define DROP ",dropped="
#define NOT_MINE "  if not mine then return {begins and 0 or -1,i,call('PTTL',k)} end\n  was[i]=y\n"
#define UNLESS(case)                                                                                                   \
  "  if not mine and (" case " or i==n and not next(was)) then return {begins and 0 or -1,i,call('PTTL',k)} end\n"     \
                             "  was[i]=mine and y or nil\n"
#define ALL_KEYS "for i,k in ipairs(K) do\n  local y,at,v=was[i],till\n"
#define OWN_KEYS "for i,y in pairs(was) do\n  local k,at,v=K[i],till\n"

static const struct change changes[] = {
    {RLK_MUTANT_EXTEND_SHORTENS, "r[i]=1", "if redis.call('PTTL',KEYS[i])<tonumber(ARGV[1]) then", "do"},
    {RLK_MUTANT_WAITS_FOR_THE_DEAD, QUEUE, " and u>v ", " and false and u>v "},
    {RLK_MUTANT_WAITS_FOR_THE_DEAD, "return {rank,ttl}", "now+ARGV[3]+", "now+5000000+ARGV[3]+"},
    {RLK_MUTANT_READER_DELETES, DROP, "if d==1 and call('EXISTS',k)==1 then",
     "if d==1 then call('DEL',k) elseif false then"},
    {RLK_MUTANT_ENDS_WITH_THE_FIRST, CLAIM, " or tonumber(top[i][2])<at", ""},
    {RLK_MUTANT_ENDS_WITH_THE_LAST, CLAIM, "tonumber(top[i][2])<at", "true"},
    {RLK_MUTANT_DOWNGRADE_SHORTENS, CLAIM, "if not exact then at=math.max", "if false then at=math.max"},
    {RLK_MUTANT_EXTENDED_BY_ANY_KEY, CLAIM, NOT_MINE, UNLESS("begins")},
    {RLK_MUTANT_EXTENDED_BY_ANY_KEY, CLAIM, ALL_KEYS, OWN_KEYS},
    {RLK_MUTANT_TAKES_WHAT_IS_FREE, CLAIM, NOT_MINE, UNLESS("not begins")},
    {RLK_MUTANT_TAKES_WHAT_IS_FREE, CLAIM, ALL_KEYS, OWN_KEYS},
};

static char *replace(const struct world *world, char *text, size_t *size, const struct change *change)
{
  size_t from_size = strlen(change->from), to_size = strlen(change->to);
  char *at = memmem(text, *size, change->from, from_size), *after = at ? at + from_size : NULL, *changed;
  if (!at || memmem(after, *size - (size_t)(after - text), change->from, from_size))
    world_fail(world, "a mutant changes \"%s\", which its script has %s", change->from, at ? "more than once" : "not");
  changed = heap_realloc(NULL, *size + to_size + 1);
  memcpy(changed, text, (size_t)(at - text));
  memcpy(changed + (at - text), change->to, to_size);
  memcpy(changed + (at - text) + to_size, after, *size - (size_t)(after - text));
  *size = *size - from_size + to_size;
  return changed;
}

const char *mutate(const struct world *world, const char *original, size_t original_size, size_t *size)
{
  char *text = (char *)original;
  *size = original_size;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    if (changes[i].mutant == rlk_test_mutant && memmem(original, original_size, changes[i].of, strlen(changes[i].of)))
      text = replace(world, text, size, &changes[i]);
  return text;
}
