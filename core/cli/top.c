/* top.c - redlock top [PATTERN]: what `redlock ls` shows, renewed. Names are looked for every 30 s; in between the
 * nodes are asked about the rows that are shown. */
#include "cli.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

enum { SCAN_MS = 30000, LOOK_LIMIT_MS = 1000, SHOWN_MAX = 100, HEAD_LINES = 3, FILTER_MAX = 64 };

static int64_t every_ms = 2000;
static int rounds; /* 0: until it is ended */

struct top {
  struct session *session;
  redlock_lock *list; /* all that match */
  json_t *rows;
  int64_t scanned_ms; /* when the last scan began; 0: none has */
  bool is_scanning, is_screen, is_over;
  char order; /* by w: waiters, n: names, h: held for, l: left */
  bool reads_filter;
  char filter[FILTER_MAX];
  struct termios terminal_before;
};

/* ---- the terminal ---- */

static void take_screen(const struct top *top)
{
  struct termios raw = top->terminal_before;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  fputs("\033[2J", stdout);
}

static void watch_stops(struct top *top)
{
  sigset_t *watched = &top->session->watched;
  sigaddset(watched, SIGTSTP);
  sigaddset(watched, SIGCONT);
  signalfd(top->session->signal_fd, watched, 0);
  sigprocmask(SIG_BLOCK, watched, NULL);
}

static void begin_screen(struct top *top)
{
  top->is_screen = !top->session->args->json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) &&
                   tcgetattr(STDIN_FILENO, &top->terminal_before) == 0;
  if (!top->is_screen)
    return;
  watch_stops(top);
  take_screen(top);
}

static void end_screen(const struct top *top)
{
  if (top->is_screen)
    tcsetattr(STDIN_FILENO, TCSADRAIN, &top->terminal_before);
}

static void stop_here(void)
{
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
  sigprocmask(SIG_BLOCK, &one, NULL);
}

/* A signal that ends it, or 0. While it is stopped the shell has the terminal as it was before. */
static int signal_of(const struct top *top)
{
  int number = session_signal(top->session);
  if (number != SIGTSTP && number != SIGCONT)
    return number;
  if (number == SIGTSTP) {
    end_screen(top);
    stop_here();
  }
  take_screen(top);
  return 0;
}

/* ---- asking ---- */

static void start_scan(struct top *top)
{
  top->scanned_ms = redlock_now_ms();
  top->is_scanning = redlock_lock_start(top->list, REDLOCK_LIST, -1) == REDLOCK_OK;
}

static void end_scan(struct top *top)
{
  if (!top->is_scanning || redlock_lock_status(top->list) == REDLOCK_PENDING)
    return;
  top->is_scanning = false;
  json_decref(top->rows);
  top->rows = list_rows(top->list);
}

static char *bytes_of(const json_t *row, size_t *size)
{
  const json_t *text = json_object_get(row, "resource");
  const char *hex = text_in(row, "resource_hex");
  *size = text != NULL ? json_string_length(text) : strlen(hex) / 2;
  char *bytes = must(calloc(*size + 1, 1));
  if (text != NULL)
    memcpy(bytes, json_string_value(text), *size);
  for (size_t i = 0; text == NULL && i < *size; i++)
    sscanf(hex + 2 * i, "%2hhx", (unsigned char *)&bytes[i]);
  return bytes;
}

static redlock_lock *lock_of(const struct top *top, const json_t *row)
{
  size_t size;
  char *bytes = bytes_of(row, &size);
  char *pattern = pattern_of_name(bytes, &size);
  redlock_lock *lock = must(redlock_lock_new(top->session->client, pattern, size));
  int slot = (int)number_in(row, "slot"), permits = (int)number_in(row, "permits");
  if (slot > 0 || permits > 0)
    slot_set(lock, permits > slot ? permits : slot + 1, slot);
  free(pattern);
  free(bytes);
  return lock;
}

/* What was released since is shown no more. What too few nodes tell of stays, without what was known of it. */
static void take_row(struct top *top, json_t *row, redlock_lock *lock)
{
  json_t *fresh = list_rows(lock), *one = json_array_get(fresh, 0);
  static const char *const told_of[] = {"holder", "held_by", "nodes", "waiting"};
  int nodes = redlock_client_node_count(top->session->client), told = 0;
  size_t i, at = json_array_size(top->rows);
  for (i = 0; i < json_array_size(top->rows); i++)
    at = json_array_get(top->rows, i) == row ? i : at;
  for (int node = 0; node < nodes; node++)
    told += redlock_lock_vote(lock, node) == REDLOCK_OK;
  bool is_found = one != NULL && (number_in(one, "nodes") > 0 || number_in(one, "waiting") > 0);
  if (at < json_array_size(top->rows) && is_found)
    json_array_set(top->rows, at, one);
  else if (at < json_array_size(top->rows) && told > nodes / 2)
    json_array_remove(top->rows, at);
  for (i = 0; i < sizeof told_of / sizeof *told_of; i++)
    json_object_del(row, told_of[i]);
  json_decref(fresh);
}

static void look_again(struct top *top, json_t *shown)
{
  redlock_lock *locks[SHOWN_MAX];
  size_t count = json_array_size(shown);
  for (size_t i = 0; i < count; i++) {
    locks[i] = lock_of(top, json_array_get(shown, i));
    if (redlock_lock_start(locks[i], REDLOCK_LIST, LOOK_LIMIT_MS) != REDLOCK_OK)
      top->is_over = true; /* the client was closed */
  }
  for (size_t i = 0; i < count; i++) {
    while (redlock_lock_status(locks[i]) == REDLOCK_PENDING && top->session->caught == 0) {
      session_poll(top->session, LOOK_LIMIT_MS);
      top->session->caught = signal_of(top);
    }
    if (top->session->caught == 0)
      take_row(top, json_array_get(shown, i), locks[i]);
    redlock_lock_free(locks[i]);
  }
}

/* ---- showing ---- */

static char order_of_rows;

static int compare(const void *left, const void *right)
{
  const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
  int64_t x = 0, y = 0;
  if (order_of_rows == 'w') {
    x = number_in(b, "waiting");
    y = number_in(a, "waiting");
  } else if (order_of_rows == 'h') {
    x = number_in(json_object_get(b, "held_by"), "held_ms");
    y = number_in(json_object_get(a, "held_by"), "held_ms");
  } else if (order_of_rows == 'l') {
    x = number_in(a, "holder_ttl_ms");
    y = number_in(b, "holder_ttl_ms");
  }
  if (x != y)
    return x < y ? -1 : 1;
  int order = strcmp(text_in(a, "name"), text_in(b, "name"));
  return order != 0 ? order : (int)(number_in(a, "slot") - number_in(b, "slot"));
}

static json_t *shown_rows(const struct top *top, size_t most)
{
  size_t count = 0, i;
  json_t **all = must(calloc(json_array_size(top->rows) + 1, sizeof *all)), *row, *shown = must(json_array());
  json_array_foreach(top->rows, i, row) {
    if (strstr(text_in(row, "name"), top->filter) != NULL)
      all[count++] = row;
  }
  order_of_rows = top->order;
  qsort(all, count, sizeof *all, compare);
  for (i = 0; i < count && i < most; i++)
    json_array_append(shown, all[i]);
  free(all);
  return shown;
}

static size_t rows_of_screen(const struct top *top)
{
  int lines = 0;
  if (!top->is_screen || terminal_columns(&lines) == 0 || lines <= HEAD_LINES + 2)
    return SHOWN_MAX;
  return lines - HEAD_LINES - 2 < SHOWN_MAX ? (size_t)(lines - HEAD_LINES - 2) : SHOWN_MAX;
}

/* "nodes: 127.0.0.1:7001 ready, 127.0.0.1:7002 down"; of one that is ready and told nothing, why */
static char *nodes_line(const struct top *top)
{
  json_t *about = client_description(top->session->client), *scans = rows_nodes(top->session, top->list), *node;
  char *line = format("nodes:");
  size_t i;
  json_array_foreach(json_object_get(about, "nodes"), i, node) {
    const char *state = text_in(node, "state"), *why = text_in(json_array_get(scans, i), "why");
    bool is_unsaid = *why != '\0' && !top->is_scanning && strcmp(state, "ready") == 0;
    line = append(line, "%s %s %s", i == 0 ? "" : ",", text_in(node, "node"), is_unsaid ? why : state);
  }
  json_decref(scans);
  json_decref(about);
  return one_line(line);
}

static int64_t waiting_in(const json_t *rows)
{
  int64_t waiting = 0;
  size_t i;
  json_t *row;
  json_array_foreach(rows, i, row)
    waiting += number_in(row, "waiting");
  return waiting;
}

/* On a screen each line ends with what clears the rest of it. */
static void put_lines(const struct top *top, const char *text, int columns)
{
  for (const char *end; *text != '\0'; text = *end == '\0' ? end : end + 1) {
    end = text + strcspn(text, "\n");
    char *line = format("%.*s", (int)(end - text), text);
    print_columns(stdout, line, columns);
    fputs(top->is_screen ? "\033[K\n" : "\n", stdout);
    free(line);
  }
}

static int show(const struct top *top, json_t *shown)
{
  if (top->session->args->json)
    return print_json(
        must(json_pack("{s:s,s:O,s:b}", "status", redlock_status_name(redlock_lock_status(top->list)), "locks", shown,
                       "truncated", json_array_size(shown) < json_array_size(top->rows))));
  char *text = NULL, *nodes = nodes_line(top), *clock = time_words("%H:%M:%S", time(NULL));
  size_t size;
  FILE *out = must(open_memstream(&text, &size));
  int columns = top->is_screen ? terminal_columns(NULL) : 0;
  size_t count = json_array_size(top->rows);
  fprintf(out, "%s  %zu lock%s, %lld waiting, ", clock, count, count == 1 ? "" : "s", (long long)waiting_in(top->rows));
  if (top->is_scanning)
    fprintf(out, "looking for names\n%s\n", nodes);
  else
    fprintf(out, "names %lld s old%s\n%s\n", (long long)(redlock_now_ms() - top->scanned_ms) / 1000,
            redlock_lock_status(top->list) == REDLOCK_OK ? "" : ", of too few nodes", nodes);
  if (top->is_screen && (*top->filter != '\0' || top->reads_filter))
    fprintf(out, "filter: %s%s\n", top->filter, top->reads_filter ? "_" : "");
  else if (top->is_screen)
    fputs("order: w waiting, h held, l left, n name; / filter; q quit\n", out);
  rows_print(out, shown, columns);
  fclose(out);
  if (top->is_screen)
    fputs("\033[H", stdout);
  put_lines(top, text, columns);
  fputs(top->is_screen ? "\033[J" : "\n", stdout);
  free(text);
  free(nodes);
  free(clock);
  return flush_answer();
}

/* ---- keys ---- */

static void take_letter(struct top *top, char letter)
{
  size_t length = strlen(top->filter);
  if (letter == '\n' || letter == '\r' || letter == 27)
    top->reads_filter = false;
  else if ((letter == 127 || letter == 8) && length > 0)
    top->filter[length - 1] = '\0';
  else if ((unsigned char)letter >= ' ' && letter != 127 && length + 1 < sizeof top->filter)
    top->filter[length] = letter;
}

static void take_key(struct top *top, char key)
{
  if (top->reads_filter) {
    take_letter(top, key);
  } else if (key == '/') {
    top->reads_filter = true;
    memset(top->filter, 0, sizeof top->filter);
  } else if (strchr("wnhl", key) != NULL) {
    top->order = key;
  } else if (key == 'q') {
    top->is_over = true;
  }
}

/* Until then; true: a key was pressed, or the terminal is to be written anew. */
static bool wait_for_key(struct top *top, int64_t until_ms)
{
  struct session *session = top->session;
  struct pollfd wanted[] = {{.fd = session->client_fd, .events = POLLIN},
                            {.fd = session->signal_fd, .events = POLLIN},
                            {.fd = top->is_screen ? STDIN_FILENO : -1, .events = POLLIN}};
  for (int64_t left_ms; session->caught == 0 && (left_ms = until_ms - redlock_now_ms()) > 0;) {
    char key;
    poll(wanted, 3, (int)left_ms);
    session_poll(session, 0);
    session->caught = signal_of(top);
    end_scan(top);
    if (wanted[1].revents != 0)
      return true;
    if (wanted[2].revents != 0) {
      top->is_over = read(STDIN_FILENO, &key, 1) != 1;
      if (!top->is_over && key != '\0')
        take_key(top, key);
      return true;
    }
  }
  return false;
}

/* ---- all of it ---- */

static int round_of(struct top *top)
{
  json_t *shown = shown_rows(top, rows_of_screen(top));
  look_again(top, shown);
  json_decref(shown);
  shown = shown_rows(top, rows_of_screen(top));
  int code = show(top, shown);
  int64_t until_ms = redlock_now_ms() + every_ms;
  while (code == 0 && !top->is_over && wait_for_key(top, until_ms)) {
    json_decref(shown);
    shown = shown_rows(top, rows_of_screen(top));
    code = show(top, shown);
  }
  json_decref(shown);
  return code;
}

static void await_scan(struct top *top)
{
  while (top->is_scanning && top->session->caught == 0)
    (void)wait_for_key(top, redlock_now_ms() + 100);
}

/* The exit code, as of `redlock ls`. */
static int say_missing(const struct top *top)
{
  int status = redlock_lock_status(top->list);
  if (status == REDLOCK_OK || top->session->caught != 0)
    return 0;
  json_t *nodes = rows_nodes(top->session, top->list);
  int code = list_missing(top->session, status, false, top->rows, nodes);
  json_decref(nodes);
  return code;
}

static int run(struct top *top)
{
  int code = 0;
  start_scan(top);
  await_scan(top);
  if (redlock_lock_status(top->list) == REDLOCK_REFUSED_CONFIG) { /* there would seem to be no locks */
    if (top->session->args->json)
      (void)show(top, top->rows);
    return say_missing(top);
  }
  for (int i = 0; code == 0 && !top->is_over && top->session->caught == 0 && (rounds == 0 || i < rounds); i++) {
    if (!top->is_scanning && redlock_now_ms() - top->scanned_ms >= SCAN_MS)
      start_scan(top);
    code = round_of(top);
  }
  if (code != 0 || rounds == 0 || top->is_over)
    return code;
  await_scan(top);
  return say_missing(top);
}

static int top_run(struct session *session)
{
  struct top top = {.session = session, .order = 'w', .rows = must(json_array())};
  int code = list_may_run(session);
  if (code != 0)
    return code;
  char *pattern = pattern_of(session->args->prefix);
  top.list = must(redlock_lock_new(session->client, pattern, strlen(pattern)));
  free(pattern);
  begin_screen(&top);
  code = run(&top);
  end_screen(&top);
  redlock_lock_free(top.list);
  json_decref(top.rows);
  return code;
}

static const struct flag every_flag =
    FLAG_TO("every", 0, "DURATION", flag_duration, &every_ms, "how often (default 2s)");
static const struct flag rounds_flag = FLAG_COUNT("rounds", &rounds, 1000000, "end after N of them");

const struct command top_command = {
    OVERVIEW("top", "Look", "show the list of ls, refreshed every 2 s", "[OPTION...] [PATTERN]"),
    .help = "Shows what `redlock ls` lists, those with most waiters first, every 2 s. Looks for names every 30 s "
            "(SCAN; the user needs +scan); in between it asks about the rows that are shown.\n"
            "Keys: w, h, l, n order the rows by waiters, time held, time left, name; / filters names; q quits.\n"
            "Without a terminal it prints one table after the other, with --json objects, of 100 rows at most. With "
            "--rounds it exits as ls does.",
    DEFAULTS({"connect_timeout_ms", "1000"}, {"guard", "off"}), FLAGS(&every_flag, &rounds_flag), .run = top_run};
