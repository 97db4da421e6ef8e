/* Which of its faults a violation needs: they are left out one kind and one strike after the other, for as long as the
 * world ends with the same violation. */
#include "sim.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_SIZE = 512 };

static const char *const names[] = {
#define FAULT_NAME(name, text) text,
    FAULTS(FAULT_NAME)
#undef FAULT_NAME
};

/* ---- what is left out, as text ---- */

static int number_of(const char *name, size_t size)
{
  for (int i = 0; i < FAULT_COUNT; i++)
    if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
      return i;
  return -1;
}

int shrink_parse_faults(struct omissions *omissions, const char *text)
{
  while (*text) {
    size_t size = strcspn(text, ",");
    int fault = number_of(text, size);
    if (fault < 0)
      return -1;
    omissions->faults |= UINT32_C(1) << fault;
    text += size + (text[size] == ',');
  }
  return 0;
}

int shrink_parse_strikes(struct omissions *omissions, const char *text)
{
  memset(omissions->strikes, 0xff, sizeof omissions->strikes);
  if (strcmp(text, "none") == 0)
    return 0;
  while (*text) {
    char *end;
    unsigned long strike = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || strike >= STRIKES_MAX || (*end && *end != ','))
      return -1;
    omissions->strikes[strike / 64] &= ~(UINT64_C(1) << strike % 64);
    text = end + (*end == ',');
  }
  return 0;
}

static void print_faults(const struct omissions *omissions)
{
  const char *comma = "";
  for (int i = 0; i < FAULT_COUNT; i++)
    if (omissions->faults >> i & 1) {
      printf("%s%s", comma, names[i]);
      comma = ",";
    }
}

static void print_strikes(const struct omissions *omissions, uint32_t count)
{
  const char *comma = "";
  for (uint32_t i = 0; i < count; i++)
    if (!is_left_out(omissions->strikes, i)) {
      printf("%s%" PRIu32, comma, i);
      comma = ",";
    }
  if (!*comma)
    printf("none");
}

/* ---- trying ---- */

/* The words without those that have digits: times, tokens and names differ where the violation is the same. */
static void shape_of(char *out, const char *violation)
{
  *out = '\0';
  while (*violation) {
    size_t size = strcspn(violation, " ");
    if (strcspn(violation, "0123456789") >= size)
      strncat(out, violation, size);
    violation += size + strspn(violation + size, " ");
  }
}

static int still_ends_like(struct world *world, const char *shape)
{
  char now[SHAPE_SIZE];
  world_run(world, world->seed);
  shape_of(now, world->violation);
  return world->violation[0] && strcmp(now, shape) == 0;
}

static void try_without_kinds(struct world *world, const char *shape)
{
  for (int i = 0; i < FAULT_COUNT; i++) {
    uint32_t before = world->omissions.faults;
    world->omissions.faults |= UINT32_C(1) << i;
    if (!still_ends_like(world, shape))
      world->omissions.faults = before;
  }
}

/* Many strikes at once first, then fewer and fewer. */
static void try_without_strikes(struct world *world, const char *shape, uint32_t count)
{
  for (uint32_t size = count; size >= 1; size /= 2)
    for (uint32_t first = 0; first < count; first += size) {
      struct omissions before = world->omissions;
      for (uint32_t i = first; i < first + size && i < count; i++)
        world->omissions.strikes[i / 64] |= UINT64_C(1) << i % 64;
      if (memcmp(&before, &world->omissions, sizeof before) != 0 && !still_ends_like(world, shape))
        world->omissions = before;
    }
}

/* The violation has ended the world: later strikes are none of its causes. */
static void leave_out_from(struct omissions *omissions, uint32_t first)
{
  for (uint32_t i = first; i < STRIKES_MAX; i++)
    omissions->strikes[i / 64] |= UINT64_C(1) << i % 64;
}

static void print_replay(const struct world *world, const char *mutant, uint32_t strikes)
{
  printf("SEED=%" PRIu64 " %s\nreplay it with: sim --seed %" PRIu64 "%s", world->seed, world->violation, world->seed,
         world_mixes ? " --mixed" : "");
  if (mutant)
    printf(" --mutant %s", mutant);
  printf(" --without ");
  print_faults(&world->omissions);
  printf(" --strikes ");
  print_strikes(&world->omissions, strikes);
  printf(" --trace\n");
}

int shrink(struct world *world, uint64_t seed, const char *mutant)
{
  struct omissions before;
  char shape[SHAPE_SIZE];
  uint32_t strikes;
  world_run(world, seed);
  if (!world->violation[0]) {
    printf("SEED=%" PRIu64 " has no violation\n", seed);
    return 1;
  }
  shape_of(shape, world->violation);
  strikes = world->strikes < STRIKES_MAX ? world->strikes : STRIKES_MAX;
  leave_out_from(&world->omissions, strikes);
  do {
    before = world->omissions;
    try_without_kinds(world, shape);
    try_without_strikes(world, shape, strikes);
  } while (memcmp(&before, &world->omissions, sizeof before) != 0);
  world_run(world, seed);
  print_replay(world, mutant, strikes);
  return 0;
}
