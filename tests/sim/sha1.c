#include "sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int bits)
{
  return x << bits | x >> (32 - bits);
}

static void block(uint32_t h[5], const uint8_t *bytes)
{
  uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
  for (int i = 0; i < 16; i++, bytes += 4)
    w[i] = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
  for (int i = 16; i < 80; i++)
    w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  for (int i = 0; i < 80; i++) {
    uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                 : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                 : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                          : (b ^ c ^ d) + 0xCA62C1D6;
    uint32_t next = rotate(a, 5) + f + e + w[i];
    e = d, d = c, c = rotate(b, 30), b = a, a = next;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

void rlk_sha1_hex(const char *text, size_t size, char hex[41])
{
  uint32_t h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  size_t whole = size / 64 * 64, length = size - whole < 56 ? 64 : 128;
  uint8_t tail[128] = {0};
  for (size_t at = 0; at < whole; at += 64)
    block(h, (const uint8_t *)text + at);
  memcpy(tail, text + whole, size - whole);
  tail[size - whole] = 0x80;
  for (int i = 0; i < 8; i++)
    tail[length - 1 - i] = (uint8_t)((uint64_t)size * 8 >> (8 * i));
  for (size_t at = 0; at < length; at += 64)
    block(h, tail + at);
  snprintf(hex, 41, "%08x%08x%08x%08x%08x", h[0], h[1], h[2], h[3], h[4]);
}
