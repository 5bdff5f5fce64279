/* How many flows share a link, and what that makes of its queue: a measured path leaves more to
 * several flows than to one. Several links may be one neck: they share one queue, and what there is
 * for it follows from the flows on each of them (docs/pktd.md, "Measured paths"). */
#ifndef PKTD_FLOWS_H
#define PKTD_FLOWS_H

#include "pktd/core/packets/pool.h"
#include "pktd/core/structures/counter.h"
#include "queue.h"

#define FLOW_ROWS 32u
#define FLOW_LIMIT 4096u       /* flows that are told apart; more count as so many */
#define NECK_QUEUE_LEAST 3000u /* two packets, as in compiler/path_queues.py */
#define NECK_QUEUE_MOST (1u << 30)
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

#define OWN_PARTS 32u /* of a full queue, as exact as a link's part of it is known */
#define OWN_STEPS                                                                                  \
    (4 * OWN_PARTS) /* two cover more than one part: twice as many as wait at most                 \
                     */

/* So many of a link's bytes, counted from the first, have left the queue by then. */
struct own_step {
    counter served_ns;
    counter bytes;
};

/* What one link has by itself, and its part of the flows and of the queue. */
struct flow_share {
    struct flow_rate one; /* with a flow, or none */
    struct flow_rates more;
    uint64_t rtt_ns; /* of a neck's: without queues; 0: its queue is as stated */
    uint64_t salt;   /* tells its flows from those of others */
    uint32_t active; /* flows that count */
    struct flow_share *next;
    counter queued_bytes; /* in all, of a neck's */
    struct own_step step[OWN_STEPS];
    uint64_t began_ns; /* when the step before the latest ends */
    uint32_t latest;
};

struct flow {
    uint64_t key;
    uint64_t last_ns;
    struct flow_share *share; /* of the link that it is on */
    uint16_t chained;         /* the next flow of its slot, 0 for none */
    uint16_t older;
    uint16_t newer;
    bool counts; /* it has sent twice within the window */
};

/* Flow 0 is nobody: its `newer` is the oldest, its `older` the newest of all. */
struct flows {
    struct flow_share *shares; /* of all links that have the queue */
    struct queue queue;        /* of a neck, while none of its links works on it */
    bool is_neck;
    counter free_ns; /* copies of that queue's state, for the backlog */
    counter rate_bps;
    uint32_t active; /* flows that count, on all links */
    uint16_t free;   /* the first of those that nobody is, chained */
    uint16_t used;   /* none beyond it was ever somebody */
    uint16_t slot[2 * FLOW_LIMIT];
    struct flow flow[FLOW_LIMIT + 1];
};

/* The link of this share has its queue here from now on. */
void flows_join(struct flows *flows, struct flow_share *share);

/* A packet of a program arrives at the link of `share` at `at_ns`; the queue is as the flows of
 * this moment have it. */
void flows_see(struct flows *flows, struct flow_share *share, struct queue *q,
               const struct frame *frame, uint64_t at_ns);

/* Gives the queue at `at_ns` what so many flows have. */
void flows_apply(const struct flows *flows, struct queue *q, uint64_t at_ns);

/* Of a neck's link, for who asks what of the queue is its own: a packet has found room and leaves
 * at `end_ns`; what waits at `at_ns` leaves at another pace; nothing of it waits any more. */
void flows_own_enters(struct flow_share *share, const struct queue *q, uint32_t bytes,
                      uint64_t end_ns);
void flows_own_retimed(struct flow_share *share, uint64_t at_ns, uint64_t old_bps,
                       uint64_t new_bps);
void flows_own_gone(struct flow_share *share, uint64_t at_ns);

/* Its bytes that wait, to one part of OWN_PARTS of a full queue. Any thread. */
uint64_t flows_own_bytes(const struct flow_share *share, uint64_t at_ns);

/* A link of a neck takes the queue to work on it, and gives it back; nothing where there is none.
 */
static inline void flows_take_queue(const struct flows *flows, struct queue *q) {
    if (flows && flows->is_neck) {
        *q = flows->queue;
    }
}

static inline void flows_give_queue(struct flows *flows, const struct queue *q) {
    if (flows && flows->is_neck) {
        flows->queue = *q;
        counter_set(&flows->rate_bps, q->rate_bps);
        counter_set(&flows->free_ns, q->free_ns);
    }
}

#endif
