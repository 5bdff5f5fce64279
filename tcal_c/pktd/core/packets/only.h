/* Which packets a link treats as another class than the rest, and what that class has of its own.
 *
 * A packet is of the class if it fits one of the terms (where there are any), comes from one of the
 * nodes in `from` and goes to one of those in `to` (where there are any). Probes of the run are
 * never of it. */
#ifndef PKTD_ONLY_H
#define PKTD_ONLY_H

#include "pool.h"

#define ONLY_TERMS 16u
#define ONLY_NODES 64u

enum only_value { ONLY_LOSS = 1, ONLY_DELAY = 2, ONLY_JITTER = 4, ONLY_REJECT = 8 };

/* `port`: of either end; 0: any. */
struct only_term {
    uint8_t protocol; /* IPPROTO_ICMP stands for that of IPv6, too */
    uint16_t port;
};

struct only {
    uint32_t stated; /* of enum only_value; the link's own where they are not */
    uint32_t terms;
    uint32_t froms;
    uint32_t tos;
    struct only_term term[ONLY_TERMS];
    uint16_t from[ONLY_NODES];
    uint16_t to[ONLY_NODES];
    uint64_t delay_ns;
    uint64_t jitter_ns;
    uint64_t loss_ppb;
    uint64_t reject_ppb;
};

/* Whether the frame's packets are of the class. All segments of a super-packet are, or none. Of
 * fragments the ports are not known, not even of the first: so all of a packet are in one class. */
bool only_has(const struct only *only, const struct frame *frame);

#endif
