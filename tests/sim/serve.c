/* The model server alone, without a world around it: it answers requests from the standard input, so that a test can
 * compare it with a real server. It knows EVAL, and what such a test sets: CLOCK microseconds; VERSION old or new;
 * STATE ok, full or readonly; SUBSCRIBE channel; CLEAR. */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void set_state(struct request *request)
{
  struct node *node = request->node;
  node->error = is(request, 1, "full")       ? NODE_ERROR_OOM
                : is(request, 1, "readonly") ? NODE_ERROR_READONLY
                                             : NODE_ERROR_NONE;
  node->error_until = INT64_MAX;
}

static void subscribe(struct request *request)
{
  struct connection *connection = &request->world->connections[0];
  snprintf(connection->channel, sizeof connection->channel, "%.*s", (int)request->arguments[1].size,
           request->arguments[1].bytes);
  connection->state = CONNECTION_OPEN;
  request->world->connections_used = 1;
  connection->server_open = connection->cut_down = 1; /* what is published to it goes nowhere */
}

static void answer(struct request *request)
{
  if (is(request, 0, "EVAL") && request->count >= 3) {
    script_eval(request);
    return;
  }
  if (is(request, 0, "CLOCK"))
    request->node->clock_offset = server_number(request, 1) * 1000 - request->world->now;
  else if (is(request, 0, "VERSION"))
    request->node->old = is(request, 1, "old");
  else if (is(request, 0, "STATE"))
    set_state(request);
  else if (is(request, 0, "SUBSCRIBE"))
    subscribe(request);
  else if (is(request, 0, "CLEAR"))
    keys_start(request->node);
  else
    world_fail(request->world, "a request that the model server alone does not know: %.*s",
               (int)request->arguments[0].size, request->arguments[0].bytes);
  server_reply(request, "+OK\r\n");
}

static void send(struct stream *reply)
{
  if (fwrite(reply->bytes, 1, reply->end, stdout) != reply->end || fflush(stdout) != 0)
    exit(EXIT_HARNESS);
  reply->end = 0;
}

int serve_alone(struct world *world)
{
  static struct request request;
  struct connection connection = {.process = &world->processes[0]};
  struct node *node = &world->nodes[0];
  struct stream in = {0};
  char bytes[4096];
  for (ssize_t size; (size = read(STDIN_FILENO, bytes, sizeof bytes)) > 0; send(&node->reply)) {
    stream_append(&in, bytes, (size_t)size);
    while ((size = server_parse(&request, in.bytes + in.head, in.end - in.head)) > 0) {
      server_begin(world, node, &connection, &request);
      request.is_served = 1;
      answer(&request);
      in.head += (size_t)size;
    }
    if (size < 0)
      world_fail(world, "bytes that are no request");
  }
  return 0;
}
