/* Answers as firewalls and routers give them: RFC 9293 section 3.10.7.1 for TCP, RFC 792 and RFC
 * 4443 for errors, RFC 1122 section 3.2.2 and RFC 4443 section 2.4 for what is never answered. */
#include "refusal.h"

#include "pktd/core/structures/octets.h"

#include <string.h>

#include <netinet/in.h>

enum { V4 = 20, V6 = 40, TCP = 20, ICMP = 8, TTL = 64 };
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16 };
enum { QUOTED4 = 576 - V4 - ICMP, QUOTED6 = 1280 - V6 - ICMP };

static bool is_query(const struct packet_info *info, uint8_t type) {
    if (info->version == 4) {
        return type == 8 || type == 13 || type == 15 || type == 17;
    }
    return type == 128; /* above it are neighbour discovery and groups */
}

static bool has_answer(const struct packet_info *info, const uint8_t *l4, uint32_t left) {
    switch (info->protocol) {
    case IPPROTO_NONE: /* a fragment */
    case IPPROTO_FRAGMENT:
    case IPPROTO_IGMP:
        return false;
    case IPPROTO_TCP:
        return left >= TCP && !(l4[13] & RST);
    case IPPROTO_ICMP:
    case IPPROTO_ICMPV6:
        return left > 0 && is_query(info, l4[0]);
    default:
        return true;
    }
}

/* An error, or what may be one some day: nothing that asks or answers. */
static bool is_error(uint8_t version, uint8_t type) {
    if (version == 4) {
        return (type >= 3 && type <= 5) || type == 11 || type == 12 || type > 18;
    }
    return type < 128 || type == 137; /* 137: a redirect */
}

static bool is_for_one(const struct packet_info *info) {
    const uint8_t *to = info->dest, *from = info->source;
    if (info->version == 4) {
        return to[0] < 224 && from[0] != 0 && from[0] < 224; /* above are groups, and all */
    }
    static const uint8_t nobody[16];
    return to[0] != 0xff && from[0] != 0xff && memcmp(from, nobody, sizeof nobody) != 0;
}

bool refusal_is_heard(const struct packet_info *info, const uint8_t *frame) {
    const uint8_t *ip = frame + ETH_BYTES;
    uint8_t protocol = info->version == 4 ? ip[9] : info->protocol;
    uint32_t l4 = info->l4;
    if (l4 > info->length || (info->version == 4 && get16(ip + 6) & 0x1FFF)) {
        return false; /* not the first fragment */
    }
    if (protocol == IPPROTO_FRAGMENT) {
        if (l4 + 8 > info->length || get16(frame + l4 + 2) & 0xFFF8) {
            return false;
        }
        protocol = frame[l4];
        l4 += 8;
    }
    if (protocol == (info->version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) {
        return l4 < info->length && !is_error(info->version, frame[l4]) && is_for_one(info);
    }
    return is_for_one(info);
}

/* Headers up to IP, to the packet's source. */
static uint8_t *begin(const struct packet_info *info, const uint8_t *frame, const uint8_t *from,
                      uint8_t *to, uint8_t protocol, uint32_t bytes) {
    memcpy(to, frame + 6, 6);
    memcpy(to + 6, frame, 6);
    memcpy(to + 12, frame + 12, 2);
    uint8_t *ip = to + ETH_BYTES;
    if (info->version == 6) {
        memset(ip, 0, V6);
        ip[0] = 0x60;
        put16(ip + 4, bytes);
        ip[6] = protocol;
        ip[7] = TTL;
        memcpy(ip + 8, from, 16);
        memcpy(ip + 24, info->source, 16);
        return ip + V6;
    }
    memset(ip, 0, V4);
    ip[0] = 0x45;
    put16(ip + 2, V4 + bytes);
    ip[8] = TTL;
    ip[9] = protocol;
    memcpy(ip + 12, from, 4);
    memcpy(ip + 16, info->source, 4);
    put16(ip + 10, (uint16_t)~fold(sum16(ip, V4, 0)));
    return ip + V4;
}

/* Over the pseudo header, too. */
static uint16_t checksum(const struct packet_info *info, const uint8_t *to, const uint8_t *l4,
                         uint8_t protocol, uint32_t bytes) {
    const uint8_t *ip = to + ETH_BYTES;
    uint32_t sum = info->version == 4 ? sum16(ip + 12, 8, 0) : sum16(ip + 8, 32, 0);
    return (uint16_t)~fold(sum16(l4, bytes, sum + protocol + bytes));
}

static size_t reset(const struct packet_info *info, const uint8_t *frame, uint8_t *to) {
    const uint8_t *from = frame + info->l4;
    uint8_t *tcp = begin(info, frame, info->dest, to, IPPROTO_TCP, TCP);
    uint32_t header = (from[12] >> 4) * 4u, left = info->length - info->l4;
    uint32_t length = left > header ? left - header : 0;
    memset(tcp, 0, TCP);
    memcpy(tcp, from + 2, 2);
    memcpy(tcp + 2, from, 2);
    tcp[12] = TCP / 4 << 4;
    if (from[13] & ACK) {
        memcpy(tcp + 4, from + 8, 4);
        tcp[13] = RST;
    } else {
        length += (from[13] & SYN ? 1u : 0u) + (from[13] & FIN ? 1u : 0u);
        put32(tcp + 8, get32(from + 4) + length);
        tcp[13] = RST | ACK;
    }
    put16(tcp + 16, checksum(info, to, tcp, IPPROTO_TCP, TCP));
    return (size_t)(tcp + TCP - to);
}

/* Type and code, of IPv4 and of IPv6. */
static const uint8_t words[][2][2] = {[REFUSED_RULE] = {{3, 3}, {1, 4}},
                                      [REFUSED_SIZE] = {{3, 4}, {2, 0}},
                                      [REFUSED_TTL] = {{11, 0}, {3, 0}}};

static size_t error(const struct packet_info *info, const uint8_t *frame,
                    const struct refused_packet *refused, uint8_t *to) {
    bool v4 = info->version == 4;
    uint8_t protocol = v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
    uint32_t most = v4 ? QUOTED4 : QUOTED6, packet = info->length - ETH_BYTES;
    uint32_t quoted = packet < most ? packet : most;
    const uint8_t *from = refused->from ? refused->from : info->dest;
    uint8_t *icmp = begin(info, frame, from, to, protocol, ICMP + quoted);
    memset(icmp, 0, ICMP);
    memcpy(icmp, words[refused->why][!v4], 2);
    put32(icmp + 4, refused->mtu);
    memcpy(icmp + ICMP, frame + ETH_BYTES, quoted);
    uint16_t sum = v4 ? (uint16_t)~fold(sum16(icmp, ICMP + quoted, 0))
                      : checksum(info, to, icmp, protocol, ICMP + quoted);
    put16(icmp + 2, sum);
    return (size_t)(icmp + ICMP + quoted - to);
}

size_t refusal_make(const struct packet_info *info, const uint8_t *frame,
                    const struct refused_packet *refused, uint8_t *to) {
    if (refused->why != REFUSED_RULE) {
        return refusal_is_heard(info, frame) ? error(info, frame, refused, to) : 0;
    }
    if (info->l4 > info->length || !is_for_one(info) ||
        !has_answer(info, frame + info->l4, info->length - info->l4)) {
        return 0;
    }
    return info->protocol == IPPROTO_TCP ? reset(info, frame, to) : error(info, frame, refused, to);
}
