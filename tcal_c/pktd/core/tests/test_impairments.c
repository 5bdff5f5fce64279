/* Losses in bursts, copies, damage, packets that leave the order, and refusals: as often as asked,
 * from the seed alone, and with nothing lost or counted twice beside them. */
#include "common/tests/check.h"
#include "pktd/core/draws/impair.h"
#include "pktd/core/packets/refusal.h"
#include "pktd/tests/sim.h"

#include <math.h>

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define PLAIN "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1"

static struct test_frame frame;
static struct test_frame other;
static const struct refused_packet rule; /* REFUSED_RULE */

/* --- bursts --- */

struct counted {
    uint32_t lost;
    uint32_t in_bursts;
    uint32_t bursts;
};

enum { DRAWS = 2000000 };

static struct counted count(struct impair *impair, uint32_t loss_ppb) {
    struct counted c = {0};
    bool before = false;
    for (uint64_t n = 0; n < DRAWS; n++) {
        c.lost += impair_lost(impair, 99, false, n, loss_ppb);
        c.in_bursts += impair->in_burst[0];
        c.bursts += impair->in_burst[0] && !before;
        before = impair->in_burst[0];
    }
    return c;
}

/* Means within five deviations: of so many bursts, each of a length with its own deviation. */
static void bursts_are_as_long_and_as_many_as_asked(void) {
    static const struct {
        double loss, burst, pass, gap;
    } asked[] = {{0.01, 8, 0, 0},       {0.01, 1, 0, 0},      {0.3, 2.5, 0, 0},
                 {0.5, 40, 0, 0},       {0.9, 100, 0, 0},     {0.05, 20, 0.3, 0},
                 {0.05, 20, 0.2, 0.01}, {0.001, 1000, 0.5, 0}};
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        double dense = 1 - asked[k].pass;
        uint32_t loss = (uint32_t)lrint(asked[k].loss * PPB);
        struct impair impair = {.is = {.burst_milli = (uint64_t)lrint(asked[k].burst * 1000),
                                       .burst_pass = (uint64_t)lrint(asked[k].pass * PPB),
                                       .gap_loss = (uint64_t)lrint(asked[k].gap * PPB)}};
        impair_prepare(&impair, loss, true);
        CHECK(impair.any);
        struct counted c = count(&impair, loss);
        double share = (asked[k].loss - asked[k].gap) / (dense - asked[k].gap);
        double ends = 1 / asked[k].burst, begins = ends * share / (1 - share);
        double keep = 1 - begins - ends, wider = (1 + keep) / (1 - keep);
        double of_state = sqrt(DRAWS * share * (1 - share) * fmax(wider, 1));
        CHECK(fabs(c.in_bursts - DRAWS * share) <= 5 * of_state);
        double of_loss = sqrt(DRAWS * asked[k].loss * (1 - asked[k].loss) * fmax(wider, 1));
        CHECK(fabs(c.lost - DRAWS * asked[k].loss) <= 5 * of_loss);
        double length = (double)c.in_bursts / c.bursts;
        double of_length = asked[k].burst * sqrt(fmax(1 - ends, 0.01)) / sqrt(c.bursts);
        CHECK(fabs(length - asked[k].burst) <= 5 * of_length);
    }
}

static void without_bursts_losses_are_those_that_they_were(void) {
    struct impair impair = {0};
    impair_prepare(&impair, 300000000, true);
    CHECK(!impair.any);
    for (uint64_t n = 0; n < 1000; n++) {
        CHECK_EQ(impair_lost(&impair, 7, n % 2, n, 300000000), draw_lost(7, n % 2, n, 300000000));
    }
}

static void probes_change_no_burst(void) {
    struct impair alone = {.is = {.burst_milli = 5000}};
    impair_prepare(&alone, 200000000, true);
    struct impair beside = alone;
    uint32_t apart = 0;
    for (uint64_t n = 0; n < 5000; n++) {
        bool probe = impair_lost(&beside, 3, true, n, 200000000);
        bool packet = impair_lost(&beside, 3, false, n, 200000000);
        CHECK_EQ(packet, impair_lost(&alone, 3, false, n, 200000000));
        apart += probe != packet;
    }
    CHECK(apart > 1000);
}

static void extremes_are_themselves(void) {
    struct impair all = {.is = {.burst_milli = 4000}};
    impair_prepare(&all, PPB, true);
    struct impair none = all;
    impair_prepare(&none, 0, true);
    struct impair odd = {.is = {.burst_milli = 1, .burst_pass = PPB, .gap_loss = PPB}};
    impair_prepare(&odd, 500000000, true);
    for (uint64_t n = 0; n < 1000; n++) {
        CHECK(impair_lost(&all, 1, false, n, PPB));
        CHECK(!impair_lost(&none, 1, false, n, 0));
        impair_lost(&odd, 1, false, n, 500000000);
    }
}

/* --- on links --- */

/* One packet every `apart_ns`, with its number in its payload. */
static void send_numbered(struct sim *sim, uint32_t packets, uint64_t apart_ns) {
    for (uint32_t i = 0; i < packets; i++) {
        make_packet(&frame, 0, 1, 200);
        memcpy(frame.data + 60, &i, sizeof i);
        sim_send(sim, 0, &frame);
        sim_run(sim, sim->now_ns + apart_ns);
    }
    sim_run(sim, sim->now_ns + 10000 * MS);
}

static uint32_t number(const struct sim *sim, size_t delivery) {
    uint32_t found;
    memcpy(&found, sim->delivery[delivery].data + 60, sizeof found);
    return found;
}

static void near(double got, double wanted, double deviation) {
    CHECK(fabs(got - wanted) <= 5 * deviation);
}

static void copies_come_right_behind(void) {
    struct sim *sim = sim_first_link("duplicate=100000000 rate=8000000 queue=100000");
    send_numbered(sim, 5000, MS);
    uint64_t copies = sim_engine_stat(sim, "duplicated");
    near((double)copies, 500, sqrt(5000 * 0.1 * 0.9));
    CHECK_EQ(sim->count, 5000 + copies);
    for (size_t i = 1; i < sim->count; i++) {
        bool copy = number(sim, i) == number(sim, i - 1);
        CHECK(copy || number(sim, i) == number(sim, i - 1) + 1);
        CHECK(!copy || sim->delivery[i].at_ns == sim->delivery[i - 1].at_ns + 200000);
        copies -= copy;
    }
    CHECK_EQ(copies, 0);
    const struct link_counters *counters = &engine_link(sim->engine, 0)->count;
    CHECK_EQ(counter_get(&counters->pkts), 5000);
    CHECK_EQ(counter_get(&counters->out_pkts), sim->count);
    sim_free(sim);
}

static void a_copy_that_finds_no_room_is_a_drop(void) {
    struct sim *sim = sim_first_link("duplicate=1000000000 rate=8000 queue=250");
    make_packet(&frame, 0, 1, 200);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10000 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim_engine_stat(sim, "duplicated"), 1);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 5), 1);
    sim_free(sim);
}

static void segments_of_a_super_packet_are_copied_one_by_one(void) {
    struct sim *sim = sim_first_link("duplicate=300000000");
    make_frame(&frame, 4, TEST_TCP, 0, 1, 40 * 1448, 1448);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10000 * MS);
    uint64_t bytes = 0, headers = 0;
    for (size_t i = 0; i < sim->count; i++) {
        check_sums(&sim->delivery[i].vnet, sim->delivery[i].data, sim->delivery[i].bytes);
        bytes += sim->delivery[i].bytes;
        headers++;
    }
    uint64_t copies = sim_engine_stat(sim, "duplicated");
    CHECK(copies > 3 && copies < 25);
    CHECK_EQ(bytes - headers * 66, (40 + copies) * 1448);
    sim_free(sim);
}

static uint32_t differing_bits(const uint8_t *a, const uint8_t *b, size_t bytes, size_t *first) {
    uint32_t found = 0;
    for (size_t i = 0; i < bytes; i++) {
        for (uint8_t x = a[i] ^ b[i]; x; x &= (uint8_t)(x - 1)) {
            *first = found++ ? *first : i;
        }
    }
    return found;
}

/* Whole, as a receiver would have it: made by a link without impairments. */
static void complete(struct test_frame *f) {
    struct packet_info info, copy;
    CHECK_EQ(packet_parse(&info, &f->vnet, f->data, f->bytes), PACKET_OK);
    packet_copy(&info, f->data, 0, other.data, &copy);
    CHECK_EQ(copy.segments, 1);
    CHECK_EQ(copy.vnet.flags, 0);
    check_sums(NULL, other.data, copy.length);
    other.bytes = copy.length;
}

static void damage_is_one_bit_behind_the_ip_header(void) {
    static const int version[] = {4, 6, 4};
    static const int protocol[] = {TEST_UDP, TEST_TCP, TEST_TCP};
    for (int kind = 0; kind < 3; kind++) {
        struct sim *sim = sim_first_link("corrupt=200000000");
        make_frame(&frame, version[kind], protocol[kind], 0, 1, 333, 0);
        complete(&frame);
        for (int i = 0; i < 3000; i++) {
            sim_send(sim, 0, &frame);
        }
        sim_run(sim, T0 + 10000 * MS);
        CHECK_EQ(sim->count, 3000);
        uint64_t bad = 0;
        bool seen[2] = {false, false};
        for (size_t i = 0; i < sim->count; i++) {
            struct delivery *d = &sim->delivery[i];
            CHECK_EQ(d->bytes, other.bytes);
            if (d->vnet.flags) {
                check_sums(&d->vnet, d->data, d->bytes);
                continue;
            }
            size_t at = 0;
            CHECK_EQ(differing_bits(d->data, other.data, d->bytes, &at), 1);
            CHECK(at >= (version[kind] == 4 ? 34u : 54u));
            seen[at > 200] = true;
            bad++;
        }
        CHECK(seen[0] && seen[1]);
        CHECK_EQ(sim_engine_stat(sim, "corrupted"), bad);
        near((double)bad, 600, sqrt(3000 * 0.2 * 0.8));
        sim_free(sim);
    }
}

static void a_damaged_segment_leaves_its_neighbours_whole(void) {
    struct sim *sim = sim_first_link("corrupt=200000000");
    make_frame(&frame, 6, TEST_TCP, 0, 1, 40 * 1428, 1428);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10000 * MS);
    uint64_t payload = 0, bad = 0;
    for (size_t i = 0; i < sim->count; i++) {
        struct delivery *d = &sim->delivery[i];
        payload += d->bytes - 86;
        if (d->vnet.flags) {
            check_sums(&d->vnet, d->data, d->bytes);
        } else {
            bad++;
        }
    }
    CHECK(bad > 1 && bad < 20);
    CHECK_EQ(bad, sim_engine_stat(sim, "corrupted"));
    CHECK_EQ(payload, 40 * 1428);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    sim_free(sim);
}

/* --- order --- */

static void some_come_later_and_the_others_in_order(void) {
    struct sim *sim = sim_first_link("delay=10000000 reorder=50000000 by=5000000");
    send_numbered(sim, 4000, MS);
    CHECK_EQ(sim->count, 4000);
    uint32_t last = 0, late = 0;
    for (size_t i = 0; i < sim->count; i++) {
        uint32_t n = number(sim, i);
        uint64_t took = sim->delivery[i].at_ns - T0 - n * MS;
        CHECK(took == 10 * MS || took == 15 * MS);
        late += took == 15 * MS;
        CHECK(took == 15 * MS || n >= last);
        last = took == 10 * MS ? n : last;
        CHECK(i == 0 || sim->delivery[i].at_ns >= sim->delivery[i - 1].at_ns);
    }
    CHECK_EQ(late, sim_engine_stat(sim, "reordered"));
    near(late, 200, sqrt(4000 * 0.05 * 0.95));
    sim_free(sim);
}

/* The k-th of `count` sorted values beside the distribution's own. */
static int later(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void each_packet_may_have_a_jitter_of_its_own(void) {
    enum { PACKETS = 20000 };
    static double own[PACKETS], sorted[PACKETS];
    struct sim *sim =
        sim_first_link("delay=100000000 jitter=10000000 dist=uniform reorder=1000000000");
    send_numbered(sim, PACKETS, MS / 2);
    CHECK_EQ(sim->count, PACKETS);
    double sum = 0, product = 0;
    uint32_t overtaken = 0;
    for (size_t i = 0; i < PACKETS; i++) {
        uint32_t n = number(sim, i);
        double took = (double)(sim->delivery[i].at_ns - T0) - n * (double)MS / 2;
        own[n] = (took - 100e6) / 10e6;
        overtaken += i && number(sim, i - 1) > n;
        sum += own[n];
    }
    for (size_t i = 1; i < PACKETS; i++) {
        product += own[i] * own[i - 1];
    }
    memcpy(sorted, own, sizeof own);
    qsort(sorted, PACKETS, sizeof *sorted, later);
    double apart = 0;
    for (size_t i = 0; i < PACKETS; i++) {
        apart = fmax(apart, fabs((sorted[i] + 1) / 2 - ((double)i + 0.5) / PACKETS));
    }
    CHECK(apart < 1.95 / sqrt(PACKETS)); /* Kolmogorov and Smirnov, one time of 1,000 */
    near(sum, 0, sqrt(PACKETS / 3.0));
    near(product, 0, sqrt(PACKETS) / 3);
    CHECK(overtaken > PACKETS / 4);
    sim_free(sim);
}

static void own_jitters_have_the_distribution(void) {
    for (int dist = 0; dist < DIST_COUNT; dist++) {
        double sum = 0, squares = 0;
        enum { COUNT = 200000 };
        for (uint64_t n = 0; n < COUNT; n++) {
            double x = draw_alone(5, false, n, (enum dist)dist) / 1048576.0;
            sum += x;
            squares += x * x;
        }
        double deviation = dist == DIST_UNIFORM ? sqrt(1.0 / 3) : 1;
        near(sum / COUNT, 0, deviation / sqrt(COUNT));
        CHECK(fabs(sqrt(squares / COUNT) / deviation - 1) < 0.03);
    }
    CHECK_EQ(draw_scaled(-(1 << 19), 10000000), -5000000);
}

/* --- refusals --- */

/* What the sender hears; `sim` is the caller's to free. */
static const struct delivery *refused(struct sim *sim, int version, int protocol,
                                      unsigned segment) {
    sim_do(sim, "set 0 delay=5000000");
    sim_do(sim, "set 1 reject=1000000000"); /* behind the bridge */
    sim_do(sim, "set 3 delay=2000000");
    sim_commit(sim);
    make_frame(&frame, version, protocol, 0, 1, segment ? 10 * segment : 100, segment);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim_engine_stat(sim, "rejected"), segment ? 10 : 1);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].port, 0);
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 7 * MS); /* to the bridge and back */
    CHECK_EQ(sim->delivery[0].vnet.flags, 0);
    return &sim->delivery[0];
}

static void tcp_is_reset(void) {
    for (int version = 4; version <= 6; version += 2) {
        size_t l4 = version == 4 ? 34 : 54;
        for (unsigned segment = 0; segment <= 1000; segment += 1000) {
            struct sim *sim = sim_first_link("up=1");
            const struct delivery *d = refused(sim, version, TEST_TCP, segment);
            check_sums(NULL, d->data, d->bytes);
            CHECK_EQ(d->bytes, l4 + 20);
            CHECK(memcmp(d->data + l4, frame.data + l4 + 2, 2) == 0); /* the ports, swapped */
            CHECK(memcmp(d->data + l4 + 2, frame.data + l4, 2) == 0);
            CHECK(memcmp(d->data + l4 + 4, frame.data + l4 + 8, 4) == 0); /* what it acknowledged */
            CHECK_EQ(d->data[l4 + 13], 4);
            sim_free(sim);
        }
    }
}

static void a_connection_is_refused(void) {
    struct packet_info info;
    uint8_t made[REFUSAL_LIMIT];
    make_frame(&frame, 4, TEST_TCP, 0, 1, 0, 0);
    frame.data[34 + 13] = 2; /* SYN */
    CHECK_EQ(packet_parse(&info, &frame.vnet, frame.data, frame.bytes), PACKET_OK);
    CHECK_EQ(refusal_make(&info, frame.data, &rule, made), 54);
    check_sums(NULL, made, 54);
    CHECK_EQ(made[34 + 13], 4 + 16);
    CHECK(memcmp(made + 34 + 4, "\0\0\0\0", 4) == 0);
    CHECK(memcmp(made + 34 + 8, "\xff\xff\xf0\x01", 4) == 0); /* its number, and one for SYN */
    frame.data[34 + 13] = 4;
    CHECK_EQ(refusal_make(&info, frame.data, &rule, made), 0);
}

static void all_else_is_unreachable(void) {
    struct sim *sim = sim_first_link("up=1");
    const struct delivery *d = refused(sim, 4, TEST_UDP, 0);
    CHECK_EQ(d->bytes, 14 + 20 + 8 + 128);
    CHECK(d->data[34] == 3 && d->data[35] == 3);
    CHECK(memcmp(d->data + 42, frame.data + 14, 128) == 0);
    sim_free(sim);
    sim = sim_first_link("up=1");
    d = refused(sim, 6, TEST_UDP, 0);
    CHECK_EQ(d->bytes, 14 + 40 + 8 + 148);
    CHECK(d->data[54] == 1 && d->data[55] == 4);
    check_sums(NULL, d->data, d->bytes); /* of ICMPv6 with the pseudo header */
    sim_free(sim);
}

static void errors_and_fragments_have_no_answer(void) {
    struct packet_info info;
    uint8_t made[REFUSAL_LIMIT];
    make_frame(&frame, 4, TEST_UDP, 0, 1, 100, 0);
    frame.vnet.flags = 0;
    static const struct {
        size_t at;
        uint8_t is;
    } odd[] = {{14 + 9, 2 /* IGMP */}, {14 + 6, 0x20 /* more fragments */}, {14 + 7, 9}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        uint8_t was = frame.data[odd[i].at];
        frame.data[odd[i].at] = odd[i].is;
        CHECK_EQ(packet_parse(&info, &frame.vnet, frame.data, frame.bytes), PACKET_OK);
        CHECK_EQ(refusal_make(&info, frame.data, &rule, made), 0);
        frame.data[odd[i].at] = was;
    }
    frame.data[14 + 9] = 1; /* ICMP */
    for (int type = 0; type < 20; type++) {
        frame.data[34] = (uint8_t)type;
        CHECK_EQ(packet_parse(&info, &frame.vnet, frame.data, frame.bytes), PACKET_OK);
        bool asks = type == 8 || type == 13 || type == 15 || type == 17;
        CHECK_EQ(refusal_make(&info, frame.data, &rule, made) > 0, asks);
    }
}

static void an_answer_that_is_refused_ends_there(void) {
    struct sim *sim = sim_first_link("reject=1000000000");
    sim_do(sim, "set 1 reject=1000000000");
    sim_do(sim, "set 3 reject=1000000000");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame); /* refused at its own node, whose answer is there already */
    CHECK_EQ(sim->count, 1);
    sim_do(sim, "set 0 reject=0");
    sim_commit(sim);
    sim_send(sim, 0, &frame); /* refused at the bridge, and so is the answer */
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim_engine_stat(sim, "rejected"), 3);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    sim_free(sim);
}

static void a_share_may_be_refused(void) {
    struct sim *sim = sim_first_link("reject=300000000");
    make_packet(&frame, 0, 1, 100);
    for (int i = 0; i < 3000; i++) {
        sim_send(sim, 0, &frame);
    }
    sim_run(sim, T0 + 100 * MS);
    near((double)sim_engine_stat(sim, "rejected"), 900, sqrt(3000 * 0.3 * 0.7));
    CHECK_EQ(sim->count, 3000); /* each arrives, or its sender hears of it */
    sim_free(sim);
}

/* --- what is too large --- */

/* The bridge's link to node 1 takes packets of `mtu`. */
static struct sim *narrow(uint32_t mtu) {
    struct sim *sim = sim_first_link("delay=5000000");
    sim_do(sim, "set 1 mtu=%u", mtu);
    sim_do(sim, "set 3 delay=2000000");
    sim_commit(sim);
    return sim;
}

static void who_forbids_fragments_hears_how_large_they_may_be(void) {
    static const struct {
        int version, protocol;
        unsigned segment;
    } sent[] = {{4, TEST_UDP, 0}, {6, TEST_UDP, 0}, {4, TEST_TCP, 1448}, {6, TEST_TCP, 1428}};
    for (size_t k = 0; k < sizeof sent / sizeof *sent; k++) {
        struct sim *sim = narrow(1300);
        bool v4 = sent[k].version == 4;
        make_frame(&frame, sent[k].version, sent[k].protocol, 0, 1,
                   sent[k].segment ? 10 * sent[k].segment : 1300, sent[k].segment);
        frame.data[20] |= v4 ? 0x40 : 0; /* don't fragment */
        sim_send(sim, 0, &frame);
        sim_run(sim, T0 + 100 * MS);
        CHECK_EQ(sim->count, 1);
        const struct delivery *d = &sim->delivery[0];
        CHECK_EQ(d->port, 0);
        CHECK_EQ(d->at_ns, T0 + 7 * MS);
        const uint8_t *icmp = d->data + (v4 ? 34 : 54);
        CHECK(icmp[0] == (v4 ? 3 : 2) && icmp[1] == (v4 ? 4 : 0));
        CHECK(icmp[6] == 1300 >> 8 && icmp[7] == (1300 & 255));
        struct packet_info info, copy;
        packet_parse(&info, &frame.vnet, frame.data, frame.bytes);
        packet_copy(&info, frame.data, 0, other.data, &copy);
        CHECK(memcmp(icmp + 8, other.data + 14, 60) == 0); /* the first segment, whole */
        CHECK(d->bytes <= REFUSAL_LIMIT);
        CHECK_EQ(sim_engine_stat(sim, "too_large"), sent[k].segment ? 10 : 1);
        sim_free(sim);
    }
}

/* Puts fragments together again, in order. */
static size_t whole_again(const struct sim *sim, size_t first, size_t count, uint8_t *to) {
    size_t end = 0;
    for (size_t i = first; i < first + count; i++) {
        const uint8_t *ip = sim->delivery[i].data + 14;
        size_t place = (size_t)(((ip[6] & 31) << 8 | ip[7]) * 8),
               bytes = sim->delivery[i].bytes - 34;
        CHECK_EQ(place, end);
        CHECK_EQ((ip[6] & 0x20) != 0, i + 1 < first + count);
        CHECK_EQ((size_t)(ip[2] << 8 | ip[3]), bytes + 20);
        memcpy(to + place, ip + 20, bytes);
        end = place + bytes;
    }
    return end;
}

static void others_are_cut_into_fragments_that_fit(void) {
    static uint8_t again[70000];
    for (uint32_t mtu = 600; mtu < 1500; mtu += 77) {
        struct sim *sim = narrow(mtu);
        make_packet(&frame, 0, 1, 1500);
        complete(&frame);
        sim_send(sim, 0, &frame);
        sim_run(sim, T0 + 100 * MS);
        CHECK_EQ(sim->count, mtu < 760 ? 3 : 2);
        for (size_t i = 0; i < sim->count; i++) {
            CHECK(sim->delivery[i].bytes <= 14 + mtu && sim->delivery[i].port == 1);
        }
        CHECK_EQ(whole_again(sim, 0, sim->count, again), 1480);
        CHECK(memcmp(again, other.data + 34, 1480) == 0);
        CHECK_EQ(sim_engine_stat(sim, "too_large"), 0);
        CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
        sim_free(sim);
    }
}

static void fragments_are_cut_again(void) {
    static uint8_t again[70000];
    struct sim *sim = narrow(600);
    sim_do(sim, "set 0 mtu=1200");
    sim_commit(sim);
    make_frame(&frame, 4, TEST_UDP, 0, 1, 4 * 1400, 1400); /* each segment by itself */
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    size_t each = sim->count / 4;
    CHECK_EQ(sim->count, 4 * each);
    CHECK(each == 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(whole_again(sim, i * each, each, again), 1408);
    }
    sim_free(sim);
}

static void what_fits_goes_as_it_is(void) {
    struct sim *sim = narrow(1500);
    make_frame(&frame, 4, TEST_TCP, 0, 1, 40 * 1448, 1448);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 1); /* one super-packet */
    sim_free(sim);
}

/* Changes while packets wait and travel, some out of order: all arrive, each once, by time. */
static void changes_keep_what_is_on_its_way(void) {
    struct sim *sim = sim_first_link("delay=20000000 jitter=10000000 rate=2000000 queue=1000000 "
                                     "reorder=400000000 duplicate=100000000");
    for (uint32_t i = 0; i < 300; i++) {
        make_packet(&frame, 0, 1, 200);
        memcpy(frame.data + 60, &i, sizeof i);
        sim_send(sim, 0, &frame);
        if (i % 25 == 24) {
            sim_do(sim, "set 0 rate=%u delay=%u reorder=%u by=%u", 1000000 + i * 50000,
                   10000000 + i * 100000, i % 2 ? 0 : 500000000, i % 4 ? 0 : 3000000);
            sim_commit(sim);
        }
        sim_run(sim, sim->now_ns + MS / 4);
    }
    sim_run(sim, sim->now_ns + 10000 * MS);
    static uint32_t times[300];
    memset(times, 0, sizeof times);
    for (size_t i = 0; i < sim->count; i++) {
        CHECK(i == 0 || sim->delivery[i].at_ns >= sim->delivery[i - 1].at_ns);
        times[number(sim, i)]++;
    }
    for (int i = 0; i < 300; i++) {
        CHECK(times[i] == 1 || times[i] == 2);
    }
    CHECK_EQ(sim->count, 300 + sim_engine_stat(sim, "duplicated"));
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    sim_free(sim);
}

static void what_waits_is_lost_with_the_link(void) {
    struct sim *sim =
        sim_first_link("delay=20000000 reorder=500000000 by=9000000 duplicate=500000000");
    for (int i = 0; i < 100; i++) {
        sim_send(sim, 0, &frame);
    }
    sim_do(sim, "set 0 up=0");
    sim_commit(sim);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 7), 100 + sim_engine_stat(sim, "duplicated"));
    sim_free(sim);
}

static void a_link_that_states_none_has_none(void) {
    struct sim *sim =
        sim_first_link("burst=8000 loss=500000000 duplicate=5 corrupt=5 reorder=5 by=5");
    sim_do(sim, "link 0 0 2 " PLAIN " seed=1");
    sim_commit(sim);
    struct link *link = engine_link(sim->engine, 0);
    CHECK(!link->impair.any && link->impair.is.reorder_ns == 0);
    sim_free(sim);
}

/* A run's result may be repeated from its seed: packet by packet. */
static void seeds_repeat_packet_by_packet(void) {
    static const char *const hard = "burst=3000 loss=100000000 duplicate=100000000 "
                                    "corrupt=100000000 reorder=300000000 jitter=0 by=4000000";
    uint64_t digest[2] = {0, 0};
    for (int run = 0; run < 2; run++) {
        struct sim *sim = sim_first_link(hard);
        sim->engine->transit.digests = DIGESTS_TIMES;
        send_numbered(sim, 500, MS);
        digest[run] = counter_get(&engine_link(sim->engine, 0)->digest);
        sim_free(sim);
    }
    CHECK(digest[0] != 0);
    CHECK_EQ(digest[0], digest[1]);
}

void test_impairments(void) {
    bursts_are_as_long_and_as_many_as_asked();
    without_bursts_losses_are_those_that_they_were();
    probes_change_no_burst();
    extremes_are_themselves();
    copies_come_right_behind();
    a_copy_that_finds_no_room_is_a_drop();
    segments_of_a_super_packet_are_copied_one_by_one();
    damage_is_one_bit_behind_the_ip_header();
    a_damaged_segment_leaves_its_neighbours_whole();
    some_come_later_and_the_others_in_order();
    each_packet_may_have_a_jitter_of_its_own();
    own_jitters_have_the_distribution();
    tcp_is_reset();
    a_connection_is_refused();
    all_else_is_unreachable();
    errors_and_fragments_have_no_answer();
    an_answer_that_is_refused_ends_there();
    a_share_may_be_refused();
    who_forbids_fragments_hears_how_large_they_may_be();
    others_are_cut_into_fragments_that_fit();
    fragments_are_cut_again();
    what_fits_goes_as_it_is();
    changes_keep_what_is_on_its_way();
    what_waits_is_lost_with_the_link();
    a_link_that_states_none_has_none();
    seeds_repeat_packet_by_packet();
}
