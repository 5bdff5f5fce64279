/* RED: packets are dropped when they come, the likelier the longer the queue is on average. */
#ifndef PKTD_RED_H
#define PKTD_RED_H

#include "fifo.h"

struct aqm;
struct aqm_sending;

#define RED_NONE UINT64_MAX

struct red {
    uint64_t min_bytes; /* as in force */
    uint64_t max_bytes;
    uint32_t weight; /* of the queue as it is in the mean: 2^-weight */
    uint64_t mean;   /* in 2^-16 bytes */
    uint64_t passed; /* packets since the last that was hit; RED_NONE: the mean is below min */
};

/* Takes parameters; the mean stays. */
void red_change(struct aqm *aqm);

/* Whether packet n of its kind, which comes at `at_ns`, is dropped or marked. */
bool red_hits(struct aqm *aqm, const struct piece *piece, uint64_t n,
              const struct aqm_sending *sending, uint64_t at_ns);

#endif
