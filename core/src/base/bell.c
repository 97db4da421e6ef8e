#include "bell.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "fd.h"
#include "system.h"

#ifdef RLK_LINUX

#include <sys/eventfd.h>

int rlk_bell_open(struct rlk_bell *b)
{
  b->readable = b->ringer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return b->readable < 0 ? -errno : 0;
}

#else

int rlk_bell_open(struct rlk_bell *b)
{
  int ends[2], status;
  *b = RLK_NO_BELL;
  if (pipe(ends) != 0)
    return -errno;
  *b = (struct rlk_bell){ends[0], ends[1]};
  status = rlk_fd_set_up(b->readable);
  if (status == 0)
    status = rlk_fd_set_up(b->ringer);
  if (status != 0)
    rlk_bell_close(b);
  return status;
}

#endif

void rlk_bell_close(struct rlk_bell *b)
{
  if (b->ringer != b->readable)
    close(b->ringer);
  if (b->readable >= 0)
    close(b->readable);
  *b = RLK_NO_BELL;
}

int rlk_bell_reopen(struct rlk_bell *b)
{
  struct rlk_bell fresh;
  int number = b->readable, status = rlk_bell_open(&fresh);
  if (status == 0)
    status = rlk_fd_renumber(fresh.readable, number);
  if (status != 0) {
    if (fresh.ringer != fresh.readable)
      close(fresh.ringer);
    rlk_bell_close(b);
    return status;
  }
  if (b->ringer != number)
    close(b->ringer);
  b->ringer = fresh.ringer == fresh.readable ? number : fresh.ringer;
  return 0;
}

/* If it is full, it is readable already. */
void rlk_bell_ring(int ringer)
{
  uint64_t one = 1;
  int saved = errno;
  if (ringer >= 0)
    while (write(ringer, &one, sizeof one) < 0 && errno == EINTR)
      ;
  errno = saved;
}

/* An eventfd gives its count and is empty; a pipe has eight bytes of each ring. */
void rlk_bell_silence(const struct rlk_bell *b)
{
  char rings[256];
  ssize_t n;
  do
    n = read(b->readable, rings, sizeof rings);
  while (n == (ssize_t)sizeof rings || (n < 0 && errno == EINTR));
}
