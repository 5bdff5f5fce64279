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

/* Offers `bytes` at `at_ns`; false when the queue has no room for them. */
bool queue_offer(struct queue *q, uint64_t at_ns, uint32_t bytes, struct service *service);

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

#endif
