/* Which process of a line of forks this is. */
#ifndef RLK_FORK_H
#define RLK_FORK_H

#include <stdint.h>

void rlk_fork_watch(void);    /* once per process, before the first question */
void rlk_fork_happened(void); /* in a child, by its fork handler: an emulator may not wipe the page */
/* Another number in every child. */
uint32_t rlk_fork_generation(void);
/* 1 in a child of the process of that generation; async-signal-safe. 0 where the kernel cannot tell. */
int rlk_fork_is_unseen(uint32_t generation);

#endif
