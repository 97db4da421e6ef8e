/* Worlds in which all is done to get past the restart guard. */
#ifndef SIM_HARD_H
#define SIM_HARD_H

#include <stdint.h>

struct connection;
struct event;
struct node;
struct process;
struct world;

/* What is emphasised. */
enum hard { HARD_NONE, HARD_SIEGES, HARD_FLIPS, HARD_BEHIND, HARD_SWAPS, HARD_NIGHTS, HARDS };

struct away { /* the way between a process and a node */
  int64_t from, until;
  int64_t slow; /* each message takes up to so much longer; 0: nothing gets through */
};

struct siege { /* of a holder, which does not reach one node, and then another */
  int slot, first, second;
  int64_t until;
};

extern int world_is_hard; /* those that follow are */
void hard_choose(struct world *world);
void hard_strike(struct world *world, struct node *node, int fault);
void hard_event(struct world *world, const struct event *event);
/* Before a command: step 1 to 3 of those in the write of a renewal (a key is put back, all are extended, the marker is
 * read), 0 another. */
void hard_execute(struct world *world, struct node *node, int step);
void hard_read(struct connection *connection); /* its client has read more */
/* A key was set: what need not be noticed is excused. */
void hard_granted(struct world *world, const struct node *node, const struct connection *connection, int resource,
                  const char *token);
int64_t hard_lag(struct world *world, const struct connection *connection, uint32_t kind, int64_t lag);
int64_t hard_dawn(struct world *world, const struct process *process); /* until it acts, at night */
void hard_end(struct world *world);
void hard_prove_served(struct world *world);

#endif
