/* How many flows share a link, and what that makes of its queue: a measured path leaves more to
 * several flows than to one (docs/pktd.md, "Measured paths"). */
#ifndef PKTD_FLOWS_H
#define PKTD_FLOWS_H

#include "pktd/core/packets/pool.h"
#include "queue.h"

#define FLOW_ROWS 32u
#define FLOW_LIMIT 4096u             /* flows that are told apart; more count as so many */
#define FLOW_WINDOW_NS 1000000000ull /* a flow that has sent nothing for so long is over */

/* What so many flows have together. */
struct flow_rate {
    uint64_t flows;
    uint64_t rate_bps;
    uint64_t queue_bytes;
};

/* Ascending by flows, from 2; between them, and from what one flow has, on straight lines. */
struct flow_rates {
    uint32_t count; /* 0: as many flows as there may be have what one has */
    struct flow_rate row[FLOW_ROWS];
};

struct flow {
    uint64_t key;
    uint64_t last_ns;
    uint16_t chained; /* the next flow of its slot, 0 for none */
    uint16_t older;
    uint16_t newer;
    bool counts; /* it has sent twice within the window */
};

/* Flow 0 is nobody: its `newer` is the oldest, its `older` the newest of all. */
struct flows {
    struct flow_rate one; /* with a flow, or none */
    struct flow_rates more;
    uint32_t active; /* flows that count */
    uint16_t free;   /* the first of those that nobody is, chained */
    uint16_t used;   /* none beyond it was ever somebody */
    uint16_t slot[2 * FLOW_LIMIT];
    struct flow flow[FLOW_LIMIT + 1];
};

/* A packet of a program arrives at the link at `at_ns`; the queue is as the flows of this moment
 * have it. */
void flows_see(struct flows *flows, struct queue *q, const struct frame *frame, uint64_t at_ns);

/* Gives the queue at `at_ns` what so many flows have. */
void flows_apply(const struct flows *flows, struct queue *q, uint64_t at_ns);

#endif
