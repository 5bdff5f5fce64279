/* Counter-based random draws: the n-th draw of a key is a function of (key, n) and of nothing else,
 * and jitter is one of a seed and the time. */
#ifndef PKTD_DRAW_H
#define PKTD_DRAW_H

#include "common/limits.h"

enum dist { DIST_NORMAL, DIST_UNIFORM, DIST_PARETO, DIST_PARETONORMAL, DIST_COUNT };

#define DRAW_PARTS 4096 /* intervals of a table */

/* Builds the tables. Call once, before any draw_jitter. */
void draw_init(void);

/* The key of one kind of draw: probes have draws of their own, and change none of others. */
static inline uint64_t draw_key(uint64_t seed, uint64_t kind, bool probe) {
    return seed ^ kind ^ (probe ? 0x70726F6265000000ull : 0); /* "probe" */
}

static inline uint64_t draw_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* 64 uniform bits. */
static inline uint64_t draw_bits(uint64_t key, uint64_t n) {
    const uint64_t golden = 0x9E3779B97F4A7C15ull;
    return draw_mix(draw_mix(key + golden) + (n + 1) * golden);
}

/* What stands for a flow that these numbers tell from others, and the draw for it of the link with
 * this seed. */
uint64_t draw_flow(const uint64_t *numbers, size_t count);
uint64_t draw_share(uint64_t seed, uint64_t flow);

/* Whether draw n of a key happens, with a probability of share_ppb in 1e9. */
bool draw_happens(uint64_t key, uint64_t n, uint64_t share_ppb);

/* Whether packet n, or probe n, is lost, with a probability of loss_ppb in 1e9. */
bool draw_lost(uint64_t seed, bool probe, uint64_t n, uint32_t loss_ppb);

/* Deviation from the delay, in ns (may be negative), of what leaves the queue at `at_ns`. It falls
 * by less than `at_ns` grows. */
int64_t draw_jitter(uint64_t seed, uint64_t at_ns, enum dist dist, uint64_t jitter_ns);

/* Deviation of packet n, or probe n, from the delay, in jitters of 2^20: of the same distribution,
 * but of this packet alone. draw_scaled makes ns of it. */
int32_t draw_alone(uint64_t seed, bool probe, uint64_t n, enum dist dist);
int64_t draw_scaled(int64_t deviation, uint64_t jitter_ns);

/* NULL for a number that is no distribution. */
const char *dist_name(enum dist dist);

/* DIST_COUNT for an unknown name. */
enum dist dist_find(const char *name);

#endif
