/* Doubly linked lists: an item carries next and previous, or a struct with them per list that it is in. */
#ifndef RLK_LIST_H
#define RLK_LIST_H

#include <stddef.h>

/* in is what stands before next and previous in the item: nothing, or "FIELD." */
#define RLK_LIST_APPEND(first, last, item, in)                                                                         \
  do {                                                                                                                 \
    (item)->in next = NULL;                                                                                            \
    (item)->in previous = (last);                                                                                      \
    if (last)                                                                                                          \
      (last)->in next = (item);                                                                                        \
    else                                                                                                               \
      (first) = (item);                                                                                                \
    (last) = (item);                                                                                                   \
  } while (0)

#define RLK_LIST_REMOVE(first, last, item, in)                                                                         \
  do {                                                                                                                 \
    if ((item)->in previous)                                                                                           \
      (item)->in previous->in next = (item)->in next;                                                                  \
    else                                                                                                               \
      (first) = (item)->in next;                                                                                       \
    if ((item)->in next)                                                                                               \
      (item)->in next->in previous = (item)->in previous;                                                              \
    else                                                                                                               \
      (last) = (item)->in previous;                                                                                    \
  } while (0)

#endif
