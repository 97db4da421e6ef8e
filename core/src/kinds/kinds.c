#include "kinds.h"

const struct rlk_kind *rlk_kind_of(const redlock_lock *lock)
{
  if (RLK_INT(&lock->options, PERMITS) > 1 || RLK_INT(&lock->options, SLOT) > 0)
    return &rlk_permits;
  if (RLK_INT(&lock->options, LAYOUT) == RLK_LAYOUT_HASH)
    return &rlk_hash;
  if (RLK_INT(&lock->options, SHARED))
    return &rlk_shared;
  if (lock->key->count > 1)
    return &rlk_several;
  return RLK_INT(&lock->options, FENCE) ? &rlk_fenced : &rlk_mutex;
}
