#include "programs.h"

#include <stdlib.h>
#include <string.h>

#include "../base/hash.h"
#include "../node/out.h"
#include "engine.h"

#define AGAIN_NS (600 * INT64_C(1000) * RLK_NS_PER_MS)

enum { VALUE_MAX = 8192, SOME = 60000, ALL = 900000 }; /* SOME, ALL: bytes of a reply */

/* A field is old after an hour; of a thousand the oldest makes room. Only others write more than these, and then all of
 * it goes: the programs write theirs again. Without a field nothing is written. Told are the fields of another digest,
 * up to a size; of a field that is not new only if one is given. */
static const struct rlk_script script_program = {
    .text = "local c,k,field=redis.call,KEYS[1],ARGV[1]\n"
            "local now=tonumber(c('TIME')[1])\n"
            "local value='v1 '..now..' '..ARGV[2]\n"
            "local is_new=field~='' and c('HSET',k,field,value)==1\n"
            "if field~='' then c('PEXPIRE',k,3600000) end\n"
            "local room=is_new and 60000 or tonumber(ARGV[3])\n"
            "local all=room>0 and c('HGETALL',k) or {}\n"
            "if is_new then\n"
            "  local left,oldest,first=0,nil,nil\n"
            "  for i=1,#all,2 do\n"
            "    local at=tonumber(all[i+1]:match('^v1 (%d+) '))\n"
            "    if not at or math.abs(now-at)>3600 then\n"
            "      if #all<=2002 then c('HDEL',k,all[i]) end\n"
            "    else\n"
            "      left=left+1\n"
            "      if all[i]~=field and (not first or at<first) then oldest,first=all[i],at end\n"
            "    end\n"
            "  end\n"
            "  if #all>2002 then c('DEL',k) c('HSET',k,field,value) c('PEXPIRE',k,3600000) all={}\n"
            "  elseif left>1000 then c('HDEL',k,oldest) end\n"
            "end\n"
            "local out={}\n"
            "local function put(v) out[#out+1]=#v..':'..v room=room-#v-8 end\n"
            "put(now..'')\n"
            "for i=1,#all,2 do\n"
            "  local f,v=all[i],all[i+1]\n"
            "  local is_ours=field~='' and f:sub(1,16)==field:sub(1,16)\n"
            "  if not is_ours and #f<=400 and #v<=8192 and #f+#v+16<=room and #out<2001 then put(f) put(v) end\n"
            "end\n"
            "return table.concat(out)"};

void rlk_programs_keep(struct rlk_node *n, const struct rlk_outcome *out)
{
  struct rlk_programs *programs = &rlk_peer_of(n)->programs;
  const struct rlk_buffer *text = &out->reply->text;
  char *copy = malloc(text->end + 1);
  if (!copy) /* it is told again in ten minutes */
    return;
  memcpy(copy, text->data, text->end);
  copy[text->end] = 0;
  free(programs->text);
  programs->text = copy;
  programs->size = text->end;
  programs->told_ns = out->now_ns;
}

/* A server that forbids it is not asked again by this client. */
static void written(struct rlk_node *n, struct rlk_outcome *out)
{
  if (!out->fault && out->reply->type == RLK_REPLY_STRING)
    rlk_programs_keep(n, out);
  else if (!out->fault && out->reply->type == RLK_REPLY_ERROR)
    rlk_peer_of(n)->programs.again_ns = RLK_NEVER;
}

static const struct rlk_ask row_program = {"the script of programs", .rest = RLK_FITS, .error = RLK_FITS,
                                           .arrived = written};

/* "- name" of a node that this client has not reached, so that the same list has one digest whatever is down. */
static void add_nodes(const struct rlk_net *net, struct rlk_text *out, uint64_t *digest)
{
  for (int i = 0; i < net->node_count; i++) {
    const struct rlk_node *n = &net->nodes[i];
    int is_seen = n->state == RLK_NODE_READY && n->voter->mark.nodes;
    *digest = rlk_hash(*digest, n->url.name, strlen(n->url.name) + 1);
    rlk_text_format(out, " %s ", is_seen ? n->voter->mark.nonce : "-");
    rlk_text_word(out, n->url.name);
  }
}

/* The value without its time, and the digest of what is the same for all clients of this program. */
static uint64_t put_value(const struct rlk_net *net, struct rlk_text *out, const char *pid, const char *host)
{
  size_t before;
  uint64_t digest;
  rlk_text_bytes(out, pid, (size_t)(host - pid));
  before = out->length;
  rlk_text_format(out, " %s %lld", redlock_version(), (long long)RLK_INT(&net->options, MAX_TTL_MS));
  digest = rlk_hash(RLK_HASH_OF_NOTHING, out->buf + before, out->length - before);
  add_nodes(net, out, &digest);
  return digest;
}

static int put(struct rlk_out *out, struct rlk_node *n, const char *field, const struct rlk_text *value, int64_t room)
{
  const char *prefix = RLK_STRING(n->net, KEY_PREFIX);
  size_t size = strlen(field) + value->length + strlen(prefix) + 160;
  if (rlk_out_script(out, n->line, &script_program, 1, 3, size) != 0)
    return -1;
  rlk_bulk_name(&n->line->out, prefix, RLK_PROGRAMS_KEY, "", 0);
  rlk_out_bulk(out, field, strlen(field));
  rlk_out_bulk(out, value->buf, value->length);
  rlk_out_number(out, room);
  return 0;
}

void rlk_programs_publish(struct rlk_node *n, int64_t now)
{
  struct rlk_programs *programs = &rlk_peer_of(n)->programs;
  const char *pid = rlk_engine_of(n->net)->client_entry + 3, *host;
  char value[VALUE_MAX], field[RLK_CLIENT_ENTRY_MAX + 24];
  struct rlk_text text = rlk_text_in(value, sizeof value), name = rlk_text_in(field, sizeof field);
  int64_t room = programs->again_ns ? SOME : 0;
  struct rlk_out out;
  if (now < programs->again_ns || !(host = strchr(pid, ' ')))
    return;
  programs->again_ns = now + AGAIN_NS;
  rlk_text_format(&name, "%016llx%s", (unsigned long long)put_value(n->net, &text, pid, host), host);
  if (text.length < sizeof value && put(&out, n, field, &text, room) == 0)
    rlk_out_end(&out, (struct rlk_request){.ask = &row_program, .sent_ns = now});
}

int rlk_programs_put(struct rlk_out *out, struct rlk_node *n)
{
  struct rlk_text nothing = rlk_text_in((char[1]){0}, 1);
  return put(out, n, "", &nothing, ALL);
}
