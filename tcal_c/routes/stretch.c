/* Where stretches begin: a link, or no link at all. */
#include "stretch.h"

#define ALL (~(u128)0)

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
