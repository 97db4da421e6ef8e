#include "limit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "figures.h"

enum { OWED_MAX = 1 << 16 };

struct slot {
  enum phase phase;
  uint32_t turn; /* counts requests, so that a straggler's reply is known as such */
  int answered, granted;
  int64_t begin_ns;
  char key[32];
  char token[TOKEN_SIZE + 1];
};

struct owed {
  uint32_t slot, turn;
};

struct node {
  int fd;
  bool queued;
  uint32_t owed_first, owed_end;
  struct owed owed[OWED_MAX]; /* replies come in the order of the requests */
};

static struct figures figures;
static struct node nodes[MAX_NODES];
static struct slot slots[MAX_IN_FLIGHT];
static int node_count, in_flight = 1, needed, active, epoll_fd;
static bool wait_all;
static int64_t sends, receives, waits;

static void make_token(char *token)
{
  static const char digits[] = "0123456789abcdef";
  static unsigned char pool[4000];
  static size_t used = sizeof pool;
  if (used == sizeof pool) {
    if (getrandom(pool, sizeof pool, 0) != sizeof pool)
      die("getrandom gave too little");
    used = 0;
  }
  for (int i = 0; i < TOKEN_SIZE; i += 2, used++) {
    token[i] = digits[pool[used] >> 4];
    token[i + 1] = digits[pool[used] & 15];
  }
}

static void ask_all(uint32_t index, enum phase phase)
{
  struct slot *slot = &slots[index];
  slot->phase = phase;
  slot->turn++;
  slot->answered = slot->granted = 0;
  for (int i = 0; i < node_count; i++) {
    struct node *node = &nodes[i];
    if (node->owed_end - node->owed_first == OWED_MAX)
      die("node %d owes %d replies", i, OWED_MAX);
    node->owed[node->owed_end++ % OWED_MAX] = (struct owed){index, slot->turn};
    node->queued = true;
    backend_queue(i, (int)index, phase);
  }
}

static void start_cycle(uint32_t index)
{
  struct slot *slot = &slots[index];
  if (!figures_next(&figures)) {
    active--;
    return;
  }
  make_token(slot->token);
  backend_set_token((int)index, slot->token);
  slot->begin_ns = now_ns();
  ask_all(index, ACQUIRE);
}

static void end_phase(uint32_t index)
{
  struct slot *slot = &slots[index];
  if (slot->granted <= node_count / 2)
    figures.failed++;
  if (slot->phase == ACQUIRE) {
    ask_all(index, RELEASE);
  } else {
    slot->turn++;
    figures_add(&figures, now_ns() - slot->begin_ns);
    start_cycle(index);
  }
}

void limit_reply(int i, bool granted)
{
  struct node *node = &nodes[i];
  if (node->owed_first == node->owed_end)
    die("node %d answered what was not asked", i);
  struct owed owed = node->owed[node->owed_first++ % OWED_MAX];
  struct slot *slot = &slots[owed.slot];
  if (owed.turn != slot->turn)
    return;
  slot->answered++;
  slot->granted += granted;
  if (slot->granted == needed || slot->answered == node_count)
    end_phase(owed.slot);
}

static void flush_all(void)
{
  for (int i = 0; i < node_count; i++) {
    if (!nodes[i].queued)
      continue;
    nodes[i].queued = false;
    sends++;
    backend_flush(i);
  }
}

static void read_ready(void)
{
  struct epoll_event events[MAX_NODES];
  int count = epoll_wait(epoll_fd, events, MAX_NODES, 5000);
  if (count <= 0)
    die("no reply within 5 s");
  waits++;
  receives += count;
  for (int i = 0; i < count; i++)
    backend_read((int)events[i].data.u32);
}

static bool any_owed(void)
{
  for (int i = 0; i < node_count; i++)
    if (nodes[i].owed_first != nodes[i].owed_end)
      return true;
  return false;
}

static void run(void)
{
  active = in_flight;
  for (uint32_t i = 0; i < (uint32_t)in_flight; i++) {
    snprintf(slots[i].key, sizeof slots[i].key, "bench:%06u", i);
    backend_set_key((int)i, slots[i].key);
    start_cycle(i);
  }
  while (active > 0) {
    flush_all();
    read_ready();
  }
}

static void open_nodes(struct argp_state *state, char *ports)
{
  for (char *rest = ports, *port; (port = strsep(&rest, ",")) != NULL; node_count++) {
    if (node_count == MAX_NODES)
      argp_error(state, "--ports: at most %d are allowed", MAX_NODES);
    nodes[node_count].fd = backend_open(node_count, (int)parse_number(state, "ports", port, 1, 65535));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)node_count};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, nodes[node_count].fd, &event) != 0)
      die("epoll_ctl failed");
  }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'p': open_nodes(state, text); return 0;
  case 'k': in_flight = (int)parse_number(state, "in-flight", text, 1, MAX_IN_FLIGHT); return 0;
  case 'a': wait_all = true; return 0;
  case 'm': backend_read_marker(); return 0;
  case ARGP_KEY_INIT: state->child_inputs[0] = &figures; return 0;
  case ARGP_KEY_END:
    if (node_count == 0)
      argp_error(state, "--ports is missing");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv)
{
  static const struct argp_option options[] = {
      {"ports", 'p', "PORT,...", 0, "the nodes, on 127.0.0.1", 0},
      {"in-flight", 'k', "N", 0, "cycles at the same time (default 1)", 0},
      {"wait-all", 'a', NULL, 0, "wait for all nodes (default: for a majority)", 0},
      {"marker", 'm', NULL, 0, "read clock and marker behind each SET, as for the restart guard", 0},
      {0},
  };
  static const struct argp_child children[] = {{&figures_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {.options = options,
                                   .parser = parse_option,
                                   .children = children,
                                   .doc = "Redlock cycles with nothing but the bytes that have to be moved."};
  figures_init(&figures);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  needed = wait_all ? node_count : node_count / 2 + 1;
  run();
  char more[128];
  snprintf(more, sizeof more, ",\"sends\":%lld,\"receives\":%lld,\"waits\":%lld", (long long)sends, (long long)receives,
           (long long)waits);
  figures_print(&figures, more);
  while (any_owed())
    read_ready();
  return 0;
}
