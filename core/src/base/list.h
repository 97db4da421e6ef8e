/* Doubly linked lists: an item carries next and previous, or next_NAME and previous_NAME if it is in several. */
#ifndef RLK_LIST_H
#define RLK_LIST_H

#include <stddef.h>

/* name is what follows next and previous in the fields: nothing, or _NAME. */
#define RLK_LIST_APPEND(first, last, item, name)                                                                       \
  do {                                                                                                                 \
    (item)->next##name = NULL;                                                                                         \
    (item)->previous##name = (last);                                                                                   \
    if (last)                                                                                                          \
      (last)->next##name = (item);                                                                                     \
    else                                                                                                               \
      (first) = (item);                                                                                                \
    (last) = (item);                                                                                                   \
  } while (0)

#define RLK_LIST_REMOVE(first, last, item, name)                                                                       \
  do {                                                                                                                 \
    if ((item)->previous##name)                                                                                        \
      (item)->previous##name->next##name = (item)->next##name;                                                         \
    else                                                                                                               \
      (first) = (item)->next##name;                                                                                    \
    if ((item)->next##name)                                                                                            \
      (item)->next##name->previous##name = (item)->previous##name;                                                     \
    else                                                                                                               \
      (last) = (item)->previous##name;                                                                                 \
  } while (0)

#endif
