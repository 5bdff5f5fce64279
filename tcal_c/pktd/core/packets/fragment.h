/* Packets that are larger than a link takes. */
#ifndef PKTD_FRAGMENT_H
#define PKTD_FRAGMENT_H

#include "packet.h"

/* Whether routers may cut it: IPv4 without "don't fragment" (RFC 791). */
bool fragment_allowed(const struct packet_info *info, const uint8_t *frame);

/* Makes the fragment of a whole IPv4 packet of `length` bytes, Ethernet header included, that
 * begins at `*offset` of its payload and fits `mtu`: in `to`, as large as it. Returns its bytes and
 * moves `*offset` on; 0 behind the last one. */
size_t fragment_make(const uint8_t *frame, uint32_t length, uint32_t mtu, uint32_t *offset,
                     uint8_t *to);

#endif
