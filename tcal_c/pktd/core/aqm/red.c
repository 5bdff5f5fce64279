/* Random early detection (Floyd and Jacobson, "Random early detection gateways for congestion
 * avoidance", 1993), with the defaults of tc-red(8).
 *
 * The mean moves by 2^-weight of the way to the bytes that are held when a packet comes; after a
 * time without any, as if as many packets of `avpkt` had found nothing as could have been sent.
 * Below `min` all pass, from `max` on all are hit. Between them a packet is hit with p / (1 -
 * passed p), where p grows from 0 to the probability asked for, so that hits are evenly spread:
 * from 1 to 1 / p packets apart. The weight is the largest with which a burst from an empty queue
 * does not bring the mean above `min`.
 */
#include "red.h"

#include "aqm.h"
#include "pktd/core/draws/draw.h"

#define KEY_RED 0x726564ull /* "red" */
#define ONE (1ull << 32)    /* of a part */
#define MEAN_BITS 16
#define WEIGHT_LIMIT 31u

/* (1 - 2^-weight)^n, in 2^-32. */
static uint64_t left_after(uint32_t weight, uint64_t n) {
    uint64_t power = ONE, square = ONE - (ONE >> weight);
    for (; n && power; n >>= 1) {
        power = n & 1 ? power * square >> 32 : power;
        square = square * square >> 32;
    }
    return power;
}

/* The first with burst + 1 - min / avpkt <= (1 - (1 - 2^-weight)^burst) 2^weight. */
static uint32_t weight_for(uint64_t burst, uint64_t min_bytes, uint64_t avpkt) {
    i128 wanted = ((i128)burst + 1) * (i128)ONE - (i128)((u128)min_bytes * ONE / avpkt);
    uint32_t weight = 1;
    while (weight < WEIGHT_LIMIT && wanted > (i128)(ONE - left_after(weight, burst)) << weight) {
        weight++;
    }
    return weight;
}

void red_change(struct aqm *aqm) {
    struct red *red = &aqm->red;
    const struct aqm_config *is = &aqm->is;
    red->max_bytes = max_u64(is->max_bytes ? is->max_bytes : aqm->limit_bytes / 4, 2);
    red->min_bytes =
        min_u64(is->min_bytes ? is->min_bytes : red->max_bytes / 3, red->max_bytes - 1);
    uint64_t burst =
        is->burst ? is->burst : (2 * red->min_bytes + red->max_bytes) / (3 * is->avpkt);
    red->weight = weight_for(max_u64(burst, 1), red->min_bytes, is->avpkt);
}

static void average(struct aqm *aqm, const struct aqm_sending *sending, uint64_t at_ns) {
    struct red *red = &aqm->red;
    if (aqm->packets == 0 && at_ns > sending->free_ns) {
        u128 idle = (u128)(at_ns - sending->free_ns) * sending->rate_bps;
        u128 sent = idle / (aqm->is.avpkt * 8 * NS_PER_S);
        uint64_t n = sent > UINT32_MAX ? UINT32_MAX : (uint64_t)sent;
        red->mean = (uint64_t)((u128)red->mean * left_after(red->weight, n) >> 32);
        return;
    }
    uint64_t now = aqm->bytes << MEAN_BITS;
    red->mean = now > red->mean ? red->mean + ((now - red->mean) >> red->weight)
                                : red->mean - ((red->mean - now) >> red->weight);
}

/* Whether a packet behind `passed` others is hit. */
static bool drawn(const struct aqm *aqm, const struct piece *piece, uint64_t n) {
    const struct red *red = &aqm->red;
    u128 above = red->mean - (red->min_bytes << MEAN_BITS);
    u128 whole = (u128)(red->max_bytes - red->min_bytes) << MEAN_BITS;
    /* p = part / all */
    u128 part = above * aqm->is.probability_ppb, all = whole * PPB;
    u128 used = part * red->passed;
    if (used + part >= all) {
        return part != 0;
    }
    uint64_t key = draw_key(aqm->seed, KEY_RED, piece->frame->info.probe);
    /* None of these is more than 2^77. */
    return (u128)(draw_bits(key, n) >> 32) * (all - used) < part << 32;
}

bool red_hits(struct aqm *aqm, const struct piece *piece, uint64_t n,
              const struct aqm_sending *sending, uint64_t at_ns) {
    struct red *red = &aqm->red;
    average(aqm, sending, at_ns);
    if (red->mean < red->min_bytes << MEAN_BITS) {
        red->passed = RED_NONE;
        return false;
    }
    red->passed++; /* from RED_NONE to 0 */
    bool hit = red->mean >= red->max_bytes << MEAN_BITS || drawn(aqm, piece, n);
    red->passed = hit ? 0 : red->passed;
    return hit;
}
