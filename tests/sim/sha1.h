/* SHA-1 (RFC 3174): the names that servers give to scripts. For no other purpose. */
#ifndef RLK_SHA1_H
#define RLK_SHA1_H

#include <stddef.h>

void rlk_sha1_hex(const char *text, size_t size, char hex[41]); /* NUL-terminated */

#endif
