/* A histogram of durations with 8 steps an octave: within 12.5 %, one writer, read at any moment.
 */
#ifndef PKTD_HISTOGRAM_H
#define PKTD_HISTOGRAM_H

#include "common/limits.h"
#include "counter.h"

#define HISTOGRAM_STEPS 8u
#define HISTOGRAM_SLOTS (40u * HISTOGRAM_STEPS)

struct histogram {
    counter slot[HISTOGRAM_SLOTS];
    counter highest;
};

void histogram_add(struct histogram *h, uint64_t value);

/* The upper edge of the slot in which `permille` of all values are reached; 0 when empty. */
uint64_t histogram_quantile(const struct histogram *h, uint32_t permille);

#endif
