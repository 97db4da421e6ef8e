/* What an operator can do about a node that does not vote, or may stop voting. */
#ifndef RLK_ADVICE_H
#define RLK_ADVICE_H

#include "../node/node.h"

/* One line, static; "" where nothing is to be done. why: the reason as redlock_client_describe tells it. */
const char *rlk_advice(int votes, const char *why);

#endif
