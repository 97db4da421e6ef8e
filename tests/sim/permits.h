/* permits.h - where the keys of permits stand among those of a node. */
#ifndef SIM_PERMITS_H
#define SIM_PERMITS_H

enum {
  RESOURCES_MAX = 2,
  PERMITS = 3,                       /* of a resource, where it has several: slot 0 has its own key, */
  KEYS_MAX = RESOURCES_MAX * PERMITS /* and the others have keys behind those of all resources */
};

static inline int permit_key(int resource, int slot)
{
  return slot > 0 ? RESOURCES_MAX + resource * (PERMITS - 1) + slot - 1 : resource;
}

#endif
