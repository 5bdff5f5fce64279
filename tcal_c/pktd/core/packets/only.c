#include "only.h"

#include "pktd/core/structures/octets.h"

#include <netinet/in.h>

#define IPV4_PROTOCOL 9
#define FRAGMENT_BYTES 8u
#define PORTS_BYTES 4u

/* What stands behind the IP header, of a fragment what does in the whole packet; `whole` tells
 * whether it is one. */
static uint8_t protocol_of(const struct packet_info *info, const uint8_t *frame, bool *whole) {
    uint8_t protocol = info->protocol;
    *whole = true;
    if (info->version == 4) {
        const uint8_t *ip = frame + ETH_BYTES;
        *whole = (get16(ip + 6) & 0x3FFF) == 0;
        protocol = ip[IPV4_PROTOCOL];
    } else if (protocol == IPPROTO_FRAGMENT && info->l4 + FRAGMENT_BYTES <= info->length) {
        *whole = false;
        protocol = frame[info->l4];
    }
    return protocol == IPPROTO_ICMPV6 && info->version == 6 ? IPPROTO_ICMP : protocol;
}

static bool has_ports(uint8_t protocol) {
    return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
}

static bool fits_terms(const struct only *only, const struct frame *frame) {
    const struct packet_info *info = &frame->info;
    const uint8_t *bytes = frame_content(frame);
    bool whole;
    uint8_t protocol = protocol_of(info, bytes, &whole);
    bool ports = whole && has_ports(protocol) && info->l4 + PORTS_BYTES <= info->length;
    uint16_t source = ports ? (uint16_t)get16(bytes + info->l4) : 0;
    uint16_t dest = ports ? (uint16_t)get16(bytes + info->l4 + 2) : 0;
    for (uint32_t i = 0; i < only->terms; i++) {
        const struct only_term *term = &only->term[i];
        if (term->protocol == protocol &&
            (term->port == 0 || (ports && (term->port == source || term->port == dest)))) {
            return true;
        }
    }
    return only->terms == 0;
}

static bool is_among(const uint16_t *nodes, uint32_t count, uint16_t node) {
    for (uint32_t i = 0; i < count; i++) {
        if (nodes[i] == node) {
            return true;
        }
    }
    return count == 0;
}

bool only_has(const struct only *only, const struct frame *frame) {
    /* What is for many has no single destination. */
    bool to = only->tos == 0 || (!frame->audience && is_among(only->to, only->tos, frame->dest));
    return to && !frame->info.probe && is_among(only->from, only->froms, frame->source) &&
           fits_terms(only, frame);
}
