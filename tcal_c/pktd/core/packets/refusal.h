/* What the sender of a packet is told that does not go on. */
#ifndef PKTD_REFUSAL_H
#define PKTD_REFUSAL_H

#include "packet.h"

#define REFUSAL_LIMIT (ETH_BYTES + 1280u)

/* REFUSED_RULE: a firewall rejects it, whose answer is a reset to TCP, "port unreachable" to all
 * else. REFUSED_SIZE: it is too large, "fragmentation needed" or "packet too big" (RFC 1191, RFC
 * 8201). REFUSED_TTL: its TTL is used up, "time exceeded". */
enum refused { REFUSED_RULE, REFUSED_SIZE, REFUSED_TTL };

struct refused_packet {
    enum refused why;
    uint32_t mtu;        /* that would do; REFUSED_SIZE */
    const uint8_t *from; /* the address of who answers; NULL: the packet's destination */
};

/* Whether routers tell the sender of a packet of errors: REFUSED_SIZE and REFUSED_TTL. */
bool refusal_is_heard(const struct packet_info *info, const uint8_t *frame);

/* Makes the answer to a packet, a whole Ethernet frame in `to`, which has room for REFUSAL_LIMIT.
 * Returns its bytes; 0 where a packet has no answer: errors, fragments but the first, what is for a
 * group or for all; of REFUSED_RULE resets and all fragments, too. */
size_t refusal_make(const struct packet_info *info, const uint8_t *frame,
                    const struct refused_packet *refused, uint8_t *to);

#endif
