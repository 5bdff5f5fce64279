/* Multicast and broadcast: who hears them, over which links, and what becomes of their TTL. */
#include "common/tests/check.h"
#include "pktd/core/structures/groups.h"
#include "pktd/core/packets/membership.h"
#include "pktd/tests/sim.h"

#include <stdlib.h>
#include <string.h>

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define PLAIN "rate=0 jitter=0 loss=0 queue=0 dist=normal up=1"

static struct test_frame frame;

/* Instances 0, 1, 2 at bridge 5, instances 3, 4 at bridge 6 and 5--6 between them: 1 ms each.
 * Link 2k goes from the kth end to its bridge; 2k + 1 back. */
static struct sim *two_bridges(const char *bridge) {
    static const int ends[][2] = {{0, 5}, {1, 5}, {2, 5}, {3, 6}, {4, 6}, {5, 6}};
    struct sim *sim = sim_new(64u << 20);
    for (int i = 0; i < 5; i++) {
        sim_do(sim, "open %d netns=/x if=eth0", i);
        sim_do(sim, "node %d ip=10.77.0.%d ip6=fd77:7473::%d", i, i + 1, i + 1);
        sim_do(sim, "bind %d %d", i, i);
    }
    sim_do(sim, "node 5%s", bridge);
    sim_do(sim, "node 6%s", bridge);
    for (int k = 0; k < 6; k++) {
        sim_do(sim, "link %d %d %d delay=1000000 seed=%d " PLAIN, 2 * k, ends[k][0], ends[k][1], k);
        sim_do(sim, "link %d %d %d delay=1000000 seed=9 " PLAIN, 2 * k + 1, ends[k][1], ends[k][0]);
    }
    for (int i = 0; i < 5; i++) {
        sim_do(sim, "routes %d %d 0-4", i, 2 * i);
        sim_do(sim, "route %d %d %d", i < 3 ? 5 : 6, 2 * i + 1, i);
    }
    sim_do(sim, "routes 5 10 3-4");
    sim_do(sim, "routes 6 11 0-2");
    sim_commit(sim);
    return sim;
}

static uint64_t offered(struct sim *sim, uint32_t link) {
    return counter_get(&engine_link(sim->engine, link)->count.pkts);
}

static uint16_t sum_of(const uint8_t *bytes, size_t length, uint32_t sum) {
    for (size_t i = 0; i < length; i += 2) {
        sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
    }
    while (sum >> 16) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

/* An IP packet of this protocol with these bytes above it, their checksum at `at`. */
static void wrap(int version, unsigned node, uint8_t protocol, const uint8_t *bytes, size_t length,
                 size_t at) {
    make_frame(&frame, version, TEST_UDP, node, 9, length - 8, 0);
    size_t head = 14 + (version == 4 ? 20 : 40);
    frame.vnet.flags = 0;
    frame.data[version == 4 ? 14 + 9 : 14 + 6] = protocol;
    memcpy(frame.data + head, bytes, length);
    uint32_t sum = 0;
    if (version == 6) {
        sum = (uint16_t)~sum_of(frame.data + 14 + 8, 32, (uint32_t)(protocol + length));
    }
    uint16_t checksum = sum_of(frame.data + head, length, sum);
    frame.data[head + at] = (uint8_t)(checksum >> 8);
    frame.data[head + at + 1] = (uint8_t)checksum;
}

static void igmp(struct sim *sim, unsigned node, const uint8_t *bytes, size_t length) {
    wrap(4, node, 2, bytes, length, 2);
    sim_send(sim, node, &frame);
}

/* Version 2: a report or a leave. */
static void tell(struct sim *sim, unsigned node, uint8_t type, uint32_t group) {
    const uint8_t bytes[8] = {type,
                              0,
                              0,
                              0,
                              (uint8_t)(group >> 24),
                              (uint8_t)(group >> 16),
                              (uint8_t)(group >> 8),
                              (uint8_t)group};
    igmp(sim, node, bytes, sizeof bytes);
}

static void join(struct sim *sim, unsigned node, uint32_t group) {
    tell(sim, node, 0x16, group);
}

/* To an IPv4 group or to all. */
static void cast(struct sim *sim, unsigned node, uint32_t to, unsigned ttl) {
    make_frame(&frame, 4, TEST_UDP, node, 9, 100, 0);
    frame.vnet.flags = 0;
    uint8_t *ip = frame.data + 14;
    ip[8] = (uint8_t)ttl;
    ip[10] = ip[11] = 0;
    for (int i = 0; i < 4; i++) {
        ip[16 + i] = (uint8_t)(to >> (24 - 8 * i));
    }
    uint16_t checksum = sum_of(ip, 20, 0);
    ip[10] = (uint8_t)(checksum >> 8);
    ip[11] = (uint8_t)checksum;
    sim_send(sim, node, &frame);
    sim_run(sim, sim->now_ns + 10 * MS);
}

static uint32_t heard(struct sim *sim) {
    uint32_t ports = 0;
    for (size_t i = 0; i < sim->count; i++) {
        uint32_t bit = 1u << sim->delivery[i].port;
        CHECK(!(ports & bit)); /* each once */
        ports |= bit;
    }
    sim_forget(sim);
    return ports;
}

#define GROUP 0xEF010203u /* 239.1.2.3 */
#define MDNS 0xE00000FBu
#define REPORT 0x16
#define LEAVE 0x17

static void a_link_carries_a_packet_once(void) {
    struct sim *sim = two_bridges("");
    for (unsigned node = 1; node < 5; node++) {
        join(sim, node, GROUP);
    }
    cast(sim, 0, GROUP, 5);
    CHECK_EQ(heard(sim), 2 + 4 + 8 + 16);
    static const struct {
        uint32_t link;
        uint64_t pkts;
    } links[] = {{0, 1}, {10, 1}, {3, 1}, {5, 1}, {7, 1}, {9, 1}, {1, 0}, {11, 0}, {2, 0}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        CHECK_EQ(offered(sim, links[i].link), links[i].pkts);
    }
    CHECK_EQ(sim_engine_stat(sim, "group_sent"), 1);
    CHECK_EQ(sim_engine_stat(sim, "group_delivered"), 4);
    CHECK_EQ(sim_engine_stat(sim, "group_unwanted"), 0);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    sim_free(sim);
}

static void those_that_listen_hear_it(void) {
    struct sim *sim = two_bridges("");
    cast(sim, 0, GROUP, 5);
    CHECK_EQ(heard(sim), 0);
    CHECK_EQ(sim_engine_stat(sim, "group_unwanted"), 1);
    CHECK_EQ(sim_stat(sim, "stats ports", "0 ", 3), 1); /* so that it is told */
    join(sim, 0, GROUP);                                /* its kernel gives it its own */
    join(sim, 3, GROUP);
    join(sim, 3, GROUP);
    cast(sim, 0, GROUP, 5);
    CHECK_EQ(heard(sim), 8);
    tell(sim, 3, LEAVE, GROUP);
    tell(sim, 3, LEAVE, GROUP);
    cast(sim, 0, GROUP, 5);
    CHECK_EQ(heard(sim), 0);
    sim_free(sim);
}

/* Who leaves has joined nothing when it is back. */
static void who_leaves_listens_to_nothing(void) {
    struct sim *sim = two_bridges("");
    join(sim, 3, GROUP);
    join(sim, 4, GROUP);
    sim_do(sim, "bind 3 3"); /* as it is */
    sim_commit(sim);
    cast(sim, 0, GROUP, 5);
    CHECK_EQ(heard(sim), 8 + 16);
    sim_do(sim, "unbind 3");
    sim_do(sim, "close 4");
    sim_commit(sim);
    sim_do(sim, "bind 3 3");
    sim_commit(sim);
    cast(sim, 0, GROUP, 5);
    CHECK_EQ(heard(sim), 0);
    sim_free(sim);
}

static void groups_of_the_link_stay_at_the_bridge(void) {
    static const char *const bridges[] = {"", " hop=1"};
    for (int k = 0; k < 2; k++) {
        struct sim *sim = two_bridges(bridges[k]);
        for (unsigned node = 0; node < 5; node++) {
            join(sim, node, MDNS);
        }
        cast(sim, 0, MDNS, 1);
        CHECK_EQ(heard(sim), 2 + 4);
        cast(sim, 4, MDNS, 255);
        CHECK_EQ(sim->delivery[0].data[14 + 8], 255); /* nothing was taken */
        CHECK_EQ(heard(sim), 8);
        cast(sim, 1, 0xFFFFFFFF, 1);
        CHECK_EQ(heard(sim), 1 + 4);
        cast(sim, 1, 0x0A4DFFFF, 64);
        CHECK_EQ(heard(sim), 1 + 4);
        cast(sim, 1, 0xE0000001, 1); /* all hosts join without a word */
        CHECK_EQ(heard(sim), 1 + 4);
        CHECK_EQ(offered(sim, 10) + offered(sim, 11), 0);
        sim_free(sim);
    }
}

static void bridges_take_from_the_ttl_of_groups(void) {
    struct sim *sim = two_bridges(" hop=1");
    for (unsigned node = 1; node < 5; node++) {
        join(sim, node, GROUP);
    }
    cast(sim, 0, GROUP, 1);
    CHECK_EQ(heard(sim), 2 + 4); /* for its neighbours a bridge is a switch */
    CHECK_EQ(sim_engine_stat(sim, "expired"), 1);
    cast(sim, 0, GROUP, 2);
    CHECK_EQ(heard(sim), 2 + 4);
    CHECK_EQ(sim_engine_stat(sim, "expired"), 3); /* both copies, at the second bridge */
    cast(sim, 0, GROUP, 3);
    for (size_t i = 0; i < sim->count; i++) {
        struct delivery *d = &sim->delivery[i];
        CHECK_EQ(d->data[14 + 8], d->port < 3 ? 3 : 1);
        CHECK_EQ(sum_of(d->data + 14, 20, 0), 0);
    }
    CHECK_EQ(heard(sim), 2 + 4 + 8 + 16);
    CHECK_EQ(sim_engine_stat(sim, "withheld"), 0);
    sim_free(sim);
}

static void copies_meet_what_links_do(void) {
    struct sim *sim = two_bridges(" hop=1");
    for (unsigned node = 1; node < 5; node++) {
        join(sim, node, GROUP);
    }
    sim_do(sim, "set 10 loss=1000000000"); /* between the bridges */
    sim_do(sim, "set 3 up=0");
    sim_do(sim, "set 5 reject=1000000000");
    sim_commit(sim);
    cast(sim, 0, GROUP, 9);
    CHECK_EQ(heard(sim), 0); /* and nobody is told that it was rejected */
    sim_do(sim, "set 3 up=1 reject=1000000000");
    sim_commit(sim);
    cast(sim, 0, 0x0A4DFFFF, 9);
    CHECK_EQ(heard(sim), 0);
    sim_do(sim, "set 10 loss=0 corrupt=1000000000 duplicate=1000000000");
    sim_commit(sim);
    cast(sim, 0, GROUP, 9);
    CHECK_EQ(sim->count, 4); /* a damaged one and a whole one for each of both */
    sim_forget(sim);
    sim_do(sim, "set 10 corrupt=0 duplicate=0 mtu=600");
    sim_commit(sim);
    make_frame(&frame, 4, TEST_UDP, 0, 9, 1000, 0);
    memcpy(frame.data + 14 + 16, "\xef\x01\x02\x03", 4);
    sim_send(sim, 0, &frame);
    sim_run(sim, sim->now_ns + 10 * MS);
    CHECK_EQ(sim->count, 4); /* two fragments each */
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    CHECK_EQ(sim_engine_stat(sim, "drop_nobuf"), 0);
    sim_free(sim);
}

/* Segments of a super-packet to a group, over a link that serves them one by one. */
static void super_packets_go_to_groups(void) {
    struct sim *sim = two_bridges(" hop=1");
    join(sim, 3, GROUP);
    join(sim, 4, GROUP);
    sim_do(sim, "set 10 rate=1000000 queue=100000");
    sim_commit(sim);
    make_frame(&frame, 4, TEST_UDP, 0, 9, 5000, 1000);
    memcpy(frame.data + 14 + 16, "\xef\x01\x02\x03", 4);
    sim_send(sim, 0, &frame);
    sim_run(sim, sim->now_ns + 1000 * MS);
    uint32_t segments = 0;
    for (size_t i = 0; i < sim->count; i++) {
        segments += sim->delivery[i].segments;
        CHECK_EQ(sim->delivery[i].data[14 + 8], 62);
    }
    CHECK_EQ(segments, 10);
    CHECK_EQ(offered(sim, 10), 5);
    sim_free(sim);
}

static void foreign_sources_are_not_carried(void) {
    struct sim *sim = two_bridges("");
    join(sim, 1, GROUP);
    make_frame(&frame, 4, TEST_UDP, 7, 9, 100, 0);
    memcpy(frame.data + 14 + 16, "\xef\x01\x02\x03", 4);
    sim_send(sim, 0, &frame);
    sim_run(sim, sim->now_ns + 10 * MS);
    CHECK_EQ(heard(sim), 0);
    sim_free(sim);
}

/* --- IPv6 --- */

static void mld(struct sim *sim, unsigned node, const uint8_t *bytes, size_t length) {
    wrap(6, node, 58, bytes, length, 2);
    sim_send(sim, node, &frame);
}

static void cast6(struct sim *sim, unsigned node, uint8_t scope, uint8_t last) {
    make_frame(&frame, 6, TEST_UDP, node, 9, 100, 0);
    memset(frame.data + 14 + 24, 0, 16);
    frame.data[14 + 24] = 0xff;
    frame.data[14 + 25] = scope;
    frame.data[14 + 39] = last;
    sim_send(sim, node, &frame);
    sim_run(sim, sim->now_ns + 10 * MS);
}

static void ipv6_has_scopes(void) {
    struct sim *sim = two_bridges(" hop=1");
    for (uint8_t scope = 1; scope < 15; scope++) {
        for (unsigned node = 0; node < 5; node++) {
            uint8_t one[24] = {131, [8] = 0xff, [9] = scope, [23] = 0x77};
            mld(sim, node, one, sizeof one);
        }
        cast6(sim, 0, scope, 0x77);
        CHECK_EQ(heard(sim), scope < 2 ? 0 : scope == 2 ? 2 + 4 : 2 + 4 + 8 + 16);
    }
    cast6(sim, 3, 2, 1); /* all nodes of the link */
    CHECK_EQ(heard(sim), 16);
    uint8_t done[24] = {132, [8] = 0xff, [9] = 5, [23] = 0x77};
    mld(sim, 3, done, sizeof done);
    cast6(sim, 0, 5, 0x77);
    CHECK_EQ(heard(sim), 2 + 4 + 16);
    sim_free(sim);
}

/* --- sources --- */

/* Version 3: one record of this type, with sources that are nodes. */
static void report_sources(struct sim *sim, unsigned node, uint8_t type, const char *sources) {
    uint8_t bytes[64] = {0x22, [7] = 1, [8] = type, [12] = 239, 1, 2, 3};
    uint8_t count = (uint8_t)strlen(sources);
    bytes[11] = count;
    for (uint8_t i = 0; i < count; i++) {
        const uint8_t address[4] = {10, 77, 0, (uint8_t)(sources[i] - '0' + 1)};
        memcpy(bytes + 16 + 4 * i, address, 4);
    }
    igmp(sim, node, bytes, 16 + 4u * count);
}

static void sources_are_told_apart(void) {
    struct sim *sim = two_bridges(" hop=1");
    report_sources(sim, 1, 5, "0");  /* allow: node 0 alone */
    report_sources(sim, 2, 4, "0");  /* all but node 0 */
    report_sources(sim, 3, 3, "04"); /* nodes 0 and 4 alone */
    cast(sim, 0, GROUP, 9);
    CHECK_EQ(heard(sim), 2 + 8);
    CHECK_EQ(sim_engine_stat(sim, "group_filtered"), 1);
    CHECK_EQ(offered(sim, 5), 0); /* no link carries what nobody behind it hears */
    cast(sim, 4, GROUP, 9);
    CHECK_EQ(heard(sim), 4 + 8);
    report_sources(sim, 3, 6, "0"); /* block */
    report_sources(sim, 1, 6, "0"); /* which leaves it none */
    cast(sim, 0, GROUP, 9);
    CHECK_EQ(heard(sim), 0);
    CHECK_EQ(sim_engine_stat(sim, "group_unwanted"), 1);
    CHECK_EQ(sim_engine_stat(sim, "group_filtered"), 1 + 1 + 2);
    report_sources(sim, 2, 5, "0"); /* all, again */
    cast(sim, 0, GROUP, 9);
    CHECK_EQ(heard(sim), 4);
    sim_free(sim);
}

/* --- reports --- */

struct told {
    int kinds[4];
    uint32_t sources;
    uint8_t first; /* the last byte of the first source */
    struct addr last;
};

static void note(void *context, const struct membership *said) {
    struct told *told = context;
    told->kinds[said->kind]++;
    told->sources += said->count;
    told->first = said->count ? said->sources[said->group.version == 4 ? 3 : 15] : 0;
    told->last = said->group;
}

static struct told read_frame(void) {
    struct told told = {0};
    struct packet_info info;
    CHECK_EQ(packet_parse(&info, &frame.vnet, frame.data, frame.bytes), PACKET_OK);
    membership_read(&info, frame.data, note, &told);
    return told;
}

static int told_all(const struct told *told) {
    return told->kinds[0] + told->kinds[1] + told->kinds[2] + told->kinds[3];
}

/* Type of record, number of sources: what it says. */
static void records_say_who_listens(void) {
    static const struct {
        uint8_t type, sources;
        int kind; /* -1: nothing */
    } said[] = {
        {1, 0, HEARS_ONLY}, {1, 2, HEARS_ONLY}, {2, 0, HEARS_ALL_BUT}, {2, 1, HEARS_ALL_BUT},
        {3, 0, HEARS_ONLY}, {3, 1, HEARS_ONLY}, {4, 0, HEARS_ALL_BUT}, {4, 3, HEARS_ALL_BUT},
        {5, 1, HEARS_MORE}, {5, 0, HEARS_MORE}, {6, 1, HEARS_LESS},    {0, 0, -1},
        {7, 0, -1}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        for (int version = 4; version <= 6; version += 2) {
            size_t address = version == 4 ? 4 : 16, one = 4 + address * (1u + said[i].sources) + 8;
            uint8_t bytes[300] = {version == 4 ? 0x22 : 143, [7] = 2};
            for (size_t at = 8; at < 8 + 2 * one; at += one) { /* two, with two words behind */
                bytes[at] = said[i].type;
                bytes[at + 1] = 2;
                bytes[at + 3] = said[i].sources;
                bytes[at + 4] = version == 4 ? 239 : 0xff;
                bytes[at + 5] = 5;
                bytes[at + 3 + address] = at == 8 ? 3 : 4;
                bytes[at + 3 + 2 * address] = said[i].sources ? 7 : 0;
            }
            wrap(version, 0, version == 4 ? 2 : 58, bytes, 8 + 2 * one, 2);
            struct told told = read_frame();
            CHECK_EQ(told_all(&told), said[i].kind < 0 ? 0 : 2);
            CHECK(said[i].kind < 0 || told.kinds[said[i].kind] == 2);
            CHECK(said[i].kind < 0 || told.last.bytes[address - 1] == 4);
            CHECK_EQ(told.sources, said[i].kind < 0 ? 0 : 2u * said[i].sources);
            CHECK_EQ(told.first, told.sources ? 7 : 0);
            frame.data[14 + (version == 4 ? 20 : 40) + 8] ^= 1; /* the checksum is wrong now */
            told = read_frame();
            CHECK_EQ(told_all(&told), 0);
        }
    }
}

static void cut_reports_say_what_they_have(void) {
    uint8_t bytes[36] = {
        0x22, [7] = 200, [8] = 4, [12] = 239, [16] = 4, [20] = 239, [24] = 3, [27] = 2, [28] = 239};
    for (size_t length = 8; length <= 36; length += 2) { /* the third has one source of two */
        wrap(4, 0, 2, bytes, length, 2);
        struct told told = read_frame();
        CHECK_EQ(told_all(&told), length < 16 ? 0 : length < 24 ? 1 : 2);
    }
    uint8_t all[8] = {0x16, [4] = 224, [7] = 1};
    wrap(4, 0, 2, all, sizeof all, 2);
    struct told told = read_frame();
    CHECK_EQ(told_all(&told), 0); /* nobody joins all hosts */
    uint8_t single[8] = {0x16, [4] = 10, [7] = 1};
    wrap(4, 0, 2, single, sizeof single, 2);
    told = read_frame();
    CHECK_EQ(told_all(&told), 0); /* no group */
    uint8_t query[8] = {0x11, [4] = 239};
    wrap(4, 0, 2, query, sizeof query, 2);
    told = read_frame();
    CHECK_EQ(told_all(&told), 0);
}

/* --- the table, against one that is a matrix --- */

enum { GROUPS = 9, NODES = 40, SOURCES = 5 };

/* What a node hears of a group, by source. */
struct hearing {
    bool listens; /* otherwise it has never said anything, or has left */
    bool others;  /* it hears sources that nobody has named */
    bool of[SOURCES];
};

static void hear_as_said(struct hearing *h, enum membership_kind kind, const uint8_t *named,
                         uint32_t count) {
    bool begins = kind == HEARS_ALL_BUT || (kind == HEARS_ONLY && h->others);
    bool hears = kind == HEARS_ONLY || kind == HEARS_MORE;
    if ((kind == HEARS_ONLY && count == 0) || (!h->listens && kind == HEARS_LESS)) {
        *h = (struct hearing){0};
        return;
    }
    for (int i = 0; begins && i < SOURCES; i++) {
        h->of[i] = kind == HEARS_ALL_BUT;
    }
    h->others = begins ? kind == HEARS_ALL_BUT : h->others;
    for (uint32_t i = 0; i < count; i++) {
        h->of[named[4 * i + 3]] = hears;
    }
    bool any = h->others;
    for (int i = 0; i < SOURCES; i++) {
        any |= h->of[i];
    }
    *h = any ? *h : (struct hearing){0};
    h->listens = any;
}

static void check_listeners(const struct groups *g, const struct group *group,
                            const struct hearing *hearing) {
    uint32_t at = group ? group->first : 0, count = 0;
    for (uint32_t n = 0; n < NODES; n++) {
        if (hearing[n].listens) {
            CHECK(at && g->listener[at - 1].node == n);
            for (int i = 0; i <= SOURCES; i++) {
                uint8_t source[16] = {10, 0, 0, (uint8_t)i};
                bool hears = groups_hears(g, &g->listener[at - 1], source);
                CHECK_EQ(hears, i < SOURCES ? hearing[n].of[i] : hearing[n].others);
            }
            at = g->listener[at - 1].next;
            count++;
        }
    }
    CHECK_EQ(at, 0);
    CHECK_EQ(group ? group->count : 0, count);
}

static void groups_are_what_was_said(void) {
    static struct groups g;
    static struct hearing hearing[GROUPS][NODES];
    uint32_t random = 5;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t k = random >> 8 & 0xff, node = (random >> 16) % NODES;
        uint8_t named[4 * 3] = {10, [4] = 10, [8] = 10};
        for (int j = 0; j < 3; j++) {
            named[4 * j + 3] = (uint8_t)((random >> (3 + 5 * j)) % SOURCES);
        }
        struct membership said = {
            .group = {.version = 4, .bytes = {239, [3] = (uint8_t)(k % GROUPS)}},
            .kind = (enum membership_kind)(random >> 30),
            .sources = named,
            .count = (random >> 26) % 4,
        };
        if (random % 97 == 0) {
            groups_forget(&g, node);
            for (int j = 0; j < GROUPS; j++) {
                hearing[j][node] = (struct hearing){0};
            }
        } else {
            CHECK(groups_tell(&g, node, &said));
            hear_as_said(&hearing[k % GROUPS][node], said.kind, named, said.count);
        }
        check_listeners(&g, groups_find(&g, &said.group), hearing[k % GROUPS]);
    }
    CHECK(g.groups <= GROUPS && g.listeners <= GROUPS * NODES); /* places are used again */
    CHECK(g.sources <= GROUPS * NODES * SOURCES);
}

static bool joins(struct groups *g, const struct addr *group, uint32_t node) {
    return groups_tell(g, node, &(struct membership){.group = *group, .kind = HEARS_ALL_BUT});
}

static void a_full_table_refuses(void) {
    static struct groups g;
    for (uint32_t i = 0; i < GROUP_LIMIT; i++) {
        struct addr addr = {.version = 4, .bytes = {239, 0, (uint8_t)(i >> 8), (uint8_t)i}};
        CHECK(joins(&g, &addr, 1));
    }
    struct addr more = {.version = 4, .bytes = {238}}, first = {.version = 4, .bytes = {239}};
    CHECK(!joins(&g, &more, 1));
    CHECK(joins(&g, &first, 2));
    groups_forget(&g, 1);
    CHECK(joins(&g, &more, 1));
    CHECK_EQ(groups_find(&g, &first)->count, 1);
}

/* Who names more than there is room for hears all, until it leaves or says what it does not hear.
 */
static void too_many_sources_are_all(void) {
    static struct groups g;
    uint8_t named[16 * (SOURCES_MOST + 1)] = {0}, other[16] = {0xfd, [15] = 200};
    for (uint32_t i = 0; i <= SOURCES_MOST; i++) {
        named[16 * i] = 0xfd;
        named[16 * i + 15] = (uint8_t)i;
    }
    struct membership said = {.group = {.version = 6, .bytes = {0xff, 5}},
                              .kind = HEARS_ONLY,
                              .sources = named,
                              .count = SOURCES_MOST};
    CHECK(groups_tell(&g, 3, &said));
    const struct listener *one = &g.listener[groups_find(&g, &said.group)->first - 1];
    CHECK(groups_hears(&g, one, named) && !groups_hears(&g, one, other));
    said.count = SOURCES_MOST + 1;
    CHECK(groups_tell(&g, 3, &said));
    CHECK(groups_hears(&g, one, other) && one->count == 0);
    said.count = 1; /* the rest of a list that came in parts */
    CHECK(groups_tell(&g, 3, &said) && groups_hears(&g, one, other));
    said.kind = HEARS_LESS;
    CHECK(groups_tell(&g, 3, &said) && !groups_hears(&g, one, named));
    said = (struct membership){.group = said.group, .kind = HEARS_ONLY};
    CHECK(groups_tell(&g, 3, &said) && !groups_find(&g, &said.group));
    CHECK_EQ(g.sources, SOURCES_MOST); /* and all of them are free */
}

void test_many(void) {
    a_link_carries_a_packet_once();
    those_that_listen_hear_it();
    who_leaves_listens_to_nothing();
    groups_of_the_link_stay_at_the_bridge();
    bridges_take_from_the_ttl_of_groups();
    copies_meet_what_links_do();
    super_packets_go_to_groups();
    foreign_sources_are_not_carried();
    ipv6_has_scopes();
    sources_are_told_apart();
    records_say_who_listens();
    cut_reports_say_what_they_have();
    groups_are_what_was_said();
    a_full_table_refuses();
    too_many_sources_are_all();
}
