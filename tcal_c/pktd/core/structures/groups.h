/* Which nodes listen to which group. */
#ifndef PKTD_GROUPS_H
#define PKTD_GROUPS_H

#include "common/addr.h"

#define GROUP_LIMIT 4096u
#define LISTENER_LIMIT 262144u

struct group {
    struct addr addr;
    uint32_t
        first; /* listener + 1, in order of nodes; 0 = none. Of a free one: the next, as here */
    uint32_t count;
};

struct listener {
    uint32_t next; /* as `first` */
    uint16_t node;
};

/* Of zeroed memory. Data thread only. */
struct groups {
    struct addr_table table; /* the group of an address, in place of a node */
    struct addr_slot slot[2 * GROUP_LIMIT];
    struct group group[GROUP_LIMIT];
    struct listener listener[LISTENER_LIMIT];
    uint32_t groups; /* that were ever used, and listeners */
    uint32_t listeners;
    uint32_t free_group; /* + 1 */
    uint32_t free_listener;
};

/* From now on the node listens, or no longer. False: there is no room. */
bool groups_set(struct groups *g, const struct addr *addr, uint32_t node, bool listens);

/* The node listens to nothing. */
void groups_forget(struct groups *g, uint32_t node);

/* NULL where nobody listens. */
const struct group *groups_find(const struct groups *g, const struct addr *addr);

#endif
