/* Frame parsing and segmentation.
 *
 * In: an Ethernet frame with the virtio header that Linux puts before it on a TAP or packet socket.
 * Out: addresses and, for a super-packet (TCP or UDP segmentation offload), how many
 * segments it stands for, and any run of those segments as a frame of its own. A run of several
 * segments is again a super-packet; a single one is an ordinary packet whose checksum the receiving
 * kernel completes (VIRTIO_NET_HDR_F_NEEDS_CSUM, virtio 1.2 section 5.1.6). Header rules are those
 * of the kernel's own segmentation: IPv4 id counts up, sequence numbers advance, FIN and PSH only
 * on the last segment, CWR only on the first (RFC 3168 section 6.1.2).
 */
#include "packet.h"

#include "pktd/core/structures/octets.h"
#include "probe/wire.h"

#include <string.h>

#include <netinet/in.h>

#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86DD
#define TCP_FIN_PSH 0x09
#define TCP_CWR 0x80
#define TCP_CHECKSUM 16
#define UDP_CHECKSUM 6
#define UDP_HEADER 8u
#define ICMP_HEADER 8u

static enum packet_error parse_ipv4(struct packet_info *info, const uint8_t *ip, size_t room,
                                    uint8_t *protocol, size_t *l4) {
    if (room < 20 || ip[0] >> 4 != 4) {
        return PACKET_MALFORMED;
    }
    size_t header = (ip[0] & 15u) * 4u;
    size_t total = get16(ip + 2);
    if (header < 20 || total < header || total > room) {
        return PACKET_MALFORMED;
    }
    info->version = 4;
    info->length = (uint32_t)(ETH_BYTES + total);
    info->ttl = ip[8];
    memcpy(info->source, ip + 12, 4);
    memcpy(info->dest, ip + 16, 4);
    bool fragment = (get16(ip + 6) & 0x3FFF) != 0;
    *protocol = fragment ? IPPROTO_NONE : ip[9];
    *l4 = ETH_BYTES + header;
    return PACKET_OK;
}

static enum packet_error parse_ipv6(struct packet_info *info, const uint8_t *ip, size_t room,
                                    uint8_t *protocol, size_t *l4) {
    if (room < 40 || ip[0] >> 4 != 6) {
        return PACKET_MALFORMED;
    }
    size_t total = 40u + get16(ip + 4);
    if (total > room) {
        return PACKET_MALFORMED;
    }
    info->version = 6;
    info->length = (uint32_t)(ETH_BYTES + total);
    info->ttl = ip[7];
    memcpy(info->source, ip + 8, 16);
    memcpy(info->dest, ip + 24, 16);
    uint8_t next = ip[6];
    size_t at = 40;
    /* Extension headers that may stand before TCP or UDP; anything else ends the walk. */
    while (next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS) {
        if (at + 8 > total) {
            next = IPPROTO_NONE;
            break;
        }
        next = ip[at];
        at += 8u * (ip[at + 1] + 1u);
    }
    *protocol = next;
    *l4 = ETH_BYTES + at;
    return PACKET_OK;
}

/* Length of the transport header, 0 when the packet cannot be what its offload type says. */
static size_t transport_header(const struct packet_info *info, const uint8_t *frame,
                               uint8_t protocol, size_t l4) {
    if (info->split == SPLIT_TCP && protocol == IPPROTO_TCP && l4 + 20 <= info->length) {
        size_t bytes = (size_t)(frame[l4 + 12] >> 4) * 4u;
        return bytes >= 20 && l4 + bytes <= info->length ? bytes : 0;
    }
    if (info->split == SPLIT_UDP && protocol == IPPROTO_UDP && l4 + UDP_HEADER <= info->length) {
        return UDP_HEADER;
    }
    return 0;
}

static enum packet_error parse_split(struct packet_info *info, const uint8_t *frame,
                                     uint8_t protocol, size_t l4) {
    uint8_t type = info->vnet.gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
    if (type == VIRTIO_NET_HDR_GSO_NONE) {
        return PACKET_OK;
    }
    if (type == VIRTIO_NET_HDR_GSO_UDP_L4) {
        info->split = SPLIT_UDP;
    } else if (type == (info->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6)) {
        info->split = SPLIT_TCP;
    } else {
        return PACKET_MALFORMED;
    }
    size_t transport = transport_header(info, frame, protocol, l4);
    if (transport == 0 || l4 + transport > HEADER_LIMIT || info->vnet.gso_size == 0) {
        return PACKET_MALFORMED;
    }
    size_t header = l4 + transport;
    size_t payload = info->length - header;
    size_t segments = (payload + info->vnet.gso_size - 1u) / info->vnet.gso_size;
    if (segments > SEGMENT_LIMIT) {
        return PACKET_MALFORMED;
    }
    info->header = (uint16_t)header;
    info->segment_payload = info->vnet.gso_size;
    info->segments = segments ? (uint32_t)segments : 1;
    /* The kernel states how much it had in linear memory; the headers are what matters. */
    info->vnet.hdr_len = (uint16_t)header;
    return PACKET_OK;
}

static bool is_probe(const struct packet_info *info, const uint8_t *frame, uint8_t protocol,
                     size_t l4) {
    uint32_t mark;
    if (protocol == PROBE_PROTOCOL) {
        return true;
    }
    if (protocol != (info->version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) ||
        l4 + ICMP_HEADER + sizeof mark > info->length) {
        return false;
    }
    memcpy(&mark, frame + l4 + ICMP_HEADER, sizeof mark);
    return mark == PROBE_ECHO;
}

enum packet_error packet_parse(struct packet_info *info, const struct virtio_net_hdr *vnet,
                               const uint8_t *frame, size_t length) {
    memset(info, 0, sizeof *info);
    info->vnet = *vnet;
    info->segments = 1;
    if (length < ETH_BYTES || length > FRAME_LIMIT) {
        return PACKET_MALFORMED;
    }
    const uint8_t *ip = frame + ETH_BYTES;
    size_t room = length - ETH_BYTES;
    uint8_t protocol = 0;
    size_t l4 = 0;
    enum packet_error error;
    switch (get16(frame + 12)) {
    case TYPE_IPV4:
        error = parse_ipv4(info, ip, room, &protocol, &l4);
        break;
    case TYPE_IPV6:
        error = parse_ipv6(info, ip, room, &protocol, &l4);
        break;
    default:
        return PACKET_NOT_IP;
    }
    if (error != PACKET_OK) {
        return error;
    }
    info->protocol = protocol;
    info->l4 = (uint16_t)(l4 < UINT16_MAX ? l4 : UINT16_MAX);
    info->probe = is_probe(info, frame, protocol, l4);
    return parse_split(info, frame, protocol, l4);
}

static uint64_t get64(const uint8_t *p) {
    return (uint64_t)get32(p) << 32 | get32(p + 4);
}

void packet_flow(const struct packet_info *info, const uint8_t *frame, uint64_t *numbers) {
    enum { PROTOCOL = 9, LABEL = 0xFFFFF };
    const uint8_t *ip = frame + ETH_BYTES;
    /* The protocol of fragments of IPv4 stands in their header; behind it are no ports. */
    uint64_t protocol = info->version == 4 ? ip[PROTOCOL] : info->protocol;
    uint64_t label = info->version == 6 ? get32(ip) & LABEL : 0;
    bool with_ports = info->protocol == IPPROTO_TCP || info->protocol == IPPROTO_UDP ||
                      info->protocol == IPPROTO_SCTP;
    uint64_t ports = with_ports && info->l4 + 4u <= info->length ? get32(frame + info->l4) : 0;
    numbers[0] = get64(info->source);
    numbers[1] = get64(info->source + 8);
    numbers[2] = get64(info->dest);
    numbers[3] = get64(info->dest + 8);
    numbers[4] = (uint64_t)info->version << 60 | protocol << 52 | label << 32 | ports;
}

static uint32_t payload_of(const struct packet_info *info, uint32_t first, uint32_t count) {
    uint32_t begin = first * info->segment_payload;
    uint32_t all = info->length - info->header;
    uint32_t end = first + count >= info->segments ? all : begin + count * info->segment_payload;
    return end - begin;
}

uint64_t packet_part_bytes(const struct packet_info *info, uint32_t first, uint32_t count) {
    return (uint64_t)count * (info->header - ETH_BYTES) + payload_of(info, first, count);
}

/* The sum over the pseudo header that a partial checksum field holds (not complemented). */
static uint16_t pseudo_sum(const struct packet_info *info, const uint8_t *frame,
                           uint32_t l4_bytes) {
    uint8_t protocol = info->split == SPLIT_TCP ? IPPROTO_TCP : IPPROTO_UDP;
    const uint8_t *ip = frame + ETH_BYTES;
    uint32_t sum = info->version == 4 ? sum16(ip + 12, 8, 0) : sum16(ip + 8, 32, 0);
    return fold(sum + protocol + (l4_bytes >> 16) + (l4_bytes & 0xFFFF));
}

static void rewrite_ip(const struct packet_info *info, uint8_t *ip, uint32_t first,
                       uint32_t bytes) {
    if (info->version == 6) {
        put16(ip + 4, bytes - 40);
        return;
    }
    put16(ip + 2, bytes);
    put16(ip + 4, get16(ip + 4) + first);
    put16(ip + 10, 0);
    put16(ip + 10, (uint16_t)~fold(sum16(ip, (ip[0] & 15u) * 4u, 0)));
}

static void rewrite_transport(const struct packet_info *info, uint8_t *header, uint32_t first,
                              uint32_t count, uint32_t l4_bytes) {
    uint8_t *l4 = header + info->l4;
    uint16_t sum = pseudo_sum(info, header, l4_bytes);
    if (info->split == SPLIT_UDP) {
        put16(l4 + 4, l4_bytes);
        put16(l4 + UDP_CHECKSUM, sum);
        return;
    }
    put32(l4 + 4, get32(l4 + 4) + first * info->segment_payload);
    if (first + count < info->segments) {
        l4[13] &= (uint8_t)~TCP_FIN_PSH;
    }
    if (first > 0) {
        l4[13] &= (uint8_t)~TCP_CWR;
    }
    put16(l4 + TCP_CHECKSUM, sum);
}

static void rewrite_vnet(const struct packet_info *info, struct virtio_net_hdr *vnet,
                         uint32_t first, uint32_t count) {
    *vnet = info->vnet;
    vnet->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    vnet->csum_start = info->l4;
    vnet->csum_offset = info->split == SPLIT_TCP ? TCP_CHECKSUM : UDP_CHECKSUM;
    if (count == 1) {
        vnet->gso_type = VIRTIO_NET_HDR_GSO_NONE;
        vnet->gso_size = 0;
    } else if (first > 0) {
        vnet->gso_type &= (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
    }
}

void packet_cut(const struct packet_info *info, const uint8_t *frame, uint32_t first,
                uint32_t count, struct packet_piece *piece) {
    if (count == info->segments) {
        piece->vnet = info->vnet;
        piece->header_bytes = 0;
        piece->payload_offset = 0;
        piece->payload_bytes = info->length;
        return;
    }
    uint32_t payload = payload_of(info, first, count);
    piece->header_bytes = info->header;
    piece->payload_offset = info->header + first * info->segment_payload;
    piece->payload_bytes = payload;
    memcpy(piece->header, frame, info->header);
    rewrite_vnet(info, &piece->vnet, first, count);
    rewrite_ip(info, piece->header + ETH_BYTES, first, info->header - ETH_BYTES + payload);
    rewrite_transport(info, piece->header, first, count, info->header - info->l4 + payload);
}

void packet_age(uint8_t *frame, uint32_t hops) {
    uint8_t *ip = frame + ETH_BYTES;
    if (ip[0] >> 4 == 6) {
        ip[7] = (uint8_t)(ip[7] - hops);
        return;
    }
    uint16_t before = get16(ip + 8);
    ip[8] = (uint8_t)(ip[8] - hops);
    resum16(ip, before, get16(ip + 8));
}

bool packet_is_for_many(const struct packet_info *info, const uint8_t *frame) {
    enum { IGMP = 2, HOP_BY_HOP = 0, ICMPV6 = 58, FIRST_OF_KERNELS = 130 };
    const uint8_t *ip = frame + ETH_BYTES, *to = info->dest;
    if (info->version == 4) {
        bool all = to[2] == 0xff && to[3] == 0xff;
        return ip[9] != IGMP && ((to[0] & 0xf0) == 0xe0 || all);
    }
    /* MLD comes behind a hop-by-hop header (RFC 3810, section 5). */
    bool kernels = ip[6] == HOP_BY_HOP ||
                   (ip[6] == ICMPV6 && info->length > ETH_BYTES + 40 && ip[40] >= FIRST_OF_KERNELS);
    return to[0] == 0xff && !kernels;
}

/* The checksum that was left to a device (virtio 1.2, section 5.1.6). */
static void complete_checksum(const struct virtio_net_hdr *vnet, uint8_t *frame, uint32_t length) {
    size_t at = (size_t)vnet->csum_start + vnet->csum_offset;
    if (!(vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || at + 2 > length) {
        return;
    }
    uint32_t sum = sum16(frame + vnet->csum_start, length - vnet->csum_start, 0);
    uint16_t checksum = (uint16_t)~fold(sum);
    /* In UDP 0 says that there is none (RFC 768). */
    put16(frame + at, checksum == 0 && vnet->csum_offset == UDP_CHECKSUM ? 0xFFFF : checksum);
}

void packet_copy(const struct packet_info *info, const uint8_t *frame, uint32_t segment,
                 uint8_t *to, struct packet_info *copy) {
    struct packet_piece cut;
    packet_cut(info, frame, segment, 1, &cut);
    memcpy(to, cut.header, cut.header_bytes);
    memcpy(to + cut.header_bytes, frame + cut.payload_offset, cut.payload_bytes);
    *copy = *info;
    copy->length = cut.header_bytes + cut.payload_bytes;
    copy->segments = 1;
    copy->split = SPLIT_NONE;
    memset(&copy->vnet, 0, sizeof copy->vnet);
    complete_checksum(&cut.vnet, to, copy->length);
}

uint32_t packet_behind_ip(const struct packet_info *info, const uint8_t *frame) {
    uint32_t header = info->version == 4 ? (frame[ETH_BYTES] & 15u) * 4u : 40u;
    uint32_t at = ETH_BYTES + header;
    return at < info->length ? at : info->length;
}
