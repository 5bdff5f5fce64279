/* The bits are the last two of IPv4's second byte and of IPv6's traffic class, which lies across
 * the first two. The checksum is changed by what the 16 bits that they are in are changed by (RFC
 * 1624).
 */
#include "ecn.h"

#include "pktd/core/structures/octets.h"

#define CE 3u

static unsigned shift_of(const struct packet_info *info) {
    return info->version == 4 ? 0 : 4;
}

static unsigned bits(const struct packet_info *info, const uint8_t *frame) {
    return frame[ETH_BYTES + 1] >> shift_of(info) & CE;
}

bool ecn_capable(const struct packet_info *info, const uint8_t *frame) {
    return info->version && bits(info, frame) != 0;
}

bool ecn_marked(const struct packet_info *info, const uint8_t *frame) {
    return info->version && bits(info, frame) == CE;
}

void ecn_mark(const struct packet_info *info, uint8_t *frame) {
    uint8_t *ip = frame + ETH_BYTES;
    uint16_t before = get16(ip);
    ip[1] |= (uint8_t)(CE << shift_of(info));
    if (info->version == 4) {
        resum16(ip, before, get16(ip));
    }
}
