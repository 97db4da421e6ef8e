/* The kinds of lock: a file for each, and a line in kinds.c. */
#ifndef RLK_KINDS_H
#define RLK_KINDS_H

#include "../lock/kind.h"

extern const struct rlk_kind rlk_mutex, rlk_fenced;
extern const struct rlk_ask rlk_row_set, rlk_row_fenced, rlk_row_raise;

const struct rlk_kind *rlk_kind_of(const struct rlk_numbers *options);

#endif
