/* Switches of the test build that break a rule on purpose, so that the tests are known to bite: the simulator has to
 * find each of them. They do not exist in the library that is installed. */
#ifndef RLK_MUTANT_H
#define RLK_MUTANT_H

/* name, name on command lines, the rule that it breaks */
#define RLK_MUTANTS(X)                                                                                                 \
  X(QUORUM_OF_ONE, "quorum-of-one", "one vote is a majority")                                                          \
  X(BLIND_DELETE, "blind-delete", "a release deletes whatever is under the key")                                       \
  X(CLOCK_AT_REPLY, "clock-at-reply", "a vote counts from its reply")                                                  \
  X(EXTEND_SHORTENS, "extend-shortens", "an extension may shorten a life")                                             \
  X(EXTENSION_AT_REPLY, "extension-at-reply", "an extension counts from its reply")                                    \
  X(NO_DRIFT, "no-drift", "drift is not taken off")                                                                    \
  X(TOKEN_REUSED, "token-reused", "all attempts of a client on a resource have one token")                             \
  X(LOSS_NOT_STICKY, "loss-not-sticky", "a late extension revives a lock")                                             \
  X(RESTART_IGNORED, "restart-ignored", "a new run_id changes nothing")                                                \
  X(GONE_IGNORED, "gone-ignored", "the answer that the token is gone changes nothing")                                 \
  X(DEMOTION_IGNORED, "demotion-ignored", "a master that became a replica still counts")                               \
  X(REFUSED_VOTES, "refused-votes", "a node that is ineligible to vote votes")                                         \
  X(RELEASE_HESITATES, "release-hesitates", "a lock is held until its release is confirmed")                           \
  X(DELETE_OF_HELD, "delete-of-held", "a held token is deleted like one that was given up")                            \
  X(INNER_RELEASE_DELETES, "inner-release-deletes", "a release deletes the keys though others are to follow")          \
  X(LOST_IS_REENTERED, "lost-is-reentered", "a lost lock is acquired anew before its outermost release")               \
  X(HOME_ONLY, "home-only", "a waiter asks its home node alone")                                                       \
  X(QUEUE_JUMPER, "queue-jumper", "who comes again at once goes ahead of those who wait")                              \
  X(NOBODY_IS_WOKEN, "nobody-is-woken", "the first in the queue finds out by asking alone")                            \
  X(PLACE_FORGOTTEN, "place-forgotten", "every question takes a new place, at the end")                                \
  X(BLOCKS_THE_QUEUE, "blocks-the-queue", "a waiter that cannot win keeps its place in the queue")                     \
  X(ALL_ALIKE, "all-alike", "a waiter believes what one on other terms was told")                                      \
  X(END_IGNORED, "end-ignored", "a waiter does not ask when the key ends that it has seen")                            \
  X(WAITS_FOR_THE_DEAD, "waits-for-the-dead", "whoever has died keeps its place for some seconds")                     \
  X(NO_GUARD, "no-guard", "a node that may have lost keys votes at once")                                              \
  X(GUARD_TOO_SHORT, "guard-too-short", "a node that may have lost keys votes too early")                              \
  X(LAPSED_COUNT, "lapsed-count", "an extension counts where the lease did once, whatever the marker says")            \
  X(OWN_LOOK_IGNORED, "own-look-ignored", "what a process has seen itself of a loss of keys does not count")           \
  X(MARKER_NOT_CHECKED, "marker-not-checked", "the marker is looked at when a connection is set up only")              \
  X(CLOCK_STEP_IGNORED, "clock-step-ignored", "a server's clock that was stepped forward is not noticed")              \
  X(CLOCKS_AT_SET_UP, "clocks-at-set-up", "clocks are compared when a connection is set up only")                      \
  X(MARKER_OF_ANYBODY, "marker-of-anybody", "a server votes on with a marker from before it was restarted")            \
  X(DATABASE_IGNORED, "database-ignored", "a marker that was written to another database counts")                      \
  X(FUTURE_MARKER, "future-marker", "a marker counts that was written later than it is now")                           \
  X(HISTORY_IGNORED, "history-ignored", "a server votes on with a marker from before it was a replica")                \
  X(SUPERSEDED_MARKER, "superseded-marker", "a marker counts that was followed by another one")                        \
  X(IDLE_OWN_LOOK, "idle-own-look", "a process that was idle keeps out a server that it finds changed")                \
  X(REPLACE_ENDS_QUARANTINE, "replace-ends-quarantine",                                                                \
    "a marker that gets another number ends the quarantine of its node")                                               \
  X(PLAN_FORGOTTEN, "plan-forgotten", "an operator writes what is found after the answer, not what was shown")         \
  X(NUMBER_IGNORED, "number-ignored", "max_ttl_ms of a marker is not looked at")                                       \
  X(EXTENDED_ABOVE, "extended-above", "an extension may be longer than the marker allows")                             \
  X(RAISE_UNNOTICED, "raise-unnoticed", "a marker that allows too little is not read again")                           \
  X(FENCE_NOT_RAISED, "fence-not-raised", "a fencing number need not be stored by a majority")                         \
  X(ANY_NUMBER, "any-number", "a fencing number is taken however far it is ahead of the clocks")                       \
  X(FIRST_NUMBER_OF_ONE, "first-number-of-one", "one clock that is ahead gives the first fencing number")              \
  X(SPLIT_IS_BUSY, "split-is-busy", "a single attempt takes split votes for a holder")                                 \
  X(NO_BACKOFF, "no-backoff", "a waiter does not pause")                                                               \
  X(NO_HEIR, "no-heir", "the thread that drives leaves without handing that over")                                     \
  X(NO_LAST_LOOK, "no-last-look", "what was won is returned without another look at the lease")                        \
  X(LATE_WINNER, "late-winner", "what was won too late to be of use is returned all the same")                         \
  X(SHORTENING_FORGOTTEN, "shortening-forgotten", "a shortening that may still be executed limits nothing")            \
  X(COUNTED_TWICE, "counted-twice", "a server counts under every address that leads to it")                            \
  X(CHILD_KEEPS_LOCKS, "child-keeps-locks", "the child of a fork holds its parent's locks")                            \
  X(CHILD_KEEPS_CLAIMS, "child-keeps-claims", "the child of a fork deletes what its parent has given up")              \
  X(READER_DELETES, "reader-deletes", "a reader that leaves deletes the key")                                          \
  X(ENDS_WITH_THE_FIRST, "ends-with-the-first", "a shared key ends with the lease of the first reader")                \
  X(ENDS_WITH_THE_LAST, "ends-with-the-last", "a shared key ends with the lease of the last reader")                   \
  X(DOWNGRADE_BELIEVED, "downgrade-believed", "a holder is exclusive until its downgrade is confirmed")                \
  X(DOWNGRADE_SHORTENS, "downgrade-shortens", "a downgrade forgets what was left of the lease")                        \
  X(EXTENDED_BY_ANY_KEY, "extended-by-any-key", "of several resources one is enough for an extension")                 \
  X(TAKES_WHAT_IS_FREE, "takes-what-is-free", "of several resources those are taken that are free")                    \
  X(VOTES_OF_ANY_SLOT, "votes-of-any-slot", "of permits each node picks a slot, and all votes count together")         \
  X(PICK_FORGOTTEN, "pick-forgotten", "a slot that a node picked without an answer is not given back")                 \
  X(CHILD_KEEPS_SEED, "child-keeps-seed", "the child of a fork makes the same tokens as its parent")

enum {
  RLK_MUTANT_NONE,
#define RLK_MUTANT_VALUE(name, text, wrong) RLK_MUTANT_##name,
  RLK_MUTANTS(RLK_MUTANT_VALUE)
#undef RLK_MUTANT_VALUE
      RLK_MUTANT_COUNT
};

#ifdef RLK_TEST_BUILD
extern int rlk_test_mutant;   /* set by REDLOCK_TEST_MUTANT=name or number, too */
extern int rlk_test_wait_all; /* operations wait for every node: the baseline of a benchmark */
#define RLK_MUTANT(name) (rlk_test_mutant == RLK_MUTANT_##name)
#define RLK_WAIT_ALL (rlk_test_wait_all)
/* The number of a mutant, from its name or number; -1 if there is none. */
int rlk_test_mutant_of(const char *text);
#else
#define RLK_MUTANT(name) 0
#define RLK_WAIT_ALL 0
#endif

#endif
