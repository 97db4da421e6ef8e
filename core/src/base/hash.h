/* FNV-1a, 64 bits. */
#ifndef RLK_HASH_H
#define RLK_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RLK_HASH_OF_NOTHING UINT64_C(0xcbf29ce484222325)

/* Of the bytes behind those whose hash h is. */
static inline uint64_t rlk_hash(uint64_t h, const void *bytes, size_t size)
{
  const unsigned char *s = bytes;
  for (size_t i = 0; i < size; i++)
    h = (h ^ s[i]) * UINT64_C(0x100000001b3);
  return h;
}

#endif
