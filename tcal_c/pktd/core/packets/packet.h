/* What pktd has to know of an Ethernet frame: its addresses, its segments, how to cut them out. */
#ifndef PKTD_PACKET_H
#define PKTD_PACKET_H

#include "common/limits.h"

#include <linux/virtio_net.h>

#define ETH_BYTES 14u
#define FRAME_LIMIT (ETH_BYTES + 65535u + 40u)
#define HEADER_LIMIT 256u /* Ethernet + IP with options or extensions + TCP with options */
#define SEGMENT_LIMIT 4096u
#define MTU_LIMIT 65535u

/* Newer than the kernel headers of some distributions. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

enum packet_error { PACKET_OK, PACKET_NOT_IP, PACKET_MALFORMED };
enum packet_split { SPLIT_NONE, SPLIT_TCP, SPLIT_UDP };

/* Addresses as 16 bytes; an IPv4 address stands in the first four. */
struct packet_info {
    struct virtio_net_hdr vnet;
    uint8_t version;  /* 4 or 6 */
    uint8_t split;    /* enum packet_split */
    bool probe;       /* of the run itself, no program's */
    uint8_t protocol; /* above IP; IPPROTO_NONE of a fragment of IPv4 */
    uint8_t ttl;      /* hop limit of IPv6 */
    uint16_t l4;      /* offset of the transport header in the frame */
    uint16_t header;  /* bytes before the payload that every segment repeats (split packets only) */
    uint16_t segment_payload;
    uint32_t length;   /* bytes of the frame, without padding behind the IP packet */
    uint32_t segments; /* 1 when not split */
    uint64_t flow;     /* what it is shared out by, once that is known (draw_flow); 0 before */
    uint8_t source[16];
    uint8_t dest[16];
};

/* One piece of a frame, ready to be written: headers (or the whole) and payload. */
struct packet_piece {
    struct virtio_net_hdr vnet;
    uint8_t header[HEADER_LIMIT];
    uint32_t header_bytes;
    uint32_t payload_offset; /* in the frame */
    uint32_t payload_bytes;
};

/* Reads a frame of `length` bytes that came with `vnet`. Never looks beyond `length`. */
enum packet_error packet_parse(struct packet_info *info, const struct virtio_net_hdr *vnet,
                               const uint8_t *frame, size_t length);

/* Whether an IP packet is for a group or for all: multicast, or broadcast of everything or of a
 * network of 16 bits. Not those that kernels send by themselves (IGMP, MLD, neighbour discovery).
 */
bool packet_is_for_many(const struct packet_info *info, const uint8_t *frame);

#define PACKET_FLOW 5u

/* The numbers that tell a flow from others (docs/plan.md, Equal paths). A super-packet is one
 * packet of its flow; fragments and protocols without ports have those of addresses alone. */
void packet_flow(const struct packet_info *info, const uint8_t *frame, uint64_t *numbers);

/* A part of packet_bytes(): of a super-packet. */
uint64_t packet_part_bytes(const struct packet_info *info, uint32_t first, uint32_t count);

/* Layer-3 bytes of segments [first, first + count), headers included. */
static inline uint64_t packet_bytes(const struct packet_info *info, uint32_t first,
                                    uint32_t count) {
    return info->segments == 1 ? info->length - ETH_BYTES : packet_part_bytes(info, first, count);
}

/* Of one segment. */
static inline uint32_t packet_segment_bytes(const struct packet_info *info, uint32_t segment) {
    return (uint32_t)packet_bytes(info, segment, 1);
}

/* Cuts segments [first, first + count) out of a frame; the payload stays where it is. */
void packet_cut(const struct packet_info *info, const uint8_t *frame, uint32_t first,
                uint32_t count, struct packet_piece *piece);

/* Takes `hops`, at most its TTL, from the TTL or hop limit of a frame whose IP header is whole. */
void packet_age(uint8_t *frame, uint32_t hops);

/* Copies one segment to `to`, which has room for ETH_BYTES and packet_segment_bytes: a packet of
 * its own, nothing of which is left to a device. `copy` becomes what is known of it. */
void packet_copy(const struct packet_info *info, const uint8_t *frame, uint32_t segment,
                 uint8_t *to, struct packet_info *copy);

/* Where the first byte behind the IP header is, in the frame; `info->length` where there is none.
 */
uint32_t packet_behind_ip(const struct packet_info *info, const uint8_t *frame);

#endif
