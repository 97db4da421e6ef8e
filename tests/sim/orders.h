/* All orders of the messages of short histories. */
#ifndef SIM_ORDERS_H
#define SIM_ORDERS_H

#include <stdint.h>

struct slot;
struct world;

void orders_choose(struct world *world);
int orders_are_fenced(const struct world *world);
int orders_are_guarded(const struct world *world);
void orders_strike(struct world *world);
int64_t orders_delay(struct world *world);
void orders_make_lock(struct slot *slot);
void orders_act(struct slot *slot);
int orders_parse(struct world *world, const char *text);
int orders_has(const char *history);
/* Of this history, or of all if it is NULL. Exit statuses: 1 where there is a violation; with a mutant where there is
 * none. */
int orders_run(struct world *world, int most, const char *mutant, const char *history);
int orders_replay(struct world *world);

#endif
