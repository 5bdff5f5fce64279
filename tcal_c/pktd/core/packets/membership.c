/* Reports of membership: RFC 1112, RFC 2236 and RFC 3376 (IGMP), RFC 2710 and RFC 3810 (MLD).
 *
 * Version 3 of IGMP and version 2 of MLD have a list of records, a group with some of its sources
 * each. The older ones know no sources: a host has joined, which is to hear all but none, or has
 * left, which is to hear none. Hosts repeat what they say without being asked, so nobody has to ask
 * here.
 */
#include "membership.h"

#include "pktd/core/structures/octets.h"

#include <string.h>

#include <netinet/in.h>

enum { HEAD = 8 }; /* before the group, or before the records */
enum { V1_REPORT = 0x12, V2_REPORT = 0x16, V2_LEAVE = 0x17, V3_REPORT = 0x22 };
enum { MLD_REPORT = 131, MLD_DONE = 132, MLD2_REPORT = 143 };
enum { IS_INCLUDE = 1, IS_EXCLUDE, TO_INCLUDE, TO_EXCLUDE, ALLOW, BLOCK };

struct report {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t address_bytes;
    membership_visit *visit;
    void *context;
};

/* Not the group of all hosts, which nobody joins, nor those of neighbour discovery. */
static bool is_reported(const struct addr *group) {
    static const uint8_t solicited[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
    static const uint8_t all4[4] = {224, 0, 0, 1};
    static const uint8_t all6[16] = {[0] = 0xff, [1] = 2, [15] = 1};
    const uint8_t *bytes = group->bytes;
    if (group->version == 4) {
        return bytes[0] >> 4 == 14 && memcmp(bytes, all4, sizeof all4) != 0;
    }
    return bytes[0] == 0xff && memcmp(bytes, solicited, sizeof solicited) != 0 &&
           memcmp(bytes, all6, sizeof all6) != 0;
}

/* Of the group at `at`. */
static void tell(const struct report *r, uint32_t at, enum membership_kind kind,
                 const uint8_t *sources, uint32_t count) {
    struct membership said = {.group.version = r->address_bytes == 4 ? 4 : 6,
                              .kind = kind,
                              .sources = sources,
                              .count = count};
    memcpy(said.group.bytes, r->bytes + at, r->address_bytes);
    if (is_reported(&said.group)) {
        r->visit(r->context, &said);
    }
}

static void single(const struct report *r, uint32_t at, bool listens) {
    if (at + r->address_bytes <= r->length) {
        tell(r, at, listens ? HEARS_ALL_BUT : HEARS_ONLY, NULL, 0);
    }
}

/* Type, length of other data in words, number of sources, group, sources, other data. */
static void records(const struct report *r) {
    static const enum membership_kind kinds[] = {
        [IS_INCLUDE] = HEARS_ONLY,    [IS_EXCLUDE] = HEARS_ALL_BUT, [TO_INCLUDE] = HEARS_ONLY,
        [TO_EXCLUDE] = HEARS_ALL_BUT, [ALLOW] = HEARS_MORE,         [BLOCK] = HEARS_LESS};
    uint32_t count = get16(r->bytes + 6), at = HEAD;
    while (count-- && at + 4 + r->address_bytes <= r->length) {
        uint8_t type = r->bytes[at];
        uint32_t sources = get16(r->bytes + at + 2), first = at + 4 + r->address_bytes;
        uint32_t end = first + r->address_bytes * sources;
        if (end > r->length) {
            return;
        }
        if (type >= IS_INCLUDE && type <= BLOCK) {
            tell(r, at + 4, kinds[type], r->bytes + first, sources);
        }
        at = end + 4u * r->bytes[at + 1];
    }
}

static void igmp(const struct report *r) {
    if (fold(sum16(r->bytes, r->length, 0)) != 0xFFFF) {
        return;
    }
    switch (r->bytes[0]) {
    case V1_REPORT:
    case V2_REPORT:
    case V2_LEAVE:
        single(r, 4, r->bytes[0] != V2_LEAVE);
        break;
    case V3_REPORT:
        records(r);
        break;
    default: /* a query, or another protocol of routers */
        break;
    }
}

static void mld(const struct report *r, const uint8_t *addresses) {
    uint32_t sum = sum16(addresses, 32, IPPROTO_ICMPV6 + r->length);
    if (fold(sum16(r->bytes, r->length, sum)) != 0xFFFF) {
        return;
    }
    switch (r->bytes[0]) {
    case MLD_REPORT:
    case MLD_DONE:
        single(r, HEAD, r->bytes[0] == MLD_REPORT);
        break;
    case MLD2_REPORT:
        records(r);
        break;
    default:
        break;
    }
}

void membership_read(const struct packet_info *info, const uint8_t *frame, membership_visit *visit,
                     void *context) {
    uint32_t l4 = info->l4;
    if (l4 + HEAD > info->length || info->length - l4 > UINT16_MAX) {
        return;
    }
    const struct report report = {.bytes = frame + info->l4,
                                  .length = info->length - info->l4,
                                  .address_bytes = info->version == 4 ? 4 : 16,
                                  .visit = visit,
                                  .context = context};
    if (info->version == 4 && info->protocol == IPPROTO_IGMP) {
        igmp(&report);
    } else if (info->version == 6 && info->protocol == IPPROTO_ICMPV6) {
        mld(&report, frame + ETH_BYTES + 8);
    }
}
