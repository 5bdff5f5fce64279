/* Progressive filling, before anything is rounded.
 *
 * Level: rate times round trip (b/s times ns), the same for all flows that still rise. Rates are
 * long doubles of at least 64 bits: 10^13 b/s to 2^-21, which thousands of subtractions leave far
 * below 1 b/s. Weights would not survive that: a link's sum would keep the rounding errors of its
 * heaviest flow when only light ones (1/RTT a 10^8th) still rise. They are integers, 2^110 / RTT,
 * whose sums are exact: at least 46 bits for any RTT, and 2^32 of them fit in 128.
 */
#ifndef SHARE_SOLVE_FILL_H
#define SHARE_SOLVE_FILL_H

#include "solve_heap.h"

#include <float.h>

_Static_assert(LDBL_MANT_DIG >= 64, "rates need 64 bits");

__extension__ typedef unsigned __int128 u128;

/* What is to be shared, as in tsshare.h. */
struct problem {
    uint32_t flows;
    const uint32_t *first;
    const uint32_t *links;
    const uint64_t *rtts_ns;
    const uint64_t *demands_bps;
    uint32_t link_count;
    const uint64_t *capacities_bps;
};

struct filling {
    /* per flow */
    long double *rate;  /* b/s, once stopped */
    long double *level; /* at which it stopped, less than 0 while it rises */
    /* per link */
    u128 *rising;        /* sum of the weights of flows that still rise */
    long double *left;   /* capacity minus what has stopped */
    long double *height; /* highest level of its flows if it is full, else 0 */
    uint8_t *full;
    uint32_t *member_first; /* flows on it: members[member_first[link]] up to the next one's */
    uint32_t *members;
    /* when demands are met, lowest level first, and when links may be full */
    struct entry *demands;
    uint32_t demand_count;
    struct heap heap;
};

/* Not fmaxl() and fminl(): the library names no libm (Makefile). Nothing here is NaN. */
static inline long double larger(long double a, long double b) {
    return a > b ? a : b;
}

static inline long double smaller(long double a, long double b) {
    return a < b ? a : b;
}

/* The round trip that counts, in ns. */
long double fill_rtt(const struct problem *problem, uint32_t flow);

/* 0 or -ENOMEM. To be destroyed in both cases. */
int fill_init(struct filling *fill, const struct problem *problem);
void fill_run(struct filling *fill, const struct problem *problem);
void fill_destroy(struct filling *fill);

#endif
