/* What the sender of a packet is told that a link refuses. */
#ifndef PKTD_REFUSAL_H
#define PKTD_REFUSAL_H

#include "packet.h"

#define REFUSAL_LIMIT (ETH_BYTES + 1280u)

/* Makes the answer to a packet, a whole Ethernet frame in `to`, which has room for REFUSAL_LIMIT:
 * to TCP a reset, to all else "port unreachable", both as from the packet's destination. Returns
 * its bytes; 0 where a packet has no answer: errors, resets, later fragments. */
size_t refusal_make(const struct packet_info *info, const uint8_t *frame, uint8_t *to);

#endif
