/* The kinds of lock: a file for each, and a line in kinds.c. */
#ifndef RLK_KINDS_H
#define RLK_KINDS_H

#include "../lock/kind.h"
#include "../wait/queue.h"

/* Bits of the scripts of which a line notes that the server has them. */
enum {
  RLK_SCRIPT_FENCE = RLK_SCRIPT_OF_KIND,
  RLK_SCRIPT_CLAIM = 2 * RLK_SCRIPT_OF_KIND,
  RLK_SCRIPT_DROP = 4 * RLK_SCRIPT_OF_KIND,
  RLK_SCRIPT_PICK = 8 * RLK_SCRIPT_OF_KIND
};

extern const struct rlk_kind rlk_mutex, rlk_fenced, rlk_several, rlk_hash, rlk_shared, rlk_permits;
extern const struct rlk_ask rlk_row_set, rlk_row_fenced, rlk_row_raise, rlk_row_claim, rlk_row_claim_on,
    rlk_row_claim_cut, rlk_row_claim_renew, rlk_row_drop, rlk_row_permit;
extern const struct rlk_script rlk_script_drop; /* what the token holds of n keys */

/* Begins a script on the keys of the claim, whose token is its first argument. */
int rlk_put_on_keys(struct rlk_out *out, struct rlk_line *line, const struct rlk_script *script, int arguments,
                    const struct rlk_claim *claim);
/* What happens to a key that holds the token as a string. */
int rlk_put_extend(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim, int64_t ttl_ms);
int rlk_put_expire(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim, int64_t ttl_ms);
int rlk_put_release(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim);
/* ... and the same where the node may have the queue of the resource, which it then leaves. */
const struct rlk_ask *rlk_put_give(struct rlk_out *out, struct rlk_line *line, struct rlk_claim *claim, int64_t now_ns);
#define RLK_PLAIN_KEY                                                                                                  \
  .keep = &rlk_row_extend, .cut = &rlk_row_expire, .put_keep = rlk_put_extend, .put_cut = rlk_put_expire,              \
  .put_give = rlk_put_give, .lost = rlk_queue_forget

/* By its options and the number of its resources. */
const struct rlk_kind *rlk_kind_of(const redlock_lock *lock);

#endif
