/* One netlink message for each thing the tree is made of (docs/tcal.md, "Tree"). */
#ifndef TCAL_OBJECTS_H
#define TCAL_OBJECTS_H

#include "derive.h"
#include "common/netlink/netlink.h"

/* Where a message goes. */
struct tcal_mail {
    struct nl_buffer *buffer;
    uint32_t sequence;
    uint32_t ifindex;
};

#define TCAL_ROOT 0xfff70000u /* fff7:, the splitter; a tree of ours is known by it */
#define TCAL_HTB 0x00010000u  /* 1: */
/* The class that packets of no filter are sent to does not exist: they pass unshaped. */
#define TCAL_DEFAULT_CLASS 0xffffu
/* netem's rate, which keeps order and otherwise takes no time. */
#define TCAL_NETEM_RATE_BYTES_PS 1000000000000000000ull
#define TCAL_FASTEST_BYTES_PS 1000000000000000ull /* rounds to no time at all */
#define TCAL_SLOT_LIMIT 16376u                    /* four handles each */

/* The qdiscs of a path, from its class inwards. */
enum tcal_part { TCAL_SPLIT, TCAL_NETEM, TCAL_FIFO, TCAL_HOLE };

static inline uint32_t tcal_class_of(uint32_t slot) {
    return TCAL_HTB | (0x10u + slot);
}

static inline uint32_t tcal_handle_of(uint32_t slot, enum tcal_part part) {
    return (0x10u + 4 * slot + (uint32_t)part) << 16;
}

/* Priorities of filters. Each protocol needs its own. */
#define TCAL_ND_PRIORITY 1u
#define TCAL_HASH_PRIORITY(family) (2u + (family))
#define TCAL_FAMILIES 2 /* IPv4, IPv6 */

/* Hash tables of u32: one by the last octet but one, behind it one by the last octet each. */
#define TCAL_TABLE(family) (1u + (family))
#define TCAL_SUBTABLE(family, octet) (0x100u * (1u + (family)) + (octet))

/* The splitter at the root, and htb in it. */
void tcal_mail_root(const struct tcal_mail *m, uint32_t mtu);
void tcal_mail_htb(const struct tcal_mail *m);
/* How many segments the stacks above may put into one packet. */
void tcal_mail_segments(const struct tcal_mail *m, uint32_t segments);
void tcal_mail_unroot(const struct tcal_mail *m);
void tcal_mail_class(const struct tcal_mail *m, uint32_t slot, uint64_t rate_bytes_ps,
                     uint32_t burst_ticks, uint32_t mtu);
void tcal_mail_hole(const struct tcal_mail *m, uint32_t slot);
void tcal_mail_split(const struct tcal_mail *m, uint32_t slot, uint32_t mtu);
/* `parent` 0: it is there already, under whatever; `table`: its delay table must be (re)placed. */
void tcal_mail_netem(const struct tcal_mail *m, uint32_t slot, const struct tcal_params *p,
                     uint64_t seed, uint32_t parent, bool table);
void tcal_mail_fifo(const struct tcal_mail *m, uint32_t slot, uint32_t bytes, bool make);

void tcal_mail_table(const struct tcal_mail *m, uint32_t family, uint32_t table);
/* From the root table: what is inside the prefix goes on in the first table. */
void tcal_mail_prefix(const struct tcal_mail *m, const struct prefix *prefix);
/* From the first table to the second one of this octet. */
void tcal_mail_link(const struct tcal_mail *m, uint32_t family, uint32_t octet);
void tcal_mail_filter(const struct tcal_mail *m, const struct addr *addr, uint32_t handle,
                      uint32_t class);
void tcal_mail_unfilter(const struct tcal_mail *m, uint32_t family, uint32_t handle);
/* The handle of a filter for the address in its bucket; `id` from 1 to 4094. */
uint32_t tcal_filter_handle(const struct addr *addr, uint32_t id);

/* Neighbour discovery passes unshaped: three filters, numbered from 0. */
#define TCAL_ND_FILTERS 3u
void tcal_mail_nd(const struct tcal_mail *m, uint32_t number);

/* Dumps of one interface. */
void tcal_mail_dump(const struct tcal_mail *m, uint16_t type, uint32_t parent);
/* One qdisc with its statistics. */
void tcal_mail_ask(const struct tcal_mail *m, uint32_t handle);

static inline uint32_t tcal_family_of(const struct addr *addr) {
    return addr->version == 6;
}

static inline uint32_t tcal_octet(const struct addr *addr, uint32_t from_end) {
    return addr->bytes[(addr->version == 6 ? 16 : 4) - from_end];
}

bool tcal_inside(const struct prefix *prefix, const struct addr *addr);

#endif
