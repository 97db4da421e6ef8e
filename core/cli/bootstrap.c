/* bootstrap.c - redlock bootstrap: an operator says that no lock is live, so that the restart guard need not wait, or
 * changes the number in the markers. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool only_new, is_agreed, replaces;

static int64_t told(redlock_client *client, int node, int field)
{
  return redlock_client_bootstrapped(client, node, field);
}

/* ---- the question ---- */

/* One question asks one thing. The core plans what one of them covers, in this order. */
enum subject { LIVE, RAISED, LOWERED, STOPPED, HISTORY };

static bool is_planned(redlock_client *client, int node)
{
  int64_t did = told(client, node, REDLOCK_BOOTSTRAP_DID);
  return did == REDLOCK_DID_REGISTERED || did == REDLOCK_DID_REPLACED;
}

static enum subject subject_of(redlock_client *client, int node, int64_t max_ttl_ms)
{
  if (told(client, node, REDLOCK_BOOTSTRAP_DID) == REDLOCK_DID_REGISTERED)
    return LIVE;
  if (told(client, node, REDLOCK_BOOTSTRAP_FOUND) == REDLOCK_FOUND_OTHER_LIST)
    return STOPPED;
  if (told(client, node, REDLOCK_BOOTSTRAP_FOUND) == REDLOCK_FOUND_VOTES)
    return HISTORY;
  return told(client, node, REDLOCK_BOOTSTRAP_MAX_TTL_MS) < max_ttl_ms ? RAISED : LOWERED;
}

/* The programs that may be the reason to answer no. Nodes with another marker tell them, too: this looks without one.
 */
static void name_programs(const struct args *args, enum subject subject, int64_t max_ttl_ms)
{
  struct session session = {.args = args, .client = must(redlock_client_new()), .client_fd = -1, .signal_fd = -1};
  if ((subject == RAISED || subject == LOWERED || subject == STOPPED) && options_set(session.client, args) == 0 &&
      redlock_client_set(session.client, "guard", "off") == REDLOCK_OK &&
      redlock_client_open_to_look(session.client) == REDLOCK_OK) {
    session.client_fd = redlock_client_fd(session.client);
    json_t *programs = programs_examine(&session);
    programs_say(programs,
                 subject == LOWERED  ? 0
                 : subject == RAISED ? max_ttl_ms
                                     : INT64_MAX,
                 subject == LOWERED ? max_ttl_ms : INT64_MAX);
    json_decref(programs);
  }
  redlock_client_free(session.client);
}

/* Leases of the former number are over when it has not been used for as long as it says. */
static void ask_about(enum subject subject, int64_t max_ttl_ms, int64_t former_ms)
{
  char *number = duration_text(max_ttl_ms), *former = duration_text(former_ms);
  switch (subject) {
  case LIVE: fputs(": is no lock live?", stderr); break;
  case RAISED: fprintf(stderr, ": have all programs had max_ttl_ms = %s for %s?", number, number); break;
  case LOWERED: fprintf(stderr, ": has no program asked for more than %s for %s?", number, former); break;
  case HISTORY: fputs(": is its marker to name the server's replication history, too?", stderr); break;
  default:
    fprintf(stderr, ": have all its programs been stopped%s%s?", former_ms ? " for " : "", former_ms ? former : "");
  }
  free(number);
  free(former);
}

/* Names the findings: "a is quarantined for another 21 s, b is new or may have lost keys: is no lock live?" */
static bool user_agrees(redlock_client *client, const struct args *args)
{
  enum subject subject = LIVE;
  int64_t max_ttl_ms = client_option_ms(client, "max_ttl_ms"), former_ms = 0;
  int named = 0;
  for (int i = 0; i < redlock_client_node_count(client); i++)
    if (is_planned(client, i))
      subject = subject_of(client, i, max_ttl_ms);
  name_programs(args, subject, max_ttl_ms);
  for (int i = 0; i < redlock_client_node_count(client); i++) {
    int64_t number_ms = told(client, i, REDLOCK_BOOTSTRAP_MAX_TTL_MS);
    if (!is_planned(client, i))
      continue;
    char *name = node_name(client, i), *words = one_line(bootstrap_words(client, i));
    fprintf(stderr, "%s%s %s", named++ ? ", " : "", name, words);
    free(name);
    free(words);
    former_ms = number_ms > former_ms ? number_ms : former_ms;
  }
  ask_about(subject, max_ttl_ms, former_ms);
  return session_agrees(&(struct session){.signal_fd = -1});
}

/* ---- the answer ---- */

static const char *done_words(int64_t did)
{
  switch (did) {
  case REDLOCK_DID_REGISTERED: return "registered";
  case REDLOCK_DID_REPLACED: return "its marker was replaced";
  default: return NULL;
  }
}

static void print_node(redlock_client *client, int node)
{
  int64_t did = told(client, node, REDLOCK_BOOTSTRAP_DID);
  const char *done = done_words(did);
  char *name = node_name(client, node), *words = one_line(bootstrap_words(client, node));
  if (done != NULL)
    printf("%s: %s; it %s\n", name, done, words);
  else if (did == REDLOCK_DID_NOTHING)
    printf("%s: votes already\n", name);
  else
    printf("%s: %s: %s\n", name, did == REDLOCK_DID_NO_ANSWER ? "no answer" : "left alone", words);
  free(name);
  free(words);
}

static json_t *node_json(redlock_client *client, int node)
{
  int64_t max_ttl_ms = told(client, node, REDLOCK_BOOTSTRAP_MAX_TTL_MS);
  char *name = node_name(client, node), *words = one_line(bootstrap_words(client, node));
  json_t *object =
      must(json_pack("{s:o*,s:s,s:b,s:o,s:o*}", "node", json_string(name), "did",
                     redlock_bootstrap_did_name((int)told(client, node, REDLOCK_BOOTSTRAP_DID)), "votes",
                     told(client, node, REDLOCK_BOOTSTRAP_VOTES) == 1, "max_ttl_ms",
                     max_ttl_ms > 0 ? json_integer(max_ttl_ms) : json_null(), "found", json_string(words)));
  free(name);
  free(words);
  return object;
}

static int print_nodes(redlock_client *client, const struct args *args, int status)
{
  int nodes = redlock_client_node_count(client);
  if (!args->json) {
    for (int i = 0; i < nodes; i++)
      print_node(client, i);
    return flush_answer();
  }
  json_t *list = must(json_array());
  for (int i = 0; i < nodes; i++)
    json_array_append_new(list, node_json(client, i));
  return print_json(must(json_pack("{s:s,s:o}", "status", redlock_status_name(status), "nodes", list)));
}

/* ---- all of it ---- */

/* Where too few nodes vote, and the mode leaves alone what an answer would let vote. */
static void say_who_may(redlock_client *client)
{
  int nodes = redlock_client_node_count(client), left = 0, votes = 0;
  for (int i = 0; i < nodes; i++) {
    int64_t found = told(client, i, REDLOCK_BOOTSTRAP_FOUND);
    left += found == REDLOCK_FOUND_NEW || found == REDLOCK_FOUND_QUARANTINED;
    votes += told(client, i, REDLOCK_BOOTSTRAP_VOTES) == 1;
  }
  if ((only_new || replaces) && left > 0 && votes <= nodes / 2)
    fail(0,
         "`redlock bootstrap`, which asks whether a lock is live, lets these nodes vote at once; otherwise a node that "
         "is new votes --max-ttl after a program has asked it for a lock");
}

static bool is_told(int status)
{
  return status == REDLOCK_OK || status == REDLOCK_NO_QUORUM || status == REDLOCK_REFUSED_CONFIG;
}

static int refuse(redlock_client *client, const struct args *args, int status)
{
  if (status == REDLOCK_INVALID)
    return refuse_options(args, client_message_parts(client));
  char *message = client_message(client);
  int code = fail(exit_code_of(args, status), "%s", *message ? message : redlock_status_text(status));
  free(message);
  return code;
}

static int print_all(redlock_client *client, const struct args *args, int status)
{
  int failed = print_nodes(client, args, status);
  say_who_may(client);
  return failed ? failed : exit_code_of(args, status);
}

static int write_markers(redlock_client *client, const struct args *args, int mode)
{
  int status = redlock_client_bootstrap(client, mode);
  return is_told(status) ? print_all(client, args, status) : refuse(client, args, status);
}

static bool is_anything_planned(redlock_client *client)
{
  bool is_any = false;
  for (int i = 0; i < redlock_client_node_count(client); i++)
    is_any = is_any || is_planned(client, i);
  return is_any;
}

/* Something that another question would cover. */
static bool is_more_to_ask(redlock_client *client)
{
  bool is_more = false;
  for (int i = 0; i < redlock_client_node_count(client); i++) {
    int64_t found = told(client, i, REDLOCK_BOOTSTRAP_FOUND);
    bool differs = found == REDLOCK_FOUND_OTHER_NUMBER || found == REDLOCK_FOUND_OTHER_LIST;
    is_more = is_more || (differs && !is_planned(client, i));
  }
  return is_more;
}

/* Asks if something is to be done, one question after the other; each answer is acted on before the next is asked. */
static int ask_and_write(redlock_client *client, const struct args *args, int mode)
{
  bool is_more = true;
  int code = -1;
  while (is_more) {
    int status = redlock_client_bootstrap(client, mode + REDLOCK_BOOTSTRAP_DRY);
    if (!is_told(status))
      return refuse(client, args, status);
    if (!is_anything_planned(client))
      return code < 0 ? print_all(client, args, status) : code;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
      return fail(EXIT_USAGE,
                  "bootstrap asks before it writes, and there is no terminal: use --new for new nodes, or --yes to "
                  "assert it");
    is_more = mode == REDLOCK_BOOTSTRAP_REPLACE && is_more_to_ask(client);
    if (!user_agrees(client, args)) {
      fputs(code < 0 ? "Nothing was written.\n" : "Nothing else was written.\n", stderr);
      return EXIT_DECLINED;
    }
    code = write_markers(client, args, mode);
  }
  return code;
}

static int check(const struct args *args)
{
  (void)args;
  if (only_new && (is_agreed || replaces))
    return fail(EXIT_USAGE, "--new registers the nodes of a new deployment, and is used without --yes and --replace");
  return 0;
}

static int bootstrap(const struct args *args)
{
  int mode = replaces ? REDLOCK_BOOTSTRAP_REPLACE : only_new ? REDLOCK_BOOTSTRAP_NEW : REDLOCK_BOOTSTRAP_YES;
  redlock_client *client = must(redlock_client_new());
  int code = options_set(client, args);
  if (code == 0)
    code = is_agreed || only_new ? write_markers(client, args, mode) : ask_and_write(client, args, mode);
  redlock_client_free(client);
  return code;
}

static const struct flag new_flag =
    FLAG_TO("new", 0, NULL, flag_switch, &only_new,
            "for deployment scripts: register the nodes if all answer and none has a marker; asks nothing");
static const struct flag yes_flag = FLAG_TO(
    "yes", 'y', NULL, flag_switch, &is_agreed,
    "do not ask: assert that no lock is live, or with --replace what it asks; a script must not use it, since it "
    "undoes the guard of servers that were restarted");
static const struct flag replace_flag = FLAG_TO(
    "replace", 0, NULL, flag_switch, &replaces,
    "rewrite markers with another --max-ttl, or of another list of nodes, and leave new and quarantined nodes alone");

const struct command bootstrap_command = {
    OVERVIEW("bootstrap", "Operate", "let new nodes vote at once", "[OPTION...]"),
    .help =
        "Ends the wait of new nodes: asserts that no lock is live there, so that the restart guard lets them vote at "
        "once. Or, with --replace, changes the number and the list in their markers, and nothing else.\n"
        "Exits with 0 if that is done (--new: if a majority votes or will), 1 if you have declined, 69 if some did "
        "not answer, 78 if some were left alone.",
    .also = "max_ttl_ms",
    FLAGS(&new_flag, &yes_flag, &replace_flag),
    .check = check,
    .main = bootstrap};
