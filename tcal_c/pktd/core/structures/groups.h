/* Which nodes listen to which group, and to which of its sources. */
#ifndef PKTD_GROUPS_H
#define PKTD_GROUPS_H

#include "common/addr.h"

#define GROUP_LIMIT 4096u
#define LISTENER_LIMIT 262144u
#define SOURCE_LIMIT 262144u /* that listeners name, all in all */
#define SOURCES_MOST 64u     /* that one of them names; what names more hears all */

/* The sources that a node hears: these alone, all but these, these as well, these no longer. */
enum membership_kind { HEARS_ONLY, HEARS_ALL_BUT, HEARS_MORE, HEARS_LESS };

/* What a node says of a group (RFC 3376 section 4.2.12, RFC 3810 section 5.2.12). */
struct membership {
    struct addr group;
    enum membership_kind kind;
    const uint8_t *sources; /* 4 bytes each, of IPv6 16 */
    uint32_t count;
};

struct group {
    struct addr addr;
    uint32_t
        first; /* listener + 1, in order of nodes; 0 = none. Of a free one: the next, as here */
    uint32_t count;
};

struct group_source {
    uint8_t bytes[16];
    uint32_t next; /* as `sources` of a listener */
};

struct listener {
    uint32_t next;    /* as `first` */
    uint32_t sources; /* source + 1, in no order; 0 = none */
    uint16_t node;
    uint16_t count;
    bool excludes;   /* it hears all sources but these, in place of these alone */
    bool named_many; /* it excludes, because it named more than there is room for */
};

/* Of zeroed memory. Data thread only. */
struct groups {
    struct addr_table table; /* the group of an address, in place of a node */
    struct addr_slot slot[2 * GROUP_LIMIT];
    struct group group[GROUP_LIMIT];
    struct listener listener[LISTENER_LIMIT];
    struct group_source source[SOURCE_LIMIT];
    uint32_t groups; /* that were ever used, listeners, and sources */
    uint32_t listeners;
    uint32_t sources;
    uint32_t free_group; /* + 1 */
    uint32_t free_listener;
    uint32_t free_source;
};

/* Takes note of what a node says. False: there is no room. */
bool groups_tell(struct groups *g, uint32_t node, const struct membership *said);

/* The node listens to nothing. */
void groups_forget(struct groups *g, uint32_t node);

/* NULL where nobody listens. */
const struct group *groups_find(const struct groups *g, const struct addr *addr);

/* Whether a listener hears what this source sends to its group: 16 bytes, as addr.h has them. */
bool groups_hears(const struct groups *g, const struct listener *listener, const uint8_t *source);

#endif
