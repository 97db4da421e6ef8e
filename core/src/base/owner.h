/* From a member to the struct that it is embedded in. */
#ifndef RL_OWNER_H
#define RL_OWNER_H

#include <stddef.h>

#define RL_OWNER(type, member, pointer) ((type *)((char *)(pointer) - offsetof(type, member)))

#endif
