/* Building and verifying frames, written apart from the code under test. */
#include "frames.h"

#include "common/tests/check.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>

static uint32_t add_words(const uint8_t *p, size_t bytes) {
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes; i++) {
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    }
    return sum;
}

static uint16_t folded(uint32_t sum) {
    while (sum > 0xFFFF) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint16_t)sum;
}

static size_t ip_header(uint8_t *ip, int version, int protocol, unsigned source, unsigned dest,
                        size_t l4_bytes) {
    if (version == 4) {
        struct iphdr h = {.version = 4,
                          .ihl = 5,
                          .tot_len = htons((uint16_t)(20 + l4_bytes)),
                          .id = htons(0xFFFE),
                          .ttl = 64,
                          .protocol = (uint8_t)protocol,
                          .saddr = htonl(0x0A4D0000 + source + 1),
                          .daddr = htonl(0x0A4D0000 + dest + 1)};
        memcpy(ip, &h, sizeof h);
        h.check = htons((uint16_t)~folded(add_words(ip, 20)));
        memcpy(ip, &h, sizeof h);
        return 20;
    }
    struct ip6_hdr h = {0};
    h.ip6_vfc = 0x60;
    h.ip6_plen = htons((uint16_t)l4_bytes);
    h.ip6_nxt = (uint8_t)protocol;
    h.ip6_hlim = 64;
    static const uint8_t prefix[8] = {0xfd, 0x77, 0x74, 0x73};
    memcpy(&h.ip6_src, prefix, 8);
    memcpy(&h.ip6_dst, prefix, 8);
    h.ip6_src.s6_addr[14] = (uint8_t)((source + 1) >> 8);
    h.ip6_src.s6_addr[15] = (uint8_t)(source + 1);
    h.ip6_dst.s6_addr[14] = (uint8_t)((dest + 1) >> 8);
    h.ip6_dst.s6_addr[15] = (uint8_t)(dest + 1);
    memcpy(ip, &h, sizeof h);
    return 40;
}

static size_t l4_header(uint8_t *l4, int protocol, size_t payload) {
    if (protocol == TEST_UDP) {
        struct udphdr h = {
            .source = htons(1000), .dest = htons(2000), .len = htons((uint16_t)(8 + payload))};
        memcpy(l4, &h, sizeof h);
        return 8;
    }
    struct tcphdr h = {.source = htons(1000), .dest = htons(2000), .seq = htonl(0xFFFFF000)};
    h.doff = 8;
    h.ack = 1;
    h.psh = 1;
    h.fin = 1;
    memcpy(l4, &h, sizeof h);
    l4[13] |= 0x80; /* CWR */
    memset(l4 + 20, 1, 12);
    return 32;
}

void make_frame(struct test_frame *f, int version, int protocol, unsigned source, unsigned dest,
                size_t payload, unsigned segment) {
    memset(f, 0, sizeof *f);
    static const uint8_t mac[6] = {2, 0x54, 0x53, 0, 0, 1};
    memcpy(f->data, mac, 6);
    memcpy(f->data + 6, mac, 6);
    f->data[12] = version == 4 ? 0x08 : 0x86;
    f->data[13] = version == 4 ? 0x00 : 0xDD;
    uint8_t *ip = f->data + 14;
    size_t l4_bytes = (protocol == TEST_UDP ? 8 : 32) + payload;
    size_t ip_bytes = ip_header(ip, version, protocol, source, dest, l4_bytes);
    size_t header = l4_header(ip + ip_bytes, protocol, payload);
    for (size_t i = 0; i < payload; i++) {
        ip[ip_bytes + header + i] = (uint8_t)(i * 31 + (i >> 8));
    }
    f->bytes = 14 + ip_bytes + header + payload;
    uint32_t sum = version == 4 ? add_words(ip + 12, 8) : add_words(ip + 8, 32);
    uint16_t pseudo = folded(sum + (uint32_t)protocol + (uint32_t)l4_bytes);
    size_t at = protocol == TEST_UDP ? 6 : 16;
    ip[ip_bytes + at] = (uint8_t)(pseudo >> 8);
    ip[ip_bytes + at + 1] = (uint8_t)pseudo;
    f->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    f->vnet.csum_start = (uint16_t)(14 + ip_bytes);
    f->vnet.csum_offset = (uint16_t)at;
    if (segment) {
        f->vnet.gso_size = (uint16_t)segment;
        f->vnet.gso_type = protocol == TEST_UDP ? VIRTIO_NET_HDR_GSO_UDP_L4
                           : version == 4       ? VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN
                                                : VIRTIO_NET_HDR_GSO_TCPV6;
    }
}

void make_packet(struct test_frame *f, unsigned source, unsigned dest, size_t bytes) {
    make_frame(f, 4, TEST_UDP, source, dest, bytes - 28, 0);
}

void check_sums(const struct virtio_net_hdr *vnet, uint8_t *frame, size_t bytes) {
    uint8_t *ip = frame + 14;
    bool v4 = ip[0] >> 4 == 4;
    size_t ip_bytes = v4 ? 20 : 40;
    size_t l4_bytes = bytes - 14 - ip_bytes;
    if (v4) {
        CHECK_EQ(folded(add_words(ip, 20)), 0xFFFF);
    }
    if (vnet) {
        CHECK(vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM);
        CHECK_EQ(vnet->csum_start, 14 + ip_bytes);
        uint8_t *field = frame + vnet->csum_start + vnet->csum_offset;
        uint16_t sum =
            (uint16_t)~folded(add_words(frame + vnet->csum_start, bytes - vnet->csum_start));
        field[0] = (uint8_t)(sum >> 8);
        field[1] = (uint8_t)sum;
    }
    uint32_t all = v4 ? add_words(ip + 12, 8) + ip[9] : add_words(ip + 8, 32) + ip[6];
    all += (uint32_t)l4_bytes + add_words(ip + ip_bytes, l4_bytes);
    CHECK_EQ(folded(all), 0xFFFF);
}
