/* Explicit congestion notification (RFC 3168): two bits of the IP header. */
#ifndef PKTD_ECN_H
#define PKTD_ECN_H

#include "packet.h"

/* Whether the packet may be marked in place of a drop, or is marked already. */
bool ecn_capable(const struct packet_info *info, const uint8_t *frame);

/* Whether it is marked: congestion experienced. */
bool ecn_marked(const struct packet_info *info, const uint8_t *frame);

/* Marks a whole packet; the checksum of IPv4 follows. */
void ecn_mark(const struct packet_info *info, uint8_t *frame);

#endif
