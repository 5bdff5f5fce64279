/* A trace's steps with their running sums, so that both questions are a binary search.
 *
 * Source of opportunities: mahimahi, mm-link(1) (Netravali et al., USENIX ATC 2015): one line for
 * each, its time in ms; the period is the time of the last line, and an opportunity at the end of
 * one period is not the one at the beginning of the next.
 */
#include "trace.h"

#include "array.h"

#define MS 1000000u
#define BYTE_WORK (8 * (u128)NS_PER_S)

void trace_free(struct trace *t) {
    if (!t->shares) {
        free(t->instant);
        free(t->row);
    }
}

bool trace_add_instant(struct trace *t, uint64_t after_ms, uint64_t count) {
    struct trace_instant last = t->count ? t->instant[t->count - 1] : (struct trace_instant){0, 0};
    uint64_t at_ms = last.at_ms + after_ms, total = last.total + count;
    if (after_ms > UINT32_MAX || count > UINT32_MAX || total > UINT32_MAX || count == 0 ||
        at_ms * MS > t->period_ns || (t->count && after_ms == 0) ||
        !array_room((void **)&t->instant, &t->room, t->count, sizeof *t->instant)) {
        return false;
    }
    t->instant[t->count++] = (struct trace_instant){(uint32_t)at_ms, (uint32_t)total};
    return true;
}

/* Work of the row's own until `at_ns`. */
static u128 row_work(const struct trace_row *row, uint64_t at_ns) {
    return (u128)row->rate_bps * (at_ns - row->at_ns);
}

bool trace_add_row(struct trace *t, uint64_t after_ns, const struct trace_row *values) {
    struct trace_row row = *values;
    if (t->count ? after_ns == 0 || after_ns > t->period_ns : after_ns > 0) {
        return false;
    }
    if (t->count) {
        const struct trace_row *last = &t->row[t->count - 1];
        row.at_ns = last->at_ns + after_ns;
        row.before = last->before + row_work(last, row.at_ns);
    } else {
        row.at_ns = 0;
        row.before = 0;
    }
    if (row.at_ns >= t->period_ns ||
        !array_room((void **)&t->row, &t->room, t->count, sizeof *t->row)) {
        return false;
    }
    t->row[t->count++] = row;
    return true;
}

/* Of one period. */
static u128 whole_work(const struct trace *t) {
    if (t->instant) {
        return (u128)t->instant[t->count - 1].total * TRACE_OPPORTUNITY;
    }
    const struct trace_row *last = &t->row[t->count - 1];
    return last->before + row_work(last, t->period_ns);
}

bool trace_finish(struct trace *t) {
    if (t->count == 0 ||
        (t->instant && t->instant[t->count - 1].at_ms * (uint64_t)MS != t->period_ns)) {
        return false;
    }
    t->whole = !trace_serves(t) || whole_work(t) > 0;
    return t->whole;
}

/* How many steps are not behind `at`, in ms or ns. */
static size_t steps_until(const struct trace *t, uint64_t at) {
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t here = t->instant ? t->instant[middle].at_ms : t->row[middle].at_ns;
        *(here <= at ? &low : &high) = here <= at ? middle + 1 : middle;
    }
    return low;
}

/* Since its steps last began. */
static uint64_t within(const struct trace *t, uint64_t since_ns) {
    return t->holds ? since_ns : since_ns % t->period_ns;
}

const struct trace_row *trace_row_at(const struct trace *t, uint64_t since_ns) {
    return &t->row[steps_until(t, within(t, since_ns)) - 1];
}

u128 trace_served(const struct trace *t, uint64_t since_ns) {
    u128 before = t->holds ? 0 : since_ns / t->period_ns * whole_work(t);
    uint64_t rest = within(t, since_ns);
    if (t->instant) {
        size_t steps = steps_until(t, rest / MS);
        return before + (steps ? (u128)t->instant[steps - 1].total * TRACE_OPPORTUNITY : 0);
    }
    const struct trace_row *row = &t->row[steps_until(t, rest) - 1];
    return before + row->before + row_work(row, rest);
}

/* How many steps have less than so much before their end. */
static size_t steps_below(const struct trace *t, u128 work) {
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        bool below = t->instant ? (u128)t->instant[middle].total * TRACE_OPPORTUNITY < work
                                : t->row[middle].before < work;
        *(below ? &low : &high) = below ? middle + 1 : middle;
    }
    return low;
}

static uint64_t reached(const struct trace_row *row, u128 work) {
    if (row->rate_bps == 0) {
        return TRACE_NEVER;
    }
    u128 at = row->at_ns + (work - row->before + row->rate_bps - 1) / row->rate_bps;
    return at < TRACE_NEVER ? (uint64_t)at : TRACE_NEVER;
}

uint64_t trace_when(const struct trace *t, u128 work) {
    if (work == 0) {
        return 0;
    }
    u128 whole = whole_work(t), rounds = t->holds ? 0 : (work - 1) / whole;
    if (rounds > TRACE_NEVER / t->period_ns) {
        return TRACE_NEVER;
    }
    u128 rest = work - rounds * whole;
    size_t steps = steps_below(t, rest);
    uint64_t at_ns =
        t->instant ? (uint64_t)t->instant[steps].at_ms * MS : reached(&t->row[steps - 1], rest);
    return min_u64((uint64_t)rounds * t->period_ns + at_ns, TRACE_NEVER);
}

u128 trace_work(const struct trace *t, uint64_t bytes, uint64_t packets) {
    return t->instant ? bytes + packets * TRACE_HEADER : bytes * BYTE_WORK;
}

uint64_t trace_bytes(const struct trace *t, u128 work) {
    u128 bytes = t->instant ? work : (work + BYTE_WORK - 1) / BYTE_WORK;
    return bytes < UINT64_MAX ? (uint64_t)bytes : UINT64_MAX;
}
