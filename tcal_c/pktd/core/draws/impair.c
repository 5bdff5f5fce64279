/* The draws of impairments.
 *
 * Each kind has a key of its own, so that none of them changes the draws of another, nor those of
 * losses without bursts. Of the loss l, that within bursts d and that in gaps g, the share of
 * packets in bursts is (l - g) / (d - g); a burst ends before a packet with probability
 * 1 / (its mean length), and begins so often that this share is kept.
 */
#include "impair.h"

#define KEY_STATE 0x7374617465ull       /* "state" */
#define KEY_BURST 0x6275727374ull       /* "burst" */
#define KEY_DUPLICATE 0x6475706C6963ull /* "duplic" */
#define KEY_CORRUPT 0x636F7272757074ull /* "corrupt" */
#define KEY_REORDER 0x72656F72646572ull /* "reorder" */
#define KEY_REJECT 0x72656A656374ull    /* "reject" */
#define KEY_BIT 0x626974ull             /* "bit" */

static uint64_t bits(uint64_t seed, uint64_t key, bool probe, uint64_t n) {
    return draw_bits(draw_key(seed, key, probe), n);
}

/* a / b in 2^-64, no more than almost 1. */
static uint64_t ratio(u128 a, u128 b) {
    return a >= b ? UINT64_MAX : (uint64_t)((a << 64) / b);
}

static void prepare_states(struct impair *impair, uint32_t loss_ppb) {
    const struct impairments *is = &impair->is;
    impair->drawn[0] = impair->drawn[1] = false;
    uint64_t dense = PPB - is->burst_pass;
    uint64_t gap = is->gap_loss;
    if (loss_ppb <= gap || dense <= gap) {
        impair->share = impair->begins = 0;
        impair->ends = UINT64_MAX;
    } else if (loss_ppb >= dense) {
        impair->share = impair->begins = UINT64_MAX;
        impair->ends = 0;
    } else {
        uint64_t burst = max_u64(is->burst_milli, 1000);
        impair->share = ratio(loss_ppb - gap, dense - gap);
        impair->ends = ratio(1000, burst);
        impair->begins = ratio((u128)1000 * (loss_ppb - gap), (u128)burst * (dense - loss_ppb));
    }
}

void impair_prepare(struct impair *impair, uint32_t loss_ppb, bool losses) {
    const struct impairments *is = &impair->is;
    impair->any = is->burst_milli || is->duplicate || is->corrupt || is->reorder;
    if (losses) {
        prepare_states(impair, loss_ppb);
    }
}

static bool in_burst(struct impair *impair, uint64_t seed, bool probe, uint64_t n) {
    if (!impair->drawn[probe]) {
        impair->drawn[probe] = true;
        impair->in_burst[probe] = bits(seed, KEY_STATE, probe, n) < impair->share;
        return impair->in_burst[probe];
    }
    uint64_t turns = impair->in_burst[probe] ? impair->ends : impair->begins;
    impair->in_burst[probe] ^= bits(seed, KEY_BURST, probe, n) < turns;
    return impair->in_burst[probe];
}

bool impair_lost(struct impair *impair, uint64_t seed, bool probe, uint64_t n, uint32_t loss_ppb) {
    if (!impair->is.burst_milli) {
        return draw_lost(seed, probe, n, loss_ppb);
    }
    uint64_t share =
        in_burst(impair, seed, probe, n) ? PPB - impair->is.burst_pass : impair->is.gap_loss;
    return draw_lost(seed, probe, n, (uint32_t)share);
}

static bool happens(uint64_t seed, uint64_t key, bool probe, uint64_t n, uint64_t share) {
    return draw_happens(draw_key(seed, key, probe), n, share);
}

unsigned impair_draw(const struct impair *impair, uint64_t seed, bool probe, uint64_t n) {
    const struct impairments *is = &impair->is;
    unsigned found = 0;
    found |= happens(seed, KEY_DUPLICATE, probe, n, is->duplicate) ? IMPAIR_DUPLICATE : 0;
    found |= happens(seed, KEY_CORRUPT, probe, n, is->corrupt) ? IMPAIR_CORRUPT : 0;
    found |= happens(seed, KEY_REORDER, probe, n, is->reorder) ? IMPAIR_STRAY : 0;
    return found;
}

bool impair_rejects(uint64_t seed, bool probe, uint64_t n, uint64_t share_ppb) {
    return happens(seed, KEY_REJECT, probe, n, share_ppb);
}

uint32_t impair_bit(uint64_t seed, bool probe, uint64_t n, uint32_t count) {
    return (uint32_t)((u128)bits(seed, KEY_BIT, probe, n) * count >> 64);
}
