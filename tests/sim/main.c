/* sim - runs the simulator: seeds one after the other, one seed with its trace, or the hunt for a mutant. */
#include "orders.h"
#include "sim.h"
#include "../../core/src/base/mutant.h"

#include <inttypes.h>
#include <popt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS_PER_SEED_MAX = 60, EXIT_USAGE = 64, NOT_GIVEN = INT32_MAX };

static struct world world;
static char output[1 << 16];

struct request {
  long long seeds, first, seed;
  double seconds;
  int trace, shrink, mixed, hard, serve, scripts;
  const char *only; /* worlds of this kind */
  int exhaustive;
  char *mutant, *without, *strikes, *order, *history, *hunt;
};

struct total {
  uint64_t seeds, attempts, wins, events, hash;
  double started, started_cpu;
};

static const char *const mutants[] = {"none",
#define MUTANT_NAME(name, text, wrong) text,
                                      RLK_MUTANTS(MUTANT_NAME)
#undef MUTANT_NAME
};

#define FAULT_NAME(name, text) " " text
#define FAULT_NAMES ("with commas:" FAULTS(FAULT_NAME))

/* What a world has to show for the broken rule to be found: two holders, where the rule is there to prevent them. */
static const char *shows(int mutant)
{
  switch (mutant) {
  case RLK_MUTANT_NONE: return NULL;
  case RLK_MUTANT_RESTART_IGNORED: /* others may hold as long as the holder can not know: see README */
  case RLK_MUTANT_GONE_IGNORED:
  case RLK_MUTANT_DEMOTION_IGNORED:
  case RLK_MUTANT_COUNTED_TWICE:
  case RLK_MUTANT_SHORTENING_FORGOTTEN:
  case RLK_MUTANT_EXTENDED_BY_ANY_KEY: return "unbacked:";
  case RLK_MUTANT_SPLIT_IS_BUSY: return "nobody:";
  case RLK_MUTANT_PICK_FORGOTTEN: return "residue:";
  case RLK_MUTANT_RELEASE_HESITATES: return "came back";
  case RLK_MUTANT_LOST_IS_REENTERED: return "depth:";
  case RLK_MUTANT_HOME_ONLY:
  case RLK_MUTANT_NOBODY_IS_WOKEN:
  case RLK_MUTANT_BLOCKS_THE_QUEUE:
  case RLK_MUTANT_ALL_ALIKE:
  case RLK_MUTANT_END_IGNORED:
  case RLK_MUTANT_WAITS_FOR_THE_DEAD: return "missed:";
  case RLK_MUTANT_QUEUE_JUMPER:
  case RLK_MUTANT_PLACE_FORGOTTEN: return "overtaken:";
  case RLK_MUTANT_FENCE_NOT_RAISED:
  case RLK_MUTANT_ANY_NUMBER:
  case RLK_MUTANT_FIRST_NUMBER_OF_ONE: return "fence:";
  case RLK_MUTANT_NO_BACKOFF: return "back off";
  case RLK_MUTANT_NO_HEIR: return "has not returned";
  case RLK_MUTANT_NO_LAST_LOOK: return "returned OK, but";
  case RLK_MUTANT_CHILD_KEEPS_LOCKS: return "in the child of a fork";
  case RLK_MUTANT_CHILD_KEEPS_CLAIMS: return "speaks for token";
  case RLK_MUTANT_CHILD_KEEPS_SEED: return "for their own";
  case RLK_MUTANT_NUMBER_IGNORED:
  case RLK_MUTANT_EXTENDED_ABOVE: return "are allowed";
  case RLK_MUTANT_IDLE_OWN_LOOK: return "not served";
  case RLK_MUTANT_FUTURE_MARKER: /* the node stays out for as long as its clock was set back */
  case RLK_MUTANT_RAISE_UNNOTICED: return "can not acquire";
  case RLK_MUTANT_LATE_WINNER: /* then the last look is the only one */ return "returns LOST";
  default: return "is held by lock";
  }
}

/* It breaks a rule of locks that are shared, of several resources or of several permits. */
static int is_of_kinds(int mutant)
{
  return mutant >= RLK_MUTANT_READER_DELETES && mutant <= RLK_MUTANT_PICK_FORGOTTEN;
}

static double seconds(clockid_t clock)
{
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* A crash of the core ends the process, and an endless loop after so much of the processor's time: say which seed it
 * was. */
static void on_signal(int number)
{
  char text[96];
  int size = snprintf(text, sizeof text, "SEED=%" PRIu64 " ended by signal %d%s\n", world.seed, number,
                      number == SIGPROF ? ": no end of a step" : "");
  if (write(STDERR_FILENO, text, (size_t)size) < 0)
    _exit(2);
  signal(number, SIG_DFL);
  raise(number);
}

static void limit_seconds(int count)
{
  setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = count}, NULL);
}

static void run_seed(uint64_t seed, struct total *total)
{
  limit_seconds(SECONDS_PER_SEED_MAX);
  world_run(&world, seed);
  limit_seconds(0);
  total->seeds++;
  total->attempts += world.attempts;
  total->wins += world.wins;
  total->events += world.events;
  total->hash = total->hash * 31 + world.hash;
}

static int is_over(const struct request *request, const struct total *total)
{
  if (world.violation[0])
    return 1;
  if (request->seeds != NOT_GIVEN && total->seeds >= (uint64_t)request->seeds)
    return 1;
  return request->seconds != NOT_GIVEN && seconds(CLOCK_MONOTONIC) - total->started >= request->seconds;
}

static void print_total(const struct total *total)
{
  double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - total->started_cpu;
  printf("%" PRIu64 " seeds, %" PRIu64 " attempts, %" PRIu64 " wins, %" PRIu64 " events, %.0f attempts per second of "
         "processor time, trace hash %016" PRIx64 "\n",
         total->seeds, total->attempts, total->wins, total->events, (double)total->attempts / (cpu > 0 ? cpu : 1),
         total->hash);
}

/* The n-th of the seeds from which world_run may draw a world of a kind; 0: there is no such kind. */
static uint64_t seed_of(const char *kind, uint64_t n)
{
  static const char *const hard[] = {"sieges", "flips", "behind", "swaps", "nights"}; /* as in enum hard */
  const uint64_t kinds = sizeof hard / sizeof *hard;
  if (!kind)
    return n;
  for (uint64_t i = 0; i < kinds; i++)
    if (!strcmp(kind, hard[i])) {
      world_is_hard = 1;
      return n * kinds + i;
    }
  if (!strcmp(kind, "guarded"))
    return n * 4 + 1;
  if (!strcmp(kind, "raising"))
    return n * 32 + 9;
  if (!strcmp(kind, "lowering"))
    return n * 32 + 25;
  if (!strcmp(kind, "registering"))
    return n * 32 + 17;
  return 0;
}

static int hunt_or_run(const struct request *request)
{
  struct total total = {0};
  total.started = seconds(CLOCK_MONOTONIC);
  total.started_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (uint64_t seed = (uint64_t)request->first; !is_over(request, &total); seed++)
    run_seed(seed_of(request->only, seed), &total);
  print_total(&total);
  if (request->mutant) {
    printf("mutant %s is %s seed %" PRIu64 ": %s\n", request->mutant,
           world.violation[0] ? "found by" : "not found up to", world.seed, world.violation);
    return !world.violation[0];
  }
  if (!world.violation[0])
    return 0;
  printf("SEED=%" PRIu64 " %s\nreplay it with: sim --seed %" PRIu64 "%s --trace\n", world.seed, world.violation,
         world.seed,
         world_mixes     ? " --mixed"
         : world_is_hard ? " --hard"
                         : "");
  return 1;
}

static int refuse(const char *option, const char *value, const char *allowed)
{
  fprintf(stderr, "sim: %s is \"%s\"; allowed: %s\n", option, value, allowed);
  return EXIT_USAGE;
}

static int choose_mutant(const char *name)
{
  char names[1024] = "";
  int mutant = rlk_test_mutant_of(name);
  if (mutant >= 0) {
    rlk_test_mutant = mutant;
    world_mixes |= is_of_kinds(mutant);
    world.hunted = shows(mutant);
    return 0;
  }
  for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++) {
    size_t length = strlen(names);
    snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", mutants[i]);
  }
  return refuse("--mutant", name, names);
}

static int check_number(const char *option, double value, double min, const char *allowed)
{
  char text[32];
  snprintf(text, sizeof text, "%.15g", value);
  return value < min ? refuse(option, text, allowed) : 0;
}

static int check(struct request *request)
{
  if (check_number("--seeds", (double)request->seeds, 1, "1 and above") ||
      check_number("--first", (double)request->first, 0, "0 and above") ||
      check_number("--seed", (double)request->seed, 0, "0 and above") ||
      check_number("--seconds", request->seconds, 0.001, "0.001 and above") ||
      check_number("--exhaustive", request->exhaustive, 0, "0 and above"))
    return EXIT_USAGE;
  if (request->seed != NOT_GIVEN) {
    request->first = request->seed;
    request->seeds = 1;
  }
  if (request->seeds == NOT_GIVEN && request->seconds == NOT_GIVEN)
    request->seeds = 100;
  world.tracing = request->trace;
  if (request->without && shrink_parse_faults(&world.omissions, request->without) != 0)
    return refuse("--without", request->without, FAULT_NAMES);
  if (request->strikes && shrink_parse_strikes(&world.omissions, request->strikes) != 0)
    return refuse("--strikes", request->strikes, "numbers from 0 with commas, or none");
  if (request->only && (request->seed != NOT_GIVEN || !seed_of(request->only, 1)))
    return refuse("--only", request->only,
                  "guarded, raising, lowering, registering, sieges, flips, behind, swaps or nights, without --seed");
  if (request->shrink && request->seed == NOT_GIVEN)
    return refuse("--shrink", "without --seed", "with --seed");
  if (request->order && orders_parse(&world, request->order) != 0)
    return refuse("--order", request->order, "what a run with --exhaustive has printed");
  if (request->history && (request->exhaustive == NOT_GIVEN || !orders_has(request->history)))
    return refuse("--history", request->history, "the name of one, with --exhaustive");
  world.hunted = request->hunt;
  return request->mutant ? choose_mutant(request->mutant) : 0;
}

static int parse(int argc, const char **argv, struct request *request)
{
  struct poptOption options[] = {
      {"seeds", 0, POPT_ARG_LONGLONG, &request->seeds, 0, "run N worlds (default 100)", "N"},
      {"first", 0, POPT_ARG_LONGLONG, &request->first, 0, "the first of them (default 1)", "S"},
      {"seconds", 0, POPT_ARG_DOUBLE, &request->seconds, 0, "run worlds for T seconds", "T"},
      {"seed", 0, POPT_ARG_LONGLONG, &request->seed, 0, "run world S alone", "S"},
      {"trace", 0, POPT_ARG_NONE, &request->trace, 0, "print everything that happens, with virtual time in ms", NULL},
      {"mutant", 0, POPT_ARG_STRING, &request->mutant, 0,
       "break a rule of the core (core/src/base/mutant.h); to be\n"
       "found is success",
       "NAME"},
      {"only", 0, POPT_ARG_STRING, &request->only, 0,
       "only worlds that are guarded, or may be raising\n"
       "or lowering max_ttl_ms, or registering nodes, too",
       "KIND"},
      {"mixed", 0, POPT_ARG_NONE, &request->mixed, 0, "locks are plain, shared, of several resources and permits",
       NULL},
      {"hard", 0, POPT_ARG_NONE, &request->hard, 0, "all is done to get past the restart guard", NULL},
      {"hunt", 0, POPT_ARG_STRING, &request->hunt, 0, "only a violation with these words counts", "WORDS"},
      {"serve", 0, POPT_ARG_NONE, &request->serve, 0, "no world: a model server on the standard input and output",
       NULL},
      {"scripts", 0, POPT_ARG_NONE, &request->scripts, 0, "print the scripts that were sent to servers", NULL},
      {"shrink", 0, POPT_ARG_NONE, &request->shrink, 0, "with --seed: find out which faults the violation needs", NULL},
      {"exhaustive", 0, POPT_ARG_INT, &request->exhaustive, 0,
       "short histories with every order of their\n"
       "messages in which at most N are delayed",
       "N"},
      {"history", 0, POPT_ARG_STRING, &request->history, 0, "with --exhaustive: this one alone", "HISTORY"},
      {"order", 0, POPT_ARG_STRING, &request->order, 0, "one of these orders alone", "HISTORY:DELAYS"},
      {"without", 0, POPT_ARG_STRING, &request->without, 0, "leave out these kinds of faults", "FAULT,..."},
      {"strikes", 0, POPT_ARG_STRING, &request->strikes, 0, "of what the nemesis does, only these, or none", "N,..."},
      POPT_AUTOHELP POPT_TABLEEND};
  poptContext context = poptGetContext("sim", argc, argv, options, 0);
  int status = poptGetNextOpt(context), refused = 0;
  if (status < -1)
    fprintf(stderr, "sim: %s: %s; see --help\n", poptBadOption(context, 0), poptStrerror(status));
  else if (poptPeekArg(context))
    fprintf(stderr, "sim: \"%s\" is no option; see --help\n", poptPeekArg(context));
  refused = status < -1 || poptPeekArg(context);
  poptFreeContext(context);
  return refused ? EXIT_USAGE : 0;
}

int main(int argc, const char **argv)
{
  struct request request = {
      .seeds = NOT_GIVEN, .first = 1, .seed = NOT_GIVEN, .seconds = NOT_GIVEN, .exhaustive = NOT_GIVEN};
  int status = parse(argc, argv, &request);
  if (status || (status = check(&request)))
    return status;
  world_mixes |= request.mixed;
  world_is_hard |= request.hard;
  setvbuf(stdout, output, _IOFBF, sizeof output); /* not from the memory of a process that forks */
  signal(SIGSEGV, on_signal);
  signal(SIGABRT, on_signal);
  signal(SIGPROF, on_signal);
  if (request.serve)
    status = serve_alone(&world);
  else if (request.order)
    status = orders_replay(&world);
  else if (request.exhaustive != NOT_GIVEN)
    status = orders_run(&world, request.exhaustive, request.mutant, request.history);
  else
    status = request.shrink ? shrink(&world, (uint64_t)request.seed, request.mutant) : hunt_or_run(&request);
  if (request.scripts)
    script_print_all();
  free(request.mutant);
  free(request.without);
  free(request.strikes);
  free(request.order);
  free(request.hunt);
  return status;
}
