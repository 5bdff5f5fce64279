/* Fragmentation as RFC 791 section 3.2 has it. A fragment that is cut again keeps its place and its
 * "more fragments". All of a header's options go on in each. */
#include "fragment.h"

#include "pktd/core/structures/octets.h"

#include <string.h>

enum { DONT = 0x4000, MORE = 0x2000, PLACE = 0x1FFF };

bool fragment_allowed(const struct packet_info *info, const uint8_t *frame) {
    return info->version == 4 && !(get16(frame + ETH_BYTES + 6) & DONT);
}

size_t fragment_make(const uint8_t *frame, uint32_t length, uint32_t mtu, uint32_t *offset,
                     uint8_t *to) {
    const uint8_t *ip = frame + ETH_BYTES;
    uint32_t header = (ip[0] & 15u) * 4u, payload = length - ETH_BYTES - header;
    if (*offset >= payload || mtu < header + 8) {
        return 0;
    }
    uint32_t left = payload - *offset, room = (mtu - header) & ~7u;
    uint32_t bytes = left <= mtu - header ? left : room;
    memcpy(to, frame, ETH_BYTES + header);
    memcpy(to + ETH_BYTES + header, ip + header + *offset, bytes);
    uint8_t *own = to + ETH_BYTES;
    uint16_t was = get16(ip + 6);
    uint32_t place = (was & PLACE) + *offset / 8;
    put16(own + 2, header + bytes);
    put16(own + 6, (was & MORE) | (bytes < left ? MORE : 0) | (place & PLACE));
    put16(own + 10, 0);
    put16(own + 10, (uint16_t)~fold(sum16(own, header, 0)));
    *offset += bytes;
    return ETH_BYTES + header + bytes;
}
