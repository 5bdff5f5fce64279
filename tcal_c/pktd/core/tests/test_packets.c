/* Parsing and cutting frames. */
#include "common/tests/check.h"
#include "pktd/tests/frames.h"
#include "probe/wire.h"

#include <netinet/in.h>

static struct test_frame frame;

static enum packet_error parse(struct packet_info *info) {
    return packet_parse(info, &frame.vnet, frame.data, frame.bytes);
}

static void ordinary_packets(void) {
    struct packet_info info;
    make_packet(&frame, 0, 1, 1500);
    CHECK_EQ(parse(&info), PACKET_OK);
    CHECK_EQ(info.version, 4);
    CHECK_EQ(info.segments, 1);
    CHECK_EQ(packet_bytes(&info, 0, 1), 1500);
    CHECK_EQ(info.dest[3], 2);
    frame.bytes += 30; /* padding is not the packet's */
    CHECK_EQ(parse(&info), PACKET_OK);
    CHECK_EQ(info.length, 1514);
    make_frame(&frame, 6, TEST_UDP, 0, 1, 100, 0);
    CHECK_EQ(parse(&info), PACKET_OK);
    CHECK_EQ(info.version, 6);
    CHECK_EQ(packet_segment_bytes(&info, 0), 148);
    CHECK_EQ(info.dest[15], 2);
}

static bool is_probe(int version, uint8_t protocol, const uint32_t *mark) {
    struct packet_info info;
    size_t l4 = version == 4 ? 14 + 20 : 14 + 40;
    make_frame(&frame, version, TEST_UDP, 0, 1, mark ? 4 : 0, 0);
    frame.data[version == 4 ? 14 + 9 : 14 + 6] = protocol;
    if (mark) {
        memcpy(frame.data + l4 + 8, mark, sizeof *mark);
    }
    CHECK_EQ(parse(&info), PACKET_OK);
    return info.probe;
}

static void probes_are_known(void) {
    const uint32_t mark = PROBE_ECHO;
    const uint32_t other = PROBE_ECHO + 1;
    for (int version = 4; version <= 6; version += 2) {
        uint8_t icmp = version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
        CHECK(is_probe(version, PROBE_PROTOCOL, NULL));
        CHECK(is_probe(version, icmp, &mark));
        CHECK(!is_probe(version, icmp, &other));
        CHECK(!is_probe(version, icmp, NULL)); /* too short */
        CHECK(!is_probe(version, IPPROTO_UDP, &mark));
    }
}

static void refused_packets(void) {
    struct packet_info info;
    make_packet(&frame, 0, 1, 100);
    frame.data[13] = 0x06; /* ARP */
    CHECK_EQ(parse(&info), PACKET_NOT_IP);
    make_packet(&frame, 0, 1, 100);
    for (size_t bytes = 0; bytes < 114; bytes++) {
        CHECK(packet_parse(&info, &frame.vnet, frame.data, bytes) == PACKET_MALFORMED);
    }
    frame.data[14] = 0x44; /* header of 16 bytes */
    CHECK_EQ(parse(&info), PACKET_MALFORMED);
    frame.data[14] = 0x65; /* version 6 in an IPv4 frame */
    CHECK_EQ(parse(&info), PACKET_MALFORMED);
    make_frame(&frame, 4, TEST_TCP, 0, 1, 5000, 1448);
    frame.vnet.gso_size = 0;
    CHECK_EQ(parse(&info), PACKET_MALFORMED);
    frame.vnet.gso_size = 1; /* more segments than any kernel makes */
    CHECK_EQ(parse(&info), PACKET_MALFORMED);
    frame.vnet.gso_size = 1448;
    frame.vnet.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
    CHECK_EQ(parse(&info), PACKET_MALFORMED);
    frame.vnet.gso_type = VIRTIO_NET_HDR_GSO_UDP;
    CHECK_EQ(parse(&info), PACKET_MALFORMED);
    make_frame(&frame, 4, TEST_TCP, 0, 1, 5000, 1448);
    frame.data[14 + 20 + 12] = 0x40; /* TCP header of 16 bytes */
    CHECK_EQ(parse(&info), PACKET_MALFORMED);
    make_frame(&frame, 4, TEST_TCP, 0, 1, 5000, 1448);
    frame.data[14 + 6] = 0x20; /* a fragment cannot be a super-packet */
    CHECK_EQ(parse(&info), PACKET_MALFORMED);
}

static void extension_headers_are_walked(void) {
    struct packet_info info;
    make_frame(&frame, 6, TEST_TCP, 0, 1, 5000, 1428);
    memmove(frame.data + 14 + 48, frame.data + 14 + 40, 5032);
    memset(frame.data + 14 + 40, 0, 8);
    frame.data[14 + 40] = TEST_TCP;
    frame.data[14 + 6] = 0; /* hop-by-hop options of 8 bytes */
    frame.data[14 + 4] = 5040 >> 8;
    frame.data[14 + 5] = 5040 & 255;
    frame.bytes += 8;
    CHECK_EQ(parse(&info), PACKET_OK);
    CHECK_EQ(info.l4, 14 + 48);
    CHECK_EQ(info.segments, 4);
}

/* Writes a piece as one frame and checks what can be known of it; returns its payload bytes. */
static size_t check_piece(const struct packet_info *info, uint32_t first, uint32_t count) {
    static uint8_t out[70000];
    struct packet_piece piece;
    packet_cut(info, frame.data, first, count, &piece);
    if (count == info->segments) {
        CHECK_EQ(piece.payload_bytes, frame.bytes);
        return frame.bytes - info->header;
    }
    memcpy(out, piece.header, piece.header_bytes);
    memcpy(out + piece.header_bytes, frame.data + piece.payload_offset, piece.payload_bytes);
    size_t bytes = piece.header_bytes + piece.payload_bytes;
    CHECK_EQ(piece.header_bytes, info->header);
    CHECK_EQ(piece.payload_offset, info->header + first * info->segment_payload);
    CHECK_EQ(bytes - 14,
             packet_bytes(info, first, count) - (count - 1) * (uint64_t)(info->header - 14u));
    CHECK_EQ(piece.vnet.gso_size, count > 1 ? info->segment_payload : 0);
    if (info->version == 4) {
        CHECK_EQ((uint16_t)(out[18] << 8 | out[19]), (uint16_t)(0xFFFE + first));
    }
    if (info->split == SPLIT_TCP) {
        const uint8_t *tcp = out + info->l4;
        bool last = first + count == info->segments;
        CHECK_EQ(tcp[13] & 0x89, (first == 0 ? 0x80 : 0) | (last ? 0x09 : 0));
        uint32_t seq =
            (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 | (uint32_t)tcp[6] << 8 | tcp[7];
        CHECK_EQ(seq, (uint32_t)(0xFFFFF000u + first * info->segment_payload));
        CHECK(first == 0 || !(piece.vnet.gso_type & VIRTIO_NET_HDR_GSO_ECN));
    }
    check_sums(&piece.vnet, out, bytes);
    return piece.payload_bytes;
}

/* Every way to cut a super-packet in two and each segment alone. */
static void cut_all(int version, int protocol, size_t payload, unsigned segment) {
    struct packet_info info;
    make_frame(&frame, version, protocol, 3, 4, payload, segment);
    CHECK_EQ(parse(&info), PACKET_OK);
    CHECK_EQ(info.segments, (payload + segment - 1) / segment);
    uint64_t total = 0;
    size_t alone = 0;
    for (uint32_t i = 0; i < info.segments; i++) {
        alone += check_piece(&info, i, 1);
        total += packet_segment_bytes(&info, i);
        if (i) {
            CHECK_EQ(check_piece(&info, 0, i) + check_piece(&info, i, info.segments - i), payload);
        }
    }
    CHECK_EQ(alone, payload);
    CHECK_EQ(total, packet_bytes(&info, 0, info.segments));
    CHECK_EQ(total, payload + info.segments * (uint64_t)(info.header - 14u));
    check_piece(&info, 0, info.segments);
}

void test_packets(void) {
    ordinary_packets();
    probes_are_known();
    refused_packets();
    extension_headers_are_walked();
    cut_all(4, TEST_TCP, 64000, 1448);
    cut_all(4, TEST_TCP, 1449, 1448);
    cut_all(6, TEST_TCP, 30000, 1428);
    cut_all(4, TEST_UDP, 12001, 1000);
    cut_all(6, TEST_UDP, 6000, 1200);
    cut_all(4, TEST_TCP, 1000, 1448);
}
