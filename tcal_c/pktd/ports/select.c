/* A packet matches when it goes to one station (not to a group) and to the prefix. Neighbour
 * discovery does not match: an IPv6 packet must differ from ICMPv6 in at least one bit of the next
 * header, or be an ICMPv6 message of another type. Each alternative is a filter; the first takes
 * TCP and UDP. Source: RFC 4861 section 4.
 */
#include "select.h"

#include <string.h>

#include <arpa/inet.h>

#define ICMPV6 58

/* Offsets from the beginning of the IP header. */
#define AT_STATION (-14) /* destination of the Ethernet frame */
#define AT_IPV4_DEST 16
#define AT_IPV6_NEXT 4 /* payload length, next header, hop limit */
#define AT_IPV6_DEST 24
#define AT_ICMPV6 40

/* One byte of a packet. */
struct alternative {
    uint8_t mask;
    uint8_t value;
};

/* Together: every number but 58. */
static const struct alternative not_icmpv6[] = {{0x20, 0x00}, {0x10, 0x00}, {0x08, 0x00},
                                                {0x02, 0x00}, {0x80, 0x80}, {0x40, 0x40},
                                                {0x04, 0x04}, {0x01, 0x01}};

/* Together: every number but 133 to 137. */
static const struct alternative not_discovery[] = {{0x80, 0x00}, {0xFC, 0x80}, {0xFF, 0x84},
                                                   {0xFE, 0x8A}, {0xFC, 0x8C}, {0xF0, 0x90},
                                                   {0xE0, 0xA0}, {0xC0, 0xC0}};

static void match(struct selector *s, int offset, uint32_t mask, uint32_t value) {
    s->key[s->keys++] =
        (struct tc_u32_key){.mask = htonl(mask), .val = htonl(value & mask), .off = offset};
}

static void match_prefix(struct selector *s, const struct prefix *prefix) {
    int offset = prefix->addr.version == 4 ? AT_IPV4_DEST : AT_IPV6_DEST;
    for (uint32_t word = 0; word * 32 < prefix->bits; word++) {
        uint32_t bits = prefix->bits - word * 32;
        uint32_t mask = bits >= 32 ? UINT32_MAX : ~(UINT32_MAX >> bits);
        uint32_t value;
        memcpy(&value, prefix->addr.bytes + 4 * word, sizeof value);
        match(s, offset + 4 * (int)word, mask, ntohl(value));
    }
}

static struct selector begin(const struct prefix *prefix) {
    struct selector s = {0};
    match(&s, AT_STATION, 0x01000000, 0);
    match_prefix(&s, prefix);
    return s;
}

static uint32_t select_ipv6(const struct prefix *prefix, struct selector *s) {
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof not_icmpv6 / sizeof *not_icmpv6; i++, count++) {
        s[count] = begin(prefix);
        match(&s[count], AT_IPV6_NEXT, (uint32_t)not_icmpv6[i].mask << 8,
              (uint32_t)not_icmpv6[i].value << 8);
    }
    for (size_t i = 0; i < sizeof not_discovery / sizeof *not_discovery; i++, count++) {
        s[count] = begin(prefix);
        match(&s[count], AT_IPV6_NEXT, 0xFF00, ICMPV6 << 8);
        match(&s[count], AT_ICMPV6, (uint32_t)not_discovery[i].mask << 24,
              (uint32_t)not_discovery[i].value << 24);
    }
    return count;
}

uint32_t select_prefix(const struct prefix *prefix, struct selector *s) {
    if (prefix->addr.version == 6) {
        return select_ipv6(prefix, s);
    }
    s[0] = begin(prefix);
    return 1;
}
