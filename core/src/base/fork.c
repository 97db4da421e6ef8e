/* Which process of a line of forks this is. It sees a raw clone, too, which runs no fork handlers. */
#include "fork.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
  uint32_t generation;
  volatile uint32_t *mark; /* a page that the kernel wipes in a child; NULL: getpid is asked */
  pid_t pid;
} self = {.generation = 1};

void rlk_fork_watch(void)
{
  self.pid = getpid();
#ifdef MADV_WIPEONFORK
  {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark != MAP_FAILED && madvise(mark, page, MADV_WIPEONFORK) == 0) {
      self.mark = mark;
      *self.mark = self.generation;
    } else if (mark != MAP_FAILED) {
      munmap(mark, page);
    }
  }
#endif
}

void rlk_fork_happened(void)
{
  if (self.mark)
    *self.mark = 0;
}

uint32_t rlk_fork_generation(void)
{
  if (self.mark ? *self.mark != self.generation : self.pid != getpid()) {
    self.generation++;
    self.pid = getpid();
    if (self.mark)
      *self.mark = self.generation;
  }
  return self.generation;
}

int rlk_fork_is_unseen(uint32_t generation)
{
  return generation && self.mark && *self.mark != generation;
}
