#include "programs.h"

#include <string.h>

#include "../base/hash.h"
#include "../node/out.h"
#include "engine.h"

#define KEY "libredlock:c:programs"
#define AGAIN_NS (600 * INT64_C(1000) * RLK_NS_PER_MS)

enum { VALUE_MAX = 8192 };

/* A field is old after an hour; of a thousand the oldest makes room. Only others write more than these, and then all of
 * it goes: the programs write theirs again. */
static const struct rlk_script script_program = {
    .text = "local c,k=redis.call,KEYS[1]\n"
            "local now=tonumber(c('TIME')[1])\n"
            "local value='v1 '..now..' '..ARGV[2]\n"
            "if c('HSET',k,ARGV[1],value)==1 then\n"
            "  local all,left,oldest,first=c('HGETALL',k),0,nil,nil\n"
            "  for i=1,#all,2 do\n"
            "    local at=tonumber(all[i+1]:match('^v1 (%d+) '))\n"
            "    if not at or math.abs(now-at)>3600 then\n"
            "      if #all<=2002 then c('HDEL',k,all[i]) end\n"
            "    else\n"
            "      left=left+1\n"
            "      if all[i]~=ARGV[1] and (not first or at<first) then oldest,first=all[i],at end\n"
            "    end\n"
            "  end\n"
            "  if #all>2002 then c('DEL',k) c('HSET',k,ARGV[1],value)\n"
            "  elseif left>1000 then c('HDEL',k,oldest) end\n"
            "end\n"
            "c('PEXPIRE',k,3600000)\n"
            "return 1"};

/* A server that forbids it is not asked again by this client. */
static void written(struct rlk_node *n, struct rlk_outcome *out)
{
  if (!out->fault && out->reply->type == RLK_REPLY_ERROR)
    rlk_peer_of(n)->program_again_ns = RLK_NEVER;
}

static const struct rlk_ask row_program = {"the script of programs", .rest = RLK_FITS, .error = RLK_FITS,
                                           .arrived = written};

static void add_name(struct rlk_text *out, const char *name)
{
  for (; *name; name++)
    rlk_text_bytes(out, *name > ' ' && *name < 127 ? name : "?", 1);
}

/* "- name" of a node that this client has not reached, so that the same list has one digest whatever is down. */
static void add_nodes(const struct rlk_net *net, struct rlk_text *out, uint64_t *digest)
{
  for (int i = 0; i < net->node_count; i++) {
    const struct rlk_node *n = &net->nodes[i];
    int is_seen = n->state == RLK_NODE_READY && n->voter->mark.nodes;
    *digest = rlk_hash(*digest, n->url.name, strlen(n->url.name) + 1);
    rlk_text_format(out, " %s ", is_seen ? n->voter->mark.nonce : "-");
    add_name(out, n->url.name);
  }
}

void rlk_programs_publish(struct rlk_node *n, int64_t now)
{
  const struct rlk_net *net = n->net;
  struct rlk_peer *peer = rlk_peer_of(n);
  const char *prefix = RLK_STRING(net, KEY_PREFIX), *pid = rlk_engine_of(n->net)->client_entry + 3, *host;
  char value[VALUE_MAX], field[RLK_CLIENT_ENTRY_MAX + 24];
  struct rlk_text text = rlk_text_in(value, sizeof value), name = rlk_text_in(field, sizeof field);
  uint64_t digest;
  struct rlk_out out;
  if (now < peer->program_again_ns || !(host = strchr(pid, ' ')))
    return;
  peer->program_again_ns = now + AGAIN_NS;
  rlk_text_bytes(&text, pid, (size_t)(host - pid));
  size_t before = text.length;
  rlk_text_format(&text, " %s %lld", redlock_version(), (long long)RLK_INT(&net->options, MAX_TTL_MS));
  digest = rlk_hash(RLK_HASH_OF_NOTHING, value + before, text.length - before);
  add_nodes(net, &text, &digest);
  rlk_text_format(&name, "%016llx%s", (unsigned long long)digest, host);
  if (text.length >= sizeof value ||
      rlk_out_script(&out, n->line, &script_program, 1, 2, sizeof value + sizeof field + strlen(prefix) + 128) != 0)
    return;
  rlk_bulk_name(&n->line->out, prefix, KEY, "", 0);
  rlk_out_bulk(&out, field, name.length);
  rlk_out_bulk(&out, value, text.length);
  rlk_out_end(&out, (struct rlk_request){.ask = &row_program, .sent_ns = now});
}
