#include "form.h"

#include "asking.h"
#include "holder.h"
#include "kind.h"
#include "lease.h"
#include "round.h"

/* clang-format off */

/* Where a token is: 0 nowhere, 1 among readers, 2 in a hash, 3 and the number of the key: as a string. It does without
 * TYPE, which a user with the rights for permits may not run. */
static const struct rlk_script script_form = {
    .text = "local t=redis.call('TIME')\n"
            "local now=t[1]*1000+math.floor(t[2]/1000)\n"
            "for i,k in ipairs(KEYS) do\n"
            "  local v=redis.pcall('GET',k)\n"
            "  if v==ARGV[1] then return 2+i end\n"
            "  v=type(v)=='table' and redis.pcall('ZSCORE',k,'rl:'..ARGV[1])\n"
            "  if type(v)=='string' and tonumber(v)>now then return 1 end\n"
            "  if type(v)=='table' and redis.pcall('HEXISTS',k,ARGV[1])==1 then return 2 end\n"
            "end\n"
            "return 0"};

/* clang-format on */

int rlk_claim_pin(redlock_lock *lock, int of_all, struct rlk_claim **claim)
{
  char why[200];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  int status;
  *claim = rlk_claim_new(lock);
  if (!*claim)
    return REDLOCK_NO_MEMORY;
  status = lock->kind->pin ? lock->kind->pin(lock, *claim, of_all, &text) : REDLOCK_OK;
  if (status == REDLOCK_OK)
    return REDLOCK_OK;
  rlk_claim_let_go(lock->engine, claim);
  rlk_lock_refuse(lock, status == REDLOCK_INVALID ? why : NULL);
  return status;
}

int rlk_form_adopt(redlock_lock *lock, const void *token, size_t size, struct rlk_claim **claim, int64_t now)
{
  struct rlk_engine *e = lock->engine;
  int status = rlk_claim_pin(lock, 0, claim);
  if (status != REDLOCK_OK)
    return status;
  if (rlk_claim_take_token(*claim, token, size) != 0)
    status = REDLOCK_NO_MEMORY;
  else if (lock->kind->shares && !rlk_claim_can_share(*claim))
    status = rlk_lock_refuse_token(lock);
  if (status != REDLOCK_OK) {
    rlk_claim_let_go(e, claim);
    return status;
  }
  for (int i = 0; i < e->net.node_count; i++)
    (*claim)->node[i].flags = RLK_MAY_HOLD;
  (*claim)->holders = e->net.node_count;
  (*claim)->until_ns = now + 2 * RLK_INT(&e->net.options, MAX_TTL_MS) * RLK_NS_PER_MS;
  lock->hold.slot = (*claim)->slots.chosen;
  return REDLOCK_OK;
}

/* From shared there is no way back to what readers could still turn into a set (rule G.2). */
static int is_of_other_options(const redlock_lock *lock)
{
  const struct rlk_claim *claim = lock->claim;
  int slots = rlk_lock_slots(lock);
  if (claim->kind->shares && !lock->kind->alone)
    return 0;
  return claim->kind->form != lock->kind->form || claim->slots.count != slots ||
         (slots && claim->slots.chosen != RLK_INT(&lock->options, SLOT) + 1);
}

int rlk_form_follow(redlock_lock *lock, int64_t now)
{
  struct rlk_claim *claim, *was = lock->claim;
  int status;
  if (lock->state != REDLOCK_STATE_ADOPTED || !is_of_other_options(lock))
    return REDLOCK_OK;
  status = rlk_form_adopt(lock, rlk_claim_token(was), was->token_size, &claim, now);
  if (status != REDLOCK_OK)
    return status;
  rlk_claim_forget(lock->engine, was);
  rlk_claim_let_go(lock->engine, &lock->claim);
  lock->claim = claim;
  return REDLOCK_OK;
}

enum { NOWHERE, SHARED, HASH, STRING };

/* The token itself says that it is one of several permits. 0: it is none. */
static int permits_of(const redlock_lock *lock)
{
  int permits = rlk_token_permits(rlk_claim_token(lock->claim), lock->claim->token_size);
  return permits > 1 && lock->key->count == 1 ? permits : 0;
}

static int ask(struct rlk_node *n, redlock_lock *lock, int64_t now)
{
  const struct rlk_key *key = lock->key;
  int permits = permits_of(lock);
  size_t room = key->all_size + RLK_TOKEN_SIZE_MAX + 64 + rlk_slots_room(n->net, key, permits);
  struct rlk_out out;
  if (n->state != RLK_NODE_READY ||
      rlk_out_script(&out, n->line, &script_form, permits ? permits : key->count, 1, room) != 0)
    return -1;
  rlk_out_bytes(&out, key->bulk, key->all_size);
  rlk_put_slots(&out, key, permits);
  rlk_put_token(&out, lock->claim);
  rlk_ask_end(&out, rlk_request_of(lock, lock->claim, &rlk_row_form, now));
  return 0;
}

static void ask_all(redlock_lock *lock, int64_t now)
{
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->votes[i] == RLK_GONE && ask(&lock->engine->net.nodes[i], lock, now) == 0)
      lock->op.looking |= UINT64_C(1) << i;
  lock->op.forms_asked = 1;
  rlk_round_set_timer(lock, now + lock->op.asked.node_timeout_ns);
}

/* Where a lock of this kind has it. One of several resources that has it on some of them is none of this kind. */
static int own_form(const redlock_lock *lock)
{
  char form = lock->claim->kind->form;
  int slot = lock->claim->slots.chosen ? lock->claim->slots.chosen - 1 : 0;
  return lock->key->count > 1 ? NOWHERE : form == 's' ? SHARED : form == 'h' ? HASH : STRING + slot;
}

int rlk_form_told(redlock_lock *lock, const struct rlk_node *n, const struct rlk_outcome *out)
{
  if (!lock || lock->round.number != out->request.round || !rlk_in_flight(lock))
    return 0;
  lock->op.looking &= ~(UINT64_C(1) << n->index);
  if (!out->fault && out->reply->type == RLK_REPLY_INTEGER && out->reply->integer > NOWHERE &&
      out->reply->integer < STRING + RLK_PERMITS_MAX && out->reply->integer != own_form(lock))
    lock->node_answers[n->index].form = (int)out->reply->integer;
  return 1;
}

static void say(redlock_lock *lock, int form)
{
  int permits = permits_of(lock);
  char own = lock->claim->kind->form, why[160];
  struct rlk_text text = rlk_text_in(why, sizeof why);
  rlk_text_add(&text, "held in another form: ");
  if (form == SHARED && own != 's')
    rlk_text_add(&text, "shared; give " RLK_NAMED("shared"));
  else if (form == HASH && own != 'h')
    rlk_text_add(&text, "hash; give " RLK_NAMED("layout") " hash");
  else if (permits)
    rlk_text_format(&text, "permit %d of %d; give " RLK_NAMED("permits") " %d and " RLK_NAMED("slot") " %d",
                    form - STRING, permits, permits, form - STRING);
  else if (lock->key->count > 1)
    rlk_text_add(&text, "on fewer resources; give those alone");
  else if (own == 'h')
    rlk_text_add(&text, "plain; give " RLK_NAMED("layout") " string");
  else
    rlk_text_add(&text, "plain; give " RLK_NAMED("permits") " 1");
  rlk_lock_refuse(lock, why);
}

int rlk_form_judge(redlock_lock *lock, int64_t now)
{
  int form = NOWHERE, count = 0;
  if (!lock->op.forms_asked)
    ask_all(lock, now);
  if (lock->op.looking)
    return REDLOCK_PENDING;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->node_answers[i].form != NOWHERE) {
      form = lock->node_answers[i].form;
      count++;
    }
  if (count < lock->engine->quorum)
    return REDLOCK_LOST;
  for (int i = 0; i < lock->engine->net.node_count; i++)
    if (lock->node_answers[i].form != NOWHERE)
      lock->votes[i] = RLK_BUSY;
  say(lock, form);
  return REDLOCK_BUSY;
}
