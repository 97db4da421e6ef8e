/* A descriptor that is readable from the first ring until it is silenced: an eventfd, or a pipe where there is none. */
#ifndef RLK_BELL_H
#define RLK_BELL_H

struct rlk_bell {
  int readable; /* to wait for; -1: not open */
  int ringer;   /* to ring; may be duplicated */
};

#define RLK_NO_BELL ((struct rlk_bell){-1, -1})

int rlk_bell_open(struct rlk_bell *bell); /* 0 or -errno */
void rlk_bell_close(struct rlk_bell *bell);
/* In a forked child: another one, readable under the same number. 0, or -errno and closed. */
int rlk_bell_reopen(struct rlk_bell *bell);
void rlk_bell_ring(int ringer); /* async-signal-safe; -1: nothing happens */
void rlk_bell_silence(const struct rlk_bell *bell);

#endif
