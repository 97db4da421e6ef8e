#include "kinds.h"

const struct rlk_kind *rlk_kind_of(const struct rlk_numbers *options)
{
  return RLK_INT(options, FENCE) ? &rlk_fenced : &rlk_mutex;
}
