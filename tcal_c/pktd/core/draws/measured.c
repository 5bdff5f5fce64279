/* A moving maximum needs a distribution function whose logarithm is concave, which measured ones
 * need not have: between two delays that are usual there may be some that are not. So the process
 * is one of another distribution, that has it, and what it is at a time stands for the deviation
 * below which as large a part of all lies. Its parts are as wide as those that were measured, or
 * wider where the density, divided by the part below, would grow: then the deviation falls by no
 * more than the process does, and no packet overtakes another. Its range may be many jitters, of
 * which a cell takes a power of two, so that few cells count at any time. */
#include "measured.h"

#include "process.h"

#define CELLS 16 /* at most, in which what counts has risen */

static bool ascends(const struct measured *m) {
    const int64_t most = (int64_t)JITTER_DEVIATIONS << FIXED_BITS;
    for (int i = 0; i < DRAW_PARTS; i++) {
        if (m->at[i] > m->at[i + 1]) {
            return false;
        }
    }
    return m->at[0] >= -most && m->at[DRAW_PARTS] <= most;
}

bool measured_finish(struct measured *m) {
    if (!ascends(m)) {
        return false;
    }
    int64_t most = 0;
    int64_t sum = 0;
    m->behind[0] = 0;
    for (int64_t i = 0; i < DRAW_PARTS; i++) {
        int64_t middle = 2 * i + 1; /* of the part below, in half parts */
        int64_t wide = (int64_t)(m->at[i + 1] - m->at[i]) * middle;
        most = wide > most ? wide : most;
        sum += (most + middle - 1) / middle;
        if (sum > INT32_MAX) {
            return false;
        }
        m->behind[i + 1] = (int32_t)sum;
    }
    m->span = 0;
    while ((int64_t)CELLS * ONE << m->span < sum) {
        m->span++;
    }
    return true;
}

/* The deviation that stands for what the process is. */
static int64_t deviation(const struct measured *m, int64_t is) {
    if (is >= m->behind[DRAW_PARTS]) {
        return m->at[DRAW_PARTS];
    }
    int low = 0; /* the last point that is not above */
    for (int step = DRAW_PARTS / 2; step; step /= 2) {
        low += m->behind[low + step] <= is ? step : 0;
    }
    int64_t wide = m->behind[low + 1] - m->behind[low];
    return m->at[low] + (is - m->behind[low]) * (m->at[low + 1] - m->at[low]) / wide;
}

int64_t measured_jitter(const struct measured *m, uint64_t seed, uint64_t at_ns,
                        uint64_t jitter_ns) {
    if (jitter_ns == 0) {
        return 0;
    }
    uint64_t cell_ns = 2 * jitter_ns << m->span;
    int64_t whole = (int64_t)ONE << m->span;
    int64_t fall = (int64_t)((u128)(at_ns % cell_ns) * (uint64_t)whole / cell_ns);
    int64_t is = process(m->behind, seed ^ KEY_JITTER, at_ns / cell_ns, fall, whole);
    return draw_scaled(deviation(m, is), jitter_ns);
}

int32_t measured_alone(const struct measured *m, uint64_t seed, bool probe, uint64_t n) {
    return (int32_t)quantile(m->at, draw_bits(alone_key(seed, probe), n) >> 32);
}
