/* PIE: packets are dropped when they come, with a probability that keeps the delay at a target. */
#ifndef PKTD_PIE_H
#define PKTD_PIE_H

#include "fifo.h"

struct aqm;

struct pie {
    uint64_t drop;       /* probability, in 2^-56 */
    uint64_t sum;        /* of the probabilities of packets that were not dropped, one by one */
    uint64_t delay_ns;   /* that the last packet sent had waited */
    uint64_t before_ns;  /* the same at the update before */
    uint64_t burst_ns;   /* for so long nothing is dropped */
    uint64_t sent_ns;    /* when the last packet was sent; 0: none was */
    uint64_t updated_ns; /* up to where the probability is computed */
};

/* From `at_ns` on, with nothing held. */
void pie_begin(struct pie *pie, uint64_t at_ns);

/* Whether packet n of its kind is dropped, or marked, when it comes at `at_ns`. */
bool pie_hits(struct aqm *aqm, const struct piece *piece, uint64_t n, uint64_t at_ns);

/* Whether it may be marked in place of a drop. */
bool pie_marks(const struct pie *pie);

/* The packet is sent from `at_ns` on. */
void pie_sent(struct aqm *aqm, const struct piece *piece, uint64_t at_ns);

#endif
