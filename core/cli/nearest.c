/* nearest.c - "did you mean ...?" */
#include "cli.h"

#include <string.h>

enum { WORD_MAX = 40 };

static size_t least(size_t a, size_t b, size_t c)
{
  size_t ab = a < b ? a : b;
  return ab < c ? ab : c;
}

/* Edit distance from a to b: insertions, deletions, replacements and swaps of neighbours. */
static size_t distance(const char *a, const char *b)
{
  size_t a_length = strlen(a), b_length = strlen(b);
  if (a_length > WORD_MAX || b_length > WORD_MAX)
    return WORD_MAX;
  size_t d[WORD_MAX + 1][WORD_MAX + 1];
  for (size_t i = 0; i <= a_length; i++)
    d[i][0] = i;
  for (size_t j = 0; j <= b_length; j++)
    d[0][j] = j;
  for (size_t i = 1; i <= a_length; i++)
    for (size_t j = 1; j <= b_length; j++) {
      size_t differs = a[i - 1] != b[j - 1];
      d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs);
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && d[i - 2][j - 2] + 1 < d[i][j])
        d[i][j] = d[i - 2][j - 2] + 1;
    }
  return d[a_length][b_length];
}

const char *nearest(const char *word, const char *const *words)
{
  const char *best = NULL;
  size_t best_distance = 1 + (strlen(word) + 2) / 3;
  for (; *words != NULL; words++) {
    size_t d = distance(word, *words);
    if (d < best_distance) {
      best_distance = d;
      best = *words;
    }
  }
  return best;
}
