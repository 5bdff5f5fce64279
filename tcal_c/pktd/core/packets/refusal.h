/* What the sender of a packet is told that a link refuses. */
#ifndef PKTD_REFUSAL_H
#define PKTD_REFUSAL_H

#include "packet.h"

#define REFUSAL_LIMIT (ETH_BYTES + 1280u)

/* Makes the answer to a packet, a whole Ethernet frame in `to`, which has room for REFUSAL_LIMIT:
 * to TCP a reset, to all else "port unreachable". With an `mtu`, for which it is too large:
 * "fragmentation needed" or "packet too big" (RFC 1191, RFC 8201). All as from the packet's
 * destination. Returns its bytes; 0 where a packet has no answer: errors, resets, fragments. */
size_t refusal_make(const struct packet_info *info, const uint8_t *frame, uint32_t mtu,
                    uint8_t *to);

#endif
