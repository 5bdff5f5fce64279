/* Linear probing with backward-shift deletion: no tombstones, so that a table never degrades. */
#include "addr.h"

#include <string.h>

bool addr_equal(const struct addr *a, const struct addr *b) {
    return a->version == b->version && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool prefix_has(const struct prefix *prefix, const struct addr *addr) {
    uint32_t whole = prefix->bits / 8;
    uint32_t rest = prefix->bits % 8;
    if (!prefix->addr.version || prefix->addr.version != addr->version ||
        memcmp(prefix->addr.bytes, addr->bytes, whole) != 0) {
        return false;
    }
    return !rest || (prefix->addr.bytes[whole] ^ addr->bytes[whole]) >> (8 - rest) == 0;
}

static uint32_t home(const struct addr_table *t, const struct addr *addr) {
    uint64_t high;
    uint64_t low;
    memcpy(&high, addr->bytes, 8);
    memcpy(&low, addr->bytes + 8, 8);
    uint64_t hash = (high ^ addr->version) * 0x9E3779B97F4A7C15ull;
    hash = (hash ^ (hash >> 29) ^ low) * 0xBF58476D1CE4E5B9ull;
    return (uint32_t)(hash >> 32) & (t->capacity - 1);
}

/* The slot of the address, or the free one where it would go. */
static uint32_t seek(const struct addr_table *t, const struct addr *addr) {
    uint32_t at = home(t, addr);
    while (t->slot[at].addr.version && !addr_equal(&t->slot[at].addr, addr)) {
        at = (at + 1) & (t->capacity - 1);
    }
    return at;
}

uint32_t addr_find(const struct addr_table *t, const struct addr *addr) {
    if (t->capacity == 0) {
        return NODE_NONE;
    }
    const struct addr_slot *slot = &t->slot[seek(t, addr)];
    return slot->addr.version ? slot->node : NODE_NONE;
}

void addr_put(struct addr_table *t, const struct addr *addr, uint32_t node) {
    struct addr_slot *slot = &t->slot[seek(t, addr)];
    slot->addr = *addr;
    slot->node = node;
}

void addr_drop(struct addr_table *t, const struct addr *addr, uint32_t node) {
    if (addr_find(t, addr) != node) {
        return;
    }
    uint32_t mask = t->capacity - 1;
    uint32_t hole = seek(t, addr);
    for (uint32_t at = (hole + 1) & mask; t->slot[at].addr.version; at = (at + 1) & mask) {
        uint32_t from = home(t, &t->slot[at].addr);
        /* It may move into the hole unless its home lies behind the hole. */
        if (((at - from) & mask) >= ((at - hole) & mask)) {
            t->slot[hole] = t->slot[at];
            hole = at;
        }
    }
    t->slot[hole].addr.version = 0;
}

struct addr_slot *addr_reserve(struct addr_table *t, struct addr_slot *memory, uint32_t capacity) {
    struct addr_table old = *t;
    t->slot = memory;
    t->capacity = capacity;
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.slot[i].addr.version) {
            addr_put(t, &old.slot[i].addr, old.slot[i].node);
        }
    }
    return old.slot;
}
