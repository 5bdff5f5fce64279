/* What a link does to single packets beside delaying them: losses in bursts, copies, damage, and
 * leaving the order. Draws only; the packets are link.c's. */
#ifndef PKTD_IMPAIR_H
#define PKTD_IMPAIR_H

#include "draw.h"

#define BURST_LIMIT 1000000000u /* thousandths of a packet */

/* Shares in 1e9, as a client states them. */
struct impairments {
    uint64_t burst_milli; /* mean packets of a burst of losses, times 1000; 0: no bursts */
    uint64_t burst_pass;  /* of packets in a burst, that get through */
    uint64_t gap_loss;    /* of packets between bursts, that are lost */
    uint64_t duplicate;
    uint64_t corrupt;
    uint64_t reorder;
    uint64_t reorder_ns; /* 0: a packet that leaves the order has a jitter of its own */
    uint64_t reject;     /* refused before all of this */
};

/* Two states (Gilbert 1960, Elliott 1963): packets in a burst are lost with one probability, those
 * in the gaps between bursts with another. Probes have states of their own. */
struct impair {
    struct impairments is;
    bool any;        /* something of it is not 0 */
    uint64_t begins; /* probability that a burst begins with a packet, in 2^-64 */
    uint64_t ends;
    uint64_t share; /* of packets that are in bursts */
    bool drawn[2];  /* by probe: in_burst is known */
    bool in_burst[2];
};

enum { IMPAIR_DUPLICATE = 1, IMPAIR_CORRUPT = 2, IMPAIR_STRAY = 4 };

/* After a change of it. `losses`: that of all packets, or what bursts are like, has changed; then
 * which state it is in is drawn anew. */
void impair_prepare(struct impair *impair, uint32_t loss_ppb, bool losses);

/* Whether packet n, or probe n, is lost, of all of which `loss_ppb` are. */
bool impair_lost(struct impair *impair, uint64_t seed, bool probe, uint64_t n, uint32_t loss_ppb);

/* What happens to it, of IMPAIR_…, where it is not lost. */
unsigned impair_draw(const struct impair *impair, uint64_t seed, bool probe, uint64_t n);

/* Whether packet n, or probe n, is refused, of all of which `share_ppb` are. */
bool impair_rejects(uint64_t seed, bool probe, uint64_t n, uint64_t share_ppb);

/* Which of the `bits` of packet n is flipped. */
uint32_t impair_bit(uint64_t seed, bool probe, uint64_t n, uint32_t bits);

#endif
