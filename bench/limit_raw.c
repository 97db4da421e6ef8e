/* Requests prepared as bytes in which only the token is replaced, replies told by their first bytes. limit_plain.c or
 * limit_tls.c moves them. */
#include "limit_raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "figures.h"
#include "limit.h"

enum { TEMPLATE_MAX = 256, OUT_MAX = 1 << 20, IN_MAX = 1 << 16 };

struct template
{
  char bytes[TEMPLATE_MAX];
  size_t size, token_at;
};

struct connection {
  size_t out_size, in_size;
  int lines_to_come; /* of clock and marker, before `granted` counts */
  bool granted;
  char out[OUT_MAX], in[IN_MAX];
};

static struct connection connections[MAX_NODES];
static struct template templates[MAX_IN_FLIGHT][2];
static char script_sha[41];
static bool reads_marker;

static void load_script(int node)
{
  char request[256], reply[64];
  size_t got = 0;
  int size = snprintf(request, sizeof request, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                      strlen(RELEASE_SCRIPT), RELEASE_SCRIPT);
  transport_write(node, request, (size_t)size);
  while (got < 47)
    got += transport_read(node, reply + got, sizeof reply - got);
  if (reply[0] != '$')
    die("SCRIPT LOAD was refused");
  memcpy(script_sha, reply + 5, 40);
}

int backend_open(int node, int port)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
    die("port %d: %s", port, strerror(errno));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  transport_begin(node, fd);
  load_script(node);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

static void fill(struct template *template, const char *format, const char *key)
{
  template->size = (size_t)snprintf(template->bytes, TEMPLATE_MAX, format, strlen(key), key, 0);
  template->token_at = (size_t)(strstr(template->bytes, "$40\r\n000") - template->bytes) + 5;
}

void backend_read_marker(void)
{
  reads_marker = true;
}

void backend_set_key(int slot, const char *key)
{
  char release[TEMPLATE_MAX], acquire[TEMPLATE_MAX];
  snprintf(release, sizeof release, "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n%s", script_sha,
           "$%zu\r\n%s\r\n$40\r\n%040d\r\n");
  snprintf(acquire, sizeof acquire, "%s%s",
           "*6\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$40\r\n%040d\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n" TTL_MS_TEXT "\r\n",
           reads_marker ? "*1\r\n$4\r\nTIME\r\n*2\r\n$3\r\nGET\r\n$12\r\nlibredlock:m\r\n" : "");
  fill(&templates[slot][ACQUIRE], acquire, key);
  fill(&templates[slot][RELEASE], release, key);
}

void backend_set_token(int slot, const char *token)
{
  for (int phase = ACQUIRE; phase <= RELEASE; phase++)
    memcpy(templates[slot][phase].bytes + templates[slot][phase].token_at, token, TOKEN_SIZE);
}

void backend_queue(int node, int slot, enum phase phase)
{
  struct connection *connection = &connections[node];
  const struct template *template = &templates[slot][phase];
  if (connection->out_size + template->size > OUT_MAX)
    die("too much is queued for node %d", node);
  memcpy(connection->out + connection->out_size, template->bytes, template->size);
  connection->out_size += template->size;
}

void backend_flush(int node)
{
  struct connection *connection = &connections[node];
  transport_write(node, connection->out, connection->out_size);
  connection->out_size = 0;
}

/* A SET and a release are answered with a line each, the clock with five, the marker with two. */
static void take_line(int node, const char *line, int size)
{
  struct connection *connection = &connections[node];
  if (*line == '-')
    die("node %d: %.*s", node, size, line);
  if (connection->lines_to_come) {
    connection->lines_to_come--;
  } else {
    connection->granted = line[0] == '+' || line[1] == '1';
    connection->lines_to_come = reads_marker && *line != ':' ? 7 : 0;
  }
  if (!connection->lines_to_come)
    limit_reply(node, connection->granted);
}

void backend_read(int node)
{
  struct connection *connection = &connections[node];
  connection->in_size += transport_read(node, connection->in + connection->in_size, IN_MAX - connection->in_size);
  char *line = connection->in, *end = connection->in + connection->in_size, *newline;
  while (line < end && (newline = memchr(line, '\n', (size_t)(end - line))) != NULL) {
    take_line(node, line, (int)(newline - line));
    line = newline + 1;
  }
  connection->in_size = (size_t)(end - line);
  memmove(connection->in, line, connection->in_size);
}
