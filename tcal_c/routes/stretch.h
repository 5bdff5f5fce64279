/* The properties of a stretch of links before rounding: sums that add up in any grouping. */
#ifndef ROUTES_STRETCH_H
#define ROUTES_STRETCH_H

#include "common.h"

#define UNLIMITED UINT64_MAX

enum stretch_kind {
    STRETCH_NONE,  /* no way, or a link that is down */
    STRETCH_EXACT, /* the figures below */
    STRETCH_LARGE, /* a way, but its sums do not fit here */
};

/* `kept` is what gets through, times 2^128 and rounded down by less than stretch_error(). The exact
 * fraction has at most `digits` decimals. */
struct stretch {
    u128 kept;
    u128 jitter_square;
    uint64_t delay_ns;
    uint64_t rate_bps; /* UNLIMITED, or less */
    uint32_t hops;
    uint32_t digits;
    enum stretch_kind kind;
};

/* One link; rate 0 means unlimited. `loss_ppb` is at most PPB. */
struct stretch stretch_of_link(uint64_t delay_ns, uint64_t jitter_ns, uint32_t loss_ppb,
                               uint64_t rate_bps);

/* No link at all. */
struct stretch stretch_nothing(void);

/* floor(a * b / 2^128). */
static inline u128 stretch_product(u128 a, u128 b) {
    uint64_t a0 = (uint64_t)a;
    uint64_t a1 = (uint64_t)(a >> 64);
    uint64_t b0 = (uint64_t)b;
    uint64_t b1 = (uint64_t)(b >> 64);
    u128 low = (u128)a0 * b0;
    u128 left = (u128)a0 * b1;
    u128 right = (u128)a1 * b0;
    u128 middle = (low >> 64) + (uint64_t)left + (uint64_t)right;
    return (u128)a1 * b1 + (left >> 64) + (right >> 64) + (middle >> 64);
}

/* `a` and then `b`. */
static inline struct stretch stretch_join(const struct stretch *a, const struct stretch *b) {
    struct stretch sum = {.kept = stretch_product(a->kept, b->kept),
                          .jitter_square = a->jitter_square + b->jitter_square,
                          .delay_ns = a->delay_ns + b->delay_ns,
                          .rate_bps = a->rate_bps < b->rate_bps ? a->rate_bps : b->rate_bps,
                          .hops = a->hops + b->hops,
                          .digits = a->digits + b->digits,
                          .kind = a->kind > b->kind ? a->kind : b->kind};
    if (sum.delay_ns < a->delay_ns || sum.jitter_square < a->jitter_square) {
        sum.kind = STRETCH_LARGE;
    }
    if (a->kind == STRETCH_NONE || b->kind == STRETCH_NONE) {
        sum.kind = STRETCH_NONE;
    }
    return sum;
}

/* How much less than the truth `kept` can be. A link's is less than 1 too small, and so is the
 * product of two; it inherits at most the errors of both, and their product, which is less than 1:
 * e(a + b) < e(a) + e(b) + 2, hence e < 3 * hops. Nothing at all counts as one link. */
static inline u128 stretch_error(const struct stretch *s) {
    return 3 * ((u128)s->hops + 2);
}

/* From exact sums to whole numbers, halves up, as docs/plan.md says. */

/* The square root, rounded; a tie cannot occur, (r + 1/2)^2 is no integer. False if it does not fit
 * (2^64). */
bool round_root(u128 square, uint64_t *root);

/* PPB * (1 - kept), rounded. False if `kept` is not exact enough to tell. */
bool round_loss(const struct stretch *stretch, uint64_t *loss_ppb);

#endif
