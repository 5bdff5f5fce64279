/* Rounds, or says that it cannot. */
#include "stretch.h"

#include <math.h>

#define HALF ((u128)1 << 127)
#define MOST_DIGITS 38 /* 10^38 is the largest power of ten below 2^128 */

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
