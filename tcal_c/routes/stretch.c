/* Where stretches begin: a link, or no link at all; and how they end: rounded, where that can be
 * told for certain. */
#include "stretch.h"

#include <math.h>

#define ALL (~(u128)0)
#define HALF ((u128)1 << 127)
#define MOST_DIGITS 38 /* 10^38 is the largest power of ten below 2^128 */

/* floor(kept / PPB * 2^128); everything is 2^128, which does not fit, and 1 less. */
static u128 scaled(uint32_t kept_ppb) {
    if (kept_ppb >= PPB) {
        return ALL;
    }
    u128 high = (u128)kept_ppb << 64;
    u128 low = high % PPB << 64;
    return high / PPB << 64 | low / PPB;
}

static uint32_t decimals(uint32_t loss_ppb) {
    uint32_t digits = 9;
    if (!loss_ppb) {
        return 0;
    }
    while (digits && loss_ppb % 10 == 0) {
        loss_ppb /= 10;
        digits--;
    }
    return digits;
}

struct stretch stretch_of_link(uint64_t delay_ns, uint64_t jitter_ns, uint32_t loss_ppb,
                               uint64_t rate_bps) {
    return (struct stretch){.kept = scaled(PPB - loss_ppb),
                            .jitter_square = (u128)jitter_ns * jitter_ns,
                            .delay_ns = delay_ns,
                            .rate_bps = rate_bps ? rate_bps : UNLIMITED,
                            .hops = 1,
                            .digits = decimals(loss_ppb),
                            .kind = STRETCH_EXACT};
}

struct stretch stretch_nothing(void) {
    return (struct stretch){.kept = ALL, .rate_bps = UNLIMITED, .kind = STRETCH_EXACT};
}

/* floor(sqrt(square)) by Newton's method from above, where each step only comes nearer. */
static u128 whole_root(u128 square) {
    if (!square) {
        return 0;
    }
    double guess = sqrt((double)square);
    u128 root = (u128)(guess + guess * 0x1p-50) + 1; /* certainly not too small */
    for (;;) {
        u128 next = (root + square / root) / 2;
        if (next >= root) {
            return root;
        }
        root = next;
    }
}

bool round_root(u128 square, uint64_t *root) {
    u128 whole = whole_root(square);
    whole += square - whole * whole > whole;
    *root = (uint64_t)whole;
    return whole <= UINT64_MAX;
}

static u128 power_of_ten(uint32_t exponent) {
    u128 power = 1;
    while (exponent--) {
        power *= 10;
    }
    return power;
}

/* Whether two different decimals with this stretch's digits are further apart than its error. Then
 * what cannot be told from one half is one half: both are such decimals. */
static bool tells_ties(const struct stretch *stretch, u128 error) {
    return stretch->digits >= 10 && stretch->digits <= MOST_DIGITS &&
           error < ~(u128)0 / power_of_ten(stretch->digits);
}

bool round_loss(const struct stretch *stretch, uint64_t *loss_ppb) {
    u128 lost = ~stretch->kept; /* the truth is more than lost - error, and at most lost + 1 */
    u128 low = (u128)(uint64_t)lost * PPB;
    u128 high = (lost >> 64) * PPB + (low >> 64);
    u128 fraction = high << 64 | (uint64_t)low;
    u128 error = stretch_error(stretch);
    u128 margin = error * PPB;
    *loss_ppb = (uint64_t)(high >> 64);
    if (fraction < HALF - PPB) {
        return true;
    }
    *loss_ppb += 1;
    return fraction >= HALF + margin || tells_ties(stretch, error);
}
