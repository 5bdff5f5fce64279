/* Who is due next: a heap of waiting things, each in it at most once, that can be moved and
 * removed. */
#ifndef PKTD_HEAP_H
#define PKTD_HEAP_H

#include "common/limits.h"

#define HEAP_OUT UINT32_MAX

/* To be embedded in what waits. `at` is its place, HEAP_OUT when it is not in the heap. */
struct heap_node {
    uint32_t at;
};

struct heap_entry {
    uint64_t due;
    uint64_t seq;
    struct heap_node *node;
};

struct heap {
    struct heap_entry *entry;
    uint32_t count;
    uint32_t capacity;
};

/* Takes over memory for `capacity` entries (at least as many as now); returns the old memory. */
struct heap_entry *heap_reserve(struct heap *h, struct heap_entry *memory, uint32_t capacity);

/* Puts the node in, or moves it when it is in already. The caller reserved room for all nodes. */
void heap_put(struct heap *h, struct heap_node *node, uint64_t due, uint64_t seq);

void heap_remove(struct heap *h, struct heap_node *node);

static inline const struct heap_entry *heap_top(const struct heap *h) {
    return h->count ? h->entry : NULL;
}

#endif
