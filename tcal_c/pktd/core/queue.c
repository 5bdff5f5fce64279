/* The arithmetic of a queue, without its packets.
 *
 * A virtual clock: `free_ns` is when the last accepted byte has been served, so the backlog at t is
 * (free - t) * rate. Integer arithmetic carries the part of a nanosecond that does not divide, so
 * that the served rate is exact over any length of time. A packet is accepted when it fits behind
 * the backlog, or when there is none (a limit below a packet's size means: nothing waits).
 *
 * With a capacity C above the rate A the backlog has bytes of others in it, who fill C - A and are
 * never dropped themselves (no more than C - A ever come): in the limit of small packets it falls
 * at A, while each of its bytes leaves at C. So a packet behind b bytes leaves b / C later, and a
 * full queue holds a packet up as long as a real one does. In order: of two packets the later is
 * behind no less than what has not left at C since.
 *
 * A trace has served so much work by any time (structures/trace.h). What is accepted has a position
 * in that work, behind all before it and not before what is served already, and leaves when the
 * trace has come there: one look-up, whatever the trace does meanwhile.
 */
#include "queue.h"

uint64_t queue_pace(const struct queue *q) {
    return q->trace ? 0 : max_u64(q->capacity_bps, q->rate_bps);
}

u128 queue_served(const struct trace *trace, uint64_t zero_ns, uint64_t at_ns) {
    return trace_served(trace, trace_since(trace, zero_ns, at_ns));
}

uint64_t queue_spare(const struct queue *q) {
    u128 end = queue_served(q->trace, q->zero_ns, q->free_ns);
    return end > q->position ? (uint64_t)(end - q->position) : 0;
}

bool queue_offer_to_trace(struct queue *q, uint64_t at_ns, uint32_t bytes,
                          struct service *service) {
    const struct trace *trace = q->trace;
    u128 served = queue_served(trace, q->zero_ns, at_ns), work = trace_work(trace, bytes, 1);
    if (q->position <= served) {
        q->position = served;
    } else if (q->position - served + work > trace_work(trace, q->limit_bytes, 0)) {
        return false;
    }
    q->position += work;
    uint64_t when = trace_when(trace, q->position);
    q->free_ns = when < TRACE_NEVER ? q->zero_ns + trace->begin_ns + when : TRACE_NEVER;
    *service = (struct service){q->free_ns, q->free_ns};
    return true;
}

void queue_follow(struct queue *q, const struct trace *trace) {
    q->trace = trace;
    q->free_ns = q->left = 0;
    q->position = 0;
}

void queue_count_from(struct queue *q, uint64_t zero_ns, uint64_t at_ns) {
    u128 served = queue_served(q->trace, q->zero_ns, at_ns);
    u128 waits = q->position > served ? q->position - served : 0;
    q->zero_ns = zero_ns;
    q->position = queue_served(q->trace, zero_ns, at_ns) + waits;
}

/* When a backlog at `at_ns` that is served at `end_ns` has left, at the capacity. */
static uint64_t leaves(const struct queue *q, uint64_t at_ns, uint64_t end_ns) {
    return at_ns + (uint64_t)((u128)(end_ns - at_ns) * q->rate_bps / q->capacity_bps);
}

void queue_leave_sooner(const struct queue *q, uint64_t at_ns, struct service *service) {
    service->start_ns = leaves(q, at_ns, service->start_ns);
    service->end_ns = leaves(q, at_ns, service->end_ns);
}

uint64_t queue_send(struct queue *q, uint64_t at_ns, uint32_t bytes) {
    if (q->rate_bps == 0) {
        return at_ns;
    }
    if (q->free_ns < at_ns) {
        q->free_ns = at_ns;
        q->left = 0;
    }
    queue_work(q, bytes);
    return q->free_ns;
}

uint64_t queue_backlog(uint64_t rate_bps, uint64_t free_ns, uint64_t at_ns) {
    if (free_ns <= at_ns || rate_bps == 0) {
        return 0;
    }
    return (uint64_t)(((u128)(free_ns - at_ns) * rate_bps + BITS_NS - 1) / BITS_NS);
}

uint64_t queue_retimed(uint64_t end_ns, uint64_t at_ns, uint64_t old_bps, uint64_t new_bps) {
    if (end_ns <= at_ns || old_bps == new_bps) {
        return end_ns;
    }
    if (new_bps == 0) {
        return at_ns;
    }
    u128 wait = (u128)(end_ns - at_ns) * old_bps / new_bps;
    return wait > UINT64_MAX / 4 ? UINT64_MAX / 4 : at_ns + (uint64_t)wait;
}

void queue_set_rate(struct queue *q, uint64_t at_ns, uint64_t rate_bps) {
    if (q->trace) {
        q->rate_bps = rate_bps;
        return;
    }
    q->free_ns = queue_retimed(q->free_ns, at_ns, q->rate_bps, rate_bps);
    q->left = 0;
    q->rate_bps = rate_bps;
}

void queue_set_limit(struct queue *q, uint64_t at_ns, uint64_t limit_bytes) {
    q->limit_bytes = limit_bytes;
    if (q->trace || q->rate_bps == 0 || q->capacity_bps <= q->rate_bps || q->free_ns <= at_ns) {
        return;
    }
    u128 waits = (u128)(q->free_ns - at_ns) * q->rate_bps, full = (u128)limit_bytes * BITS_NS;
    if (waits > full) {
        q->free_ns = at_ns + (uint64_t)((waits - full) / q->capacity_bps + full / q->rate_bps);
        q->left = 0;
    }
}
