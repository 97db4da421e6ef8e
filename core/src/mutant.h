/* Switches of the test build that break a rule on purpose, so that the simulator is known to bite. They do not exist in
 * the library that is installed. */
#ifndef RL_MUTANT_H
#define RL_MUTANT_H

enum {
  RL_MUTANT_QUORUM_OF_ONE = 1,
  RL_MUTANT_BLIND_DELETE = 2,
  RL_MUTANT_CLOCK_AT_REPLY = 3,
  RL_MUTANT_EXTEND_SHORTENS = 4
};

#ifdef RL_TEST_BUILD
extern int rl_test_mutant;
extern int rl_test_wait_all; /* operations wait for every node: what the benchmark compares with waiting for all */
#define RL_MUTANT(name) (rl_test_mutant == RL_MUTANT_##name)
#define RL_WAIT_ALL (rl_test_wait_all)
#else
#define RL_MUTANT(name) 0
#define RL_WAIT_ALL 0
#endif

#endif
