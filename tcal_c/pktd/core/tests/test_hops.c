/* Bridges that are hops: the TTL that they take, and what they answer. */
#include "common/tests/check.h"
#include "pktd/core/packets/refusal.h"
#include "pktd/tests/sim.h"

#include <string.h>

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define PLAIN "rate=0 jitter=0 loss=0 queue=0 dist=normal up=1"

enum { LAST = 4 }; /* the nodes 0, 2, 3, 4 and 1 in a row: bridges between two ends */

static struct test_frame frame;

static unsigned ttl_at(int version) {
    return version == 4 ? 14 + 8 : 14 + 7;
}

/* Instance, three bridges, instance: 1, 2, 3 and 4 ms, the same back. */
static struct sim *row(void) {
    static const int nodes[] = {0, 2, 3, 4, 1};
    struct sim *sim = sim_new(64u << 20);
    for (int i = 0; i < 5; i++) {
        int node = nodes[i];
        sim_do(sim, "node %d ip=10.77.0.%d ip6=fd77:7473::%d hop=%d", node, node + 1, node + 1,
               node > 1);
    }
    for (int i = 0; i < 2; i++) {
        sim_do(sim, "open %d netns=/x if=eth0", i);
        sim_do(sim, "bind %d %d", i, i);
    }
    for (int i = 0; i < 4; i++) {
        int a = nodes[i], b = nodes[i + 1];
        sim_do(sim, "link %d %d %d delay=%d seed=1 " PLAIN, 2 * i, a, b, 1000000 * (i + 1));
        sim_do(sim, "link %d %d %d delay=%d seed=1 " PLAIN, 2 * i + 1, b, a, 1000000 * (i + 1));
        sim_do(sim, "route %d %d 1", a, 2 * i);
        sim_do(sim, "route %d %d 0", b, 2 * i + 1);
    }
    sim_commit(sim);
    return sim;
}

static void send_with_ttl(struct sim *sim, int version, unsigned ttl) {
    make_frame(&frame, version, TEST_UDP, 0, 1, 100, 0);
    uint8_t *at = frame.data + ttl_at(version);
    packet_age(frame.data, *at - ttl); /* the checksum, too */
    sim_send(sim, 0, &frame);
}

/* From a header whose checksum is right to one whose checksum is right. */
static void any_header_stays_right(void) {
    uint32_t random = 1;
    for (int i = 0; i < 200000; i++) {
        make_packet(&frame, 0, 1, 28);
        uint8_t *ip = frame.data + 14;
        for (int k = 1; k < 20; k++) {
            random = random * 1664525u + 1013904223u;
            ip[k] = (uint8_t)(random >> 24);
        }
        ip[8] |= 1;
        ip[10] = ip[11] = 0;
        uint32_t sum = 0;
        for (int k = 0; k < 20; k += 2) {
            sum += (uint32_t)(ip[k] << 8 | ip[k + 1]);
        }
        sum = (sum & 0xFFFF) + (sum >> 16);
        uint16_t checksum = (uint16_t) ~((sum & 0xFFFF) + (sum >> 16));
        ip[10] = (uint8_t)(checksum >> 8);
        ip[11] = (uint8_t)checksum;
        uint32_t hops = random % (ip[8] + 1u), before = ip[8];
        packet_age(frame.data, hops);
        CHECK_EQ(ip[8], before - hops);
        sum = 0;
        for (int k = 0; k < 20; k += 2) {
            sum += (uint32_t)(ip[k] << 8 | ip[k + 1]);
        }
        sum = (sum & 0xFFFF) + (sum >> 16);
        CHECK_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
    }
}

static void each_bridge_takes_one(void) {
    for (int version = 4; version <= 6; version += 2) {
        struct sim *sim = row();
        send_with_ttl(sim, version, 4);
        sim_run(sim, T0 + 100 * MS);
        CHECK_EQ(sim->count, 1);
        CHECK_EQ(sim->delivery[0].port, 1);
        CHECK_EQ(sim->delivery[0].at_ns, T0 + 10 * MS);
        CHECK_EQ(sim->delivery[0].data[ttl_at(version)], 1);
        check_sums(&sim->delivery[0].vnet, sim->delivery[0].data, sim->delivery[0].bytes);
        CHECK_EQ(sim_engine_stat(sim, "expired"), 0);
        sim_free(sim);
    }
}

/* Every segment has it in its header, whether the super-packet stays whole or not. */
static void segments_have_it_too(void) {
    static const char *const change[] = {"set 0 rate=0", "set 2 rate=10000000 queue=1000000",
                                         "set 4 duplicate=1000000000"};
    for (size_t k = 0; k < sizeof change / sizeof *change; k++) {
        struct sim *sim = row();
        sim_do(sim, "%s", change[k]);
        sim_commit(sim);
        make_frame(&frame, 4, TEST_TCP, 0, 1, 5 * 1448, 1448);
        sim_send(sim, 0, &frame);
        sim_run(sim, T0 + 1000 * MS);
        CHECK(sim->count > 0);
        for (size_t i = 0; i < sim->count; i++) {
            struct delivery *d = &sim->delivery[i];
            CHECK_EQ(d->data[ttl_at(4)], frame.data[ttl_at(4)] - 3);
            check_sums(&d->vnet, d->data, d->bytes);
        }
        sim_free(sim);
    }
}

/* The nth bridge answers after the way there and back. */
static void who_has_none_left_hears_from_the_bridge(void) {
    static const uint64_t there_and_back_ms[] = {2, 6, 12};
    for (int version = 4; version <= 6; version += 2) {
        for (unsigned ttl = 1; ttl <= 3; ttl++) {
            struct sim *sim = row();
            send_with_ttl(sim, version, ttl);
            sim_run(sim, T0 + 100 * MS);
            CHECK_EQ(sim->count, 1);
            struct delivery *d = &sim->delivery[0];
            size_t head = version == 4 ? 20 : 40;
            const uint8_t *icmp = d->data + 14 + head;
            CHECK_EQ(d->port, 0);
            CHECK_EQ(d->at_ns, T0 + there_and_back_ms[ttl - 1] * MS);
            CHECK(icmp[0] == (version == 4 ? 11 : 3) && icmp[1] == 0);
            CHECK_EQ(d->data[14 + (version == 4 ? 15 : 23)], ttl + 2); /* the bridge's address */
            CHECK_EQ(d->data[ttl_at(version)], 64 - (ttl - 1));
            CHECK_EQ(icmp[8 + ttl_at(version) - 14], 1); /* as it came to the bridge */
            CHECK(memcmp(icmp + 8 + head, frame.data + 14 + head, 6) == 0);
            if (version == 6) {
                check_sums(NULL, d->data, d->bytes);
            }
            CHECK_EQ(sim_engine_stat(sim, "expired"), 1);
            CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
            sim_free(sim);
        }
    }
}

static void answers_are_lost_as_any_packet(void) {
    struct sim *sim = row();
    sim_do(sim, "set 1 loss=1000000000");
    sim_commit(sim);
    send_with_ttl(sim, 4, 2);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_EQ(sim_stat(sim, "stats links", "1 ", 6), 1);
    sim_free(sim);
}

/* Six at once, then one a second; another bridge has its own. */
static void not_everybody_hears_it(void) {
    struct sim *sim = row();
    for (int i = 0; i < 20; i++) {
        send_with_ttl(sim, 4, 1);
    }
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 6);
    CHECK_EQ(sim_engine_stat(sim, "withheld"), 14);
    send_with_ttl(sim, 4, 2);
    sim_run(sim, T0 + 20 * MS);
    CHECK_EQ(sim->count, 7);
    sim_run(sim, T0 + 1500 * MS);
    for (int i = 0; i < 20; i++) {
        send_with_ttl(sim, 4, 1);
    }
    sim_run(sim, T0 + 1600 * MS);
    CHECK_EQ(sim->count, 8);
    CHECK_EQ(sim_engine_stat(sim, "expired"), 41);
    sim_free(sim);
}

/* RFC 1122, section 3.2.2, and RFC 4443, section 2.4. */
static void errors_groups_and_fragments_are_not_answered(void) {
    static const struct {
        int version;
        size_t at;
        uint8_t is;
        bool heard;
    } odd[] = {{4, 14 + 7, 9, false},    /* a later fragment */
               {4, 14 + 6, 0x20, true},  /* the first one */
               {4, 14 + 16, 224, false}, /* to a group */
               {4, 14 + 12, 0, false},   /* from nobody */
               {6, 14 + 24, 0xff, false}};
    static const struct refused_packet expired = {.why = REFUSED_TTL};
    struct packet_info info;
    uint8_t made[REFUSAL_LIMIT];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        make_frame(&frame, odd[i].version, TEST_UDP, 0, 1, 100, 0);
        frame.data[odd[i].at] = odd[i].is;
        CHECK_EQ(packet_parse(&info, &frame.vnet, frame.data, frame.bytes), PACKET_OK);
        CHECK_EQ(refusal_make(&info, frame.data, &expired, made) > 0, odd[i].heard);
    }
    for (int version = 4; version <= 6; version += 2) {
        make_frame(&frame, version, TEST_UDP, 0, 1, 100, 0);
        frame.data[version == 4 ? 14 + 9 : 14 + 6] = version == 4 ? 1 : 58;
        for (unsigned type = 0; type < 256; type++) {
            frame.data[14 + (version == 4 ? 20 : 40)] = (uint8_t)type;
            CHECK_EQ(packet_parse(&info, &frame.vnet, frame.data, frame.bytes), PACKET_OK);
            bool error = version == 4 ? type == 3 || type == 4 || type == 5 || type == 11 ||
                                            type == 12 || type > 18
                                      : type < 128 || type == 137;
            CHECK_EQ(refusal_make(&info, frame.data, &expired, made) > 0, !error);
        }
    }
    make_frame(&frame, 6, TEST_UDP, 0, 1, 100, 0); /* fragments of IPv6 */
    frame.data[14 + 6] = 44;
    memset(frame.data + 14 + 40, 0, 8);
    frame.data[14 + 40] = 17;
    CHECK_EQ(packet_parse(&info, &frame.vnet, frame.data, frame.bytes), PACKET_OK);
    CHECK(refusal_make(&info, frame.data, &expired, made) > 0);
    frame.data[14 + 40] = 58; /* an error in it, of which there is the first part */
    frame.data[14 + 48] = 1;
    CHECK_EQ(refusal_make(&info, frame.data, &expired, made), 0);
    frame.data[14 + 43] = 8; /* the second fragment */
    CHECK_EQ(refusal_make(&info, frame.data, &expired, made), 0);
}

/* "Fragmentation needed" comes from the bridge, which has taken one before. */
static void who_is_too_large_hears_from_the_bridge(void) {
    struct sim *sim = row();
    sim_do(sim, "set 4 mtu=600");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 1400);
    frame.data[14 + 6] = 0x40;
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 1);
    const uint8_t *ip = sim->delivery[0].data + 14;
    CHECK(ip[20] == 3 && ip[21] == 4);
    CHECK_EQ(ip[15], 4); /* of node 3 */
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 6 * MS);
    sim_free(sim);
}

static void fragments_have_lost_what_the_whole_had(void) {
    struct sim *sim = row();
    sim_do(sim, "set 4 mtu=600");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 1400);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(sim->delivery[i].data[ttl_at(4)], frame.data[ttl_at(4)] - 3);
    }
    sim_free(sim);
}

/* What a link saw is what entered: its digest does not know of hops. */
static void digests_are_of_what_entered(void) {
    uint64_t digest[2];
    for (int hops = 0; hops < 2; hops++) {
        struct sim *sim = row();
        sim->engine->transit.digests = DIGESTS_TIMES;
        for (int node = 2; node <= LAST && !hops; node++) {
            sim_do(sim, "node %d", node);
        }
        sim_commit(sim);
        make_packet(&frame, 0, 1, 500);
        sim_send(sim, 0, &frame);
        sim_run(sim, T0 + 100 * MS);
        digest[hops] = counter_get(&engine_link(sim->engine, 6)->digest);
        sim_free(sim);
    }
    CHECK(digest[0] != 0);
    CHECK_EQ(digest[0], digest[1]);
}

void test_hops(void) {
    any_header_stays_right();
    each_bridge_takes_one();
    segments_have_it_too();
    who_has_none_left_hears_from_the_bridge();
    answers_are_lost_as_any_packet();
    not_everybody_hears_it();
    errors_groups_and_fragments_are_not_answered();
    who_is_too_large_hears_from_the_bridge();
    fragments_have_lost_what_the_whole_had();
    digests_are_of_what_entered();
}
