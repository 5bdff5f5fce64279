/* Counters per (source, destination), made when the first packet of a pair is seen. */
#ifndef PKTD_PAIRS_H
#define PKTD_PAIRS_H

#include "common/limits.h"
#include "pktd/core/structures/counter.h"

#define PAIR_FAN 256u

struct pair {
    counter offered_pkts;
    counter offered_bytes;
    counter delivered_pkts;
    counter delivered_bytes;
    counter drop_queue;
    counter drop_loss;
    counter drop_down;
    counter drop_route;
    uint64_t answers_ns; /* source is a hop: until when its answers use up what it may send */
    struct pair_page *page;
    uint64_t reported; /* control thread: sum of the packet counters at the last report */
};

struct pair_page {
    counter changes;
    /* Control thread: */
    uint64_t seen;       /* `changes` at the last report */
    uint64_t usage_seen; /* `changes` when the usage of its paths was last asked for */
    uint32_t waiting;    /* paths that had a backlog then */
    struct pair pair[PAIR_FAN];
};

struct pair_source {
    _Atomic(struct pair_page *) page[PAIR_FAN];
};

struct pairs {
    _Atomic(struct pair_source *) source[NODE_LIMIT];
    uint8_t *slab; /* zero pages from the system, handed out once */
    size_t slab_left;
};

void pairs_destroy(struct pairs *pairs);

/* Data thread. NULL when there is no memory. */
struct pair *pairs_get(struct pairs *pairs, uint32_t source, uint32_t dest);

/* Control thread: calls `visit` for every pair of sources below `sources` that has moved since it
 * was last asked, in order. */
typedef void pair_visit(void *context, uint32_t source, uint32_t dest, const struct pair *pair);
void pairs_report(struct pairs *pairs, uint32_t sources, pair_visit *visit, void *context);

/* Control thread: calls `visit` for the pairs that were ever offered a packet, in order, of pages
 * where something has moved or waited since the last time, with `all` of every page. It answers
 * whether something waits. */
typedef bool pair_usage(void *context, uint32_t source, uint32_t dest);
void pairs_usage(struct pairs *pairs, uint32_t nodes, bool all, pair_usage *visit, void *context);

/* Counts segments as dropped. */
enum drop_cause { DROP_QUEUE, DROP_LOSS, DROP_DOWN, DROP_ROUTE };
void pair_drop(struct pair *pair, enum drop_cause cause, uint32_t count);

static inline void pair_touch(struct pair *pair) {
    struct pair_page *page = pair->page;
    uint64_t next = counter_get(&page->changes) + 1;
    /* After the counters it announces; a report that misses it now sees it the next time. */
    atomic_store_explicit(&page->changes, next, memory_order_release);
}

#endif
