/* The process behind a jitter, for tables of inverse distribution functions (draw.c has why). */
#ifndef PKTD_PROCESS_H
#define PKTD_PROCESS_H

#include "draw.h"

#define FIXED_BITS 20
#define ONE (1 << FIXED_BITS)        /* a jitter */
#define KEY_JITTER 0x6A6974746572ull /* "jitter" */
#define KEY_ALONE 0x616C6F6E65ull    /* "alone" */
#define KEY_PROBE 0x70726F6265ull    /* "probe" */

/* Of the deviations of packets that keep no order. */
static inline uint64_t alone_key(uint64_t seed, bool probe) {
    return seed ^ KEY_ALONE ^ (probe ? KEY_PROBE : 0);
}

/* Where the part `p` of all, in 2^-32, ends. */
static inline int64_t quantile(const int32_t *table, uint64_t p) {
    const int32_t *slot = table + (p >> FIXED_BITS);
    return slot[0] + ((slot[1] - slot[0]) * (int64_t)(p & (ONE - 1)) >> FIXED_BITS);
}

/* The x with F(x) = v F(x + fall), v in 2^-32: by bisection for F(x + fall), without branches that
 * nobody could foresee. */
static inline int64_t risen(const int32_t *table, uint64_t v, int64_t fall) {
    uint64_t most = 0; /* too little, all the same */
    for (uint64_t bit = 1ull << 31; bit; bit >>= 1) {
        uint64_t p = most | bit;
        int64_t apart = quantile(table, p) - quantile(table, p * v >> 32);
        most += bit & -(uint64_t)(apart < fall);
    }
    return quantile(table, (most + 1) * v >> 32);
}

/* The process in a cell, `fall` after its beginning (`whole`: at its end). */
static inline int64_t process(const int32_t *table, uint64_t key, uint64_t cell, int64_t fall,
                              int64_t whole) {
    int64_t highest = risen(table, draw_bits(key, cell) >> 32, fall);
    for (int64_t fallen = fall; table[DRAW_PARTS] - fallen > highest; fallen += whole) {
        uint64_t v = draw_bits(key, --cell) >> 32;
        if (quantile(table, v) - fallen > highest) { /* it rose no further than that */
            int64_t there = risen(table, v, whole) - fallen;
            highest = there > highest ? there : highest;
        }
    }
    return highest;
}

#endif
