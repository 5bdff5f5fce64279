/* A recording of what a link let through, which a link follows: made once, then only read.
 *
 * Of opportunities: at each of its instants a link delivers up to TRACE_OPPORTUNITY bytes, as often
 * as the instant counts; what nothing waits for is lost (mahimahi's mm-link). Of rows: from the
 * time of each row on a link has the row's values, of which `fields` tells those that count; a rate
 * of 0 holds packets. At its end a trace begins again, or the last row stays.
 *
 * What it serves is told in work: bytes of opportunities, of rows bits times 10^9. */
#ifndef PKTD_TRACE_H
#define PKTD_TRACE_H

#include "common/limits.h"

#define TRACE_OPPORTUNITY 1504u
#define TRACE_HEADER 4u    /* counted with each packet: that of mahimahi's device, 1500 and 4 */
#define TRACE_LIMIT 65535u /* numbers are 1 .. TRACE_LIMIT-1 */
#define TRACE_STEPS_LIMIT (1u << 25) /* of all together */

enum trace_field { TRACE_RATE = 1, TRACE_DELAY = 2, TRACE_JITTER = 4, TRACE_LOSS = 8 };

struct trace_instant {
    uint32_t at_ms;
    uint32_t total; /* opportunities so far, its own included */
};

struct trace_row {
    uint64_t at_ns;
    uint64_t rate_bps;
    uint64_t delay_ns;
    uint64_t jitter_ns;
    uint64_t loss_ppb;
    u128 before; /* work until then */
};

struct trace {
    uint64_t period_ns;
    uint64_t begin_ns;             /* since the experiment's start, modulo 2^64 */
    struct trace_instant *instant; /* NULL: it has rows */
    struct trace_row *row;
    size_t count;
    size_t room;
    uint32_t fields; /* of enum trace_field, of rows */
    bool holds;      /* the last row stays; else it begins again */
    bool whole;      /* nothing more comes */
    bool shares;     /* another one owns the steps */
};

/* Whether it tells when packets leave a queue. */
static inline bool trace_serves(const struct trace *t) {
    return t->instant || t->fields & TRACE_RATE;
}

/* At `at_ns` of an experiment that began at `zero_ns`, how long since the trace began; 0 before. */
static inline uint64_t trace_since(const struct trace *t, uint64_t zero_ns, uint64_t at_ns) {
    int64_t time = (int64_t)(at_ns - zero_ns - t->begin_ns);
    return time > 0 ? (uint64_t)time : 0;
}

void trace_free(struct trace *t);

/* Adds `count` opportunities so many ms after the last instant (the first: after the beginning), or
 * a row; false where that is not possible: too late, too many, or no memory. */
bool trace_add_instant(struct trace *t, uint64_t after_ms, uint64_t count);
bool trace_add_row(struct trace *t, uint64_t after_ns, const struct trace_row *values);

/* Whether its steps reach its end, and let anything through; then it may be followed. */
bool trace_finish(struct trace *t);

/* Times are since its beginning. The work that it has served at a time; and when it has served so
 * much, TRACE_NEVER if it does not. */
#define TRACE_NEVER (UINT64_MAX / 4)
u128 trace_served(const struct trace *t, uint64_t since_ns);
uint64_t trace_when(const struct trace *t, u128 work);

/* The row that holds at a time. */
const struct trace_row *trace_row_at(const struct trace *t, uint64_t since_ns);

/* How much work a packet is, and how many bytes, rounded up, a work is. */
u128 trace_work(const struct trace *t, uint64_t bytes, uint64_t packets);
uint64_t trace_bytes(const struct trace *t, u128 work);

#endif
