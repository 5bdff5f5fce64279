/* Which node has this address: one open-addressing table for IPv4 and IPv6. */
#ifndef COMMON_ADDR_H
#define COMMON_ADDR_H

#include "limits.h"

/* An address as packet.h has it: IPv4 in the first four bytes, the rest zero. */
struct addr {
    uint8_t version; /* 4, 6, or 0 for none */
    uint8_t bytes[16];
};

/* The addresses that agree with this one in the first `bits` bits; the others are 0. */
struct prefix {
    struct addr addr;
    uint8_t bits;
};

struct addr_slot {
    struct addr addr; /* version 0: free */
    uint32_t node;
};

struct addr_table {
    struct addr_slot *slot;
    uint32_t capacity; /* a power of two, more than the addresses in it */
};

/* NODE_NONE when nobody has it. */
uint32_t addr_find(const struct addr_table *t, const struct addr *addr);

/* Gives the address to the node, taking it from whoever had it. There must be room. */
void addr_put(struct addr_table *t, const struct addr *addr, uint32_t node);

/* Forgets the address if this node has it. */
void addr_drop(struct addr_table *t, const struct addr *addr, uint32_t node);

/* Takes over zeroed memory of a larger capacity; returns the old memory. */
struct addr_slot *addr_reserve(struct addr_table *t, struct addr_slot *memory, uint32_t capacity);

/* Whether the address is among those of the prefix; none is among those of none. */
bool prefix_has(const struct prefix *prefix, const struct addr *addr);

bool addr_equal(const struct addr *a, const struct addr *b);

#endif
