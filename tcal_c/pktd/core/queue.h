/* A drop-tail queue in bytes that is served at a rate, or by a trace: when does what arrives leave?
 * Where others, whose packets are not here, have a part of it, the queue is served at its capacity,
 * and what is left of that is its rate. */
#ifndef PKTD_QUEUE_H
#define PKTD_QUEUE_H

#include "pktd/core/structures/trace.h"

struct queue {
    uint64_t rate_bps;     /* 0 = unlimited: nothing ever waits */
    uint64_t capacity_bps; /* 0: the rate */
    uint64_t limit_bytes;
    uint64_t free_ns;          /* when everything accepted so far is served */
    uint64_t left;             /* part of a nanosecond beyond free_ns, in 1/rate_bps */
    const struct trace *trace; /* serves it, whatever the rate is; NULL: the rate does */
    uint64_t zero_ns;          /* from which the trace's beginning counts */
    u128 position;             /* of the trace's work: all that was accepted is served */
};

struct service {
    uint64_t start_ns;
    uint64_t end_ns;
};

#define BITS_NS (8 * NS_PER_S)

/* Parts of queue_offer(). What a trace serves is offered to it; at a capacity above the rate what
 * `service` tells of, a backlog at `at_ns`, leaves sooner; so many more bytes are to be served. */
bool queue_offer_to_trace(struct queue *q, uint64_t at_ns, uint32_t bytes, struct service *service);
void queue_leave_sooner(const struct queue *q, uint64_t at_ns, struct service *service);

static inline void queue_work(struct queue *q, uint32_t bytes) {
    uint64_t bits = bytes * BITS_NS + q->left;
    q->free_ns += bits / q->rate_bps;
    q->left = bits % q->rate_bps;
}

/* Offers `bytes` at `at_ns`; false when the queue has no room for them. */
static inline bool queue_offer(struct queue *q, uint64_t at_ns, uint32_t bytes,
                               struct service *service) {
    if (q->trace) {
        return queue_offer_to_trace(q, at_ns, bytes, service);
    }
    if (q->rate_bps == 0) {
        *service = (struct service){at_ns, at_ns};
        return true;
    }
    if (q->free_ns <= at_ns) {
        q->free_ns = at_ns;
        q->left = 0;
    } else {
        uint64_t room = q->limit_bytes > bytes ? q->limit_bytes - bytes : 0;
        if ((u128)(q->free_ns - at_ns) * q->rate_bps > (u128)room * BITS_NS) {
            return false;
        }
    }
    service->start_ns = q->free_ns;
    queue_work(q, bytes);
    service->end_ns = q->free_ns;
    if (q->capacity_bps > q->rate_bps) {
        queue_leave_sooner(q, at_ns, service);
    }
    return true;
}

/* Sends `bytes`, whatever there is room for, at its rate, at `at_ns` or when it is free; returns
 * when they have been sent. */
uint64_t queue_send(struct queue *q, uint64_t at_ns, uint32_t bytes);

/* Bytes not served yet at `at_ns`, the rest of the one being served included. */
uint64_t queue_backlog(uint64_t rate_bps, uint64_t free_ns, uint64_t at_ns);

/* When what would have been served at `end_ns` is served, if the rate changes at `at_ns`. */
uint64_t queue_retimed(uint64_t end_ns, uint64_t at_ns, uint64_t old_bps, uint64_t new_bps);

/* At which what waits leaves; 0 where a trace tells that. */
uint64_t queue_pace(const struct queue *q);

/* Changes the rate at `at_ns`. What waits must be re-timed by the caller with queue_retimed, by the
 * pace before and after. */
void queue_set_rate(struct queue *q, uint64_t at_ns, uint64_t rate_bps);

/* Changes the limit at `at_ns`. What waits beyond it stays, and leaves at the pace: as long as a
 * queue is over its limit nothing of others finds room in it, either. */
void queue_set_limit(struct queue *q, uint64_t at_ns, uint64_t limit_bytes);

/* Is empty, and served by this trace (NULL: at its rate) from now on. */
void queue_follow(struct queue *q, const struct trace *trace);

/* The trace's beginning counts from another moment: what waits goes on waiting. */
void queue_count_from(struct queue *q, uint64_t zero_ns, uint64_t at_ns);

/* What a trace has served since `zero_ns`, the moment from which its beginning counts, by then. */
u128 queue_served(const struct trace *trace, uint64_t zero_ns, uint64_t at_ns);

/* Of one that a trace serves: work that the trace will have done beyond what was accepted, when
 * that is served. */
uint64_t queue_spare(const struct queue *q);

#endif
