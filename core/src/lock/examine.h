/* What a tool that looks after nodes asks of each of them. */
#ifndef RLK_EXAMINE_H
#define RLK_EXAMINE_H

extern const struct rlk_verb rlk_examine;

#endif
