/* Jitter whose distribution somebody measured: made point by point at once, then only read. */
#ifndef PKTD_MEASURED_H
#define PKTD_MEASURED_H

#include "draw.h"

struct measured {
    /* Deviations at the ends of DRAW_PARTS equal parts, in jitters of 2^20; and those points of the
     * process that is behind it. */
    int32_t at[DRAW_PARTS + 1];
    int32_t behind[DRAW_PARTS + 1];
    uint32_t span; /* a cell of the process falls by 2^span jitters */
};

/* Whether `at` can be followed: it does not descend, nor go further than JITTER_DEVIATIONS. Makes
 * the rest. */
bool measured_finish(struct measured *m);

/* As draw_jitter and draw_alone of a jitter with this distribution. */
int64_t measured_jitter(const struct measured *m, uint64_t seed, uint64_t at_ns,
                        uint64_t jitter_ns);
int32_t measured_alone(const struct measured *m, uint64_t seed, bool probe, uint64_t n);

#endif
