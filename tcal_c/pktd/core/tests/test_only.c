/* A link's further class of packets: which are of it, what they meet, and that all others meet what
 * they met without it. */
#include "common/tests/check.h"
#include "pktd/core/packets/fragment.h"
#include "pktd/core/structures/octets.h"
#include "pktd/tests/sim.h"

#include <math.h>

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define IP 14u   /* where the IP header begins */
#define MARK 60u /* where a packet's number is */

static struct test_frame sent;

/* --- which packets --- */

static bool is_of(const char *text, unsigned source, unsigned dest) {
    static _Alignas(64) uint8_t memory[sizeof(struct frame) + VNET_BYTES + 2000];
    struct frame *frame = (struct frame *)(void *)memory;
    struct only only;
    CHECK(only_parse(text, &only));
    CHECK(sent.bytes <= 2000);
    *frame = (struct frame){.source = (uint16_t)source, .dest = (uint16_t)dest};
    memcpy(frame_bytes(frame), sent.data, sent.bytes);
    CHECK_EQ(packet_parse(&frame->info, &sent.vnet, frame_bytes(frame), sent.bytes), PACKET_OK);
    return only_has(&only, frame);
}

static void make_ported(int version, int protocol, unsigned from, unsigned to) {
    make_frame(&sent, version, protocol, 0, 1, 100, 0);
    size_t l4 = IP + (version == 4 ? 20 : 40);
    put16(sent.data + l4, (uint16_t)from);
    put16(sent.data + l4 + 2, (uint16_t)to);
}

static void protocols_and_ports_of_either_end(void) {
    for (int version = 4; version <= 6; version += 2) {
        make_ported(version, TEST_TCP, 40000, 5432);
        CHECK(is_of("tcp;loss:1", 0, 1));
        CHECK(is_of("tcp:5432;loss:1", 0, 1));
        CHECK(is_of("tcp:40000;loss:1", 0, 1));
        CHECK(is_of("udp;tcp:5432;loss:1", 0, 1));
        CHECK(!is_of("tcp:80;loss:1", 0, 1));
        CHECK(!is_of("udp:5432;loss:1", 0, 1));
        CHECK(!is_of("udp;icmp;sctp;loss:1", 0, 1));
        make_ported(version, TEST_UDP, 53, 40000);
        CHECK(is_of("udp:53;loss:1", 0, 1));
        CHECK(!is_of("tcp:53;loss:1", 0, 1));
    }
}

static void ends_are_nodes_and_both_count(void) {
    make_ported(4, TEST_TCP, 1, 2);
    CHECK(is_of("from:0;loss:1", 0, 1));
    CHECK(is_of("from:7;from:0;loss:1", 0, 1));
    CHECK(!is_of("from:1;loss:1", 0, 1));
    CHECK(is_of("to:1;loss:1", 0, 1));
    CHECK(!is_of("from:0;to:2;loss:1", 0, 1));
    CHECK(is_of("tcp:2;from:0;to:1;loss:1", 0, 1));
    CHECK(!is_of("udp;from:0;to:1;loss:1", 0, 1));
}

static void icmp_is_that_of_both_versions(void) {
    make_frame(&sent, 4, TEST_UDP, 0, 1, 100, 0);
    sent.data[IP + 9] = 1; /* the checksum is nobody's matter here */
    CHECK(is_of("icmp;loss:1", 0, 1));
    CHECK(!is_of("udp;loss:1", 0, 1));
    make_frame(&sent, 6, TEST_UDP, 0, 1, 100, 0);
    sent.data[IP + 6] = 58;
    CHECK(is_of("icmp;loss:1", 0, 1));
    sent.data[IP + 6] = 59;
    CHECK(!is_of("icmp;loss:1", 0, 1));
}

/* All fragments of one packet are in one class: by its protocol, never by ports. */
static void fragments_have_no_ports(void) {
    for (int version = 4; version <= 6; version += 2) {
        for (unsigned offset = 0; offset <= 185; offset += 185) {
            make_ported(version, TEST_UDP, 9, 53);
            if (version == 4) {
                put16(sent.data + IP + 6, (uint16_t)(0x2000 | offset));
            } else {
                uint8_t *header = sent.data + IP + 40;
                sent.data[IP + 6] = 44;
                memset(header, 0, 8);
                header[0] = TEST_UDP;
                put16(header + 2, (uint16_t)(offset << 3 | 1));
                put16(header + 8, 9);
                put16(header + 10, 53);
            }
            CHECK(is_of("udp;loss:1", 0, 1));
            CHECK(is_of("from:0;loss:1", 0, 1));
            CHECK(!is_of("udp:53;loss:1", 0, 1));
            CHECK(!is_of("tcp;loss:1", 0, 1));
        }
    }
}

static void probes_are_of_no_class(void) {
    make_frame(&sent, 4, TEST_UDP, 0, 1, 100, 0);
    sent.data[IP + 9] = 253;
    CHECK(!is_of("from:0;loss:1", 0, 1));
}

/* --- what they meet --- */

static uint16_t port_of(uint32_t number) {
    return number % 3 == 0 ? 53 : 99;
}

static void send_number(struct sim *sim, uint32_t number, size_t bytes) {
    make_packet(&sent, 0, 1, bytes);
    put16(sent.data + IP + 22, port_of(number));
    memcpy(sent.data + MARK, &number, sizeof number);
    sim_send(sim, 0, &sent);
}

static uint32_t number_of(const struct delivery *delivery) {
    uint32_t found;
    memcpy(&found, delivery->data + MARK, sizeof found);
    return found;
}

/* An independent model: one queue for all, then a delay by class, in order within each. */
struct model {
    uint64_t free_ns;
    uint64_t last_ns[2];
};

static uint64_t model_due(struct model *model, uint64_t at_ns, uint64_t work_ns, bool apart,
                          uint64_t delay_ns) {
    model->free_ns = (model->free_ns > at_ns ? model->free_ns : at_ns) + work_ns;
    uint64_t due_ns = model->free_ns + delay_ns;
    uint64_t *last_ns = &model->last_ns[apart];
    *last_ns = due_ns > *last_ns ? due_ns : *last_ns;
    return *last_ns;
}

static void one_queue_and_two_delays(void) {
    static uint64_t due[2000];
    struct sim *sim = sim_first_link("rate=8000000 queue=1000000 delay=5000000 jitter=0 "
                                     "only=udp:53;delay:80000000");
    struct model model = {0};
    uint64_t state = 5;
    for (uint32_t i = 0; i < 2000; i++) {
        size_t bytes = 100 + next_random(&state) % 1000;
        bool apart = port_of(i) == 53;
        due[i] = model_due(&model, sim->now_ns, bytes * 1000, apart, apart ? 80 * MS : 5 * MS);
        send_number(sim, i, bytes);
        sim_run(sim, sim->now_ns + next_random(&state) % (MS / 2));
    }
    sim_run(sim, sim->now_ns + 5000 * MS);
    CHECK_EQ(sim->count, 2000);
    for (size_t i = 0; i < sim->count; i++) {
        CHECK_EQ(sim->delivery[i].at_ns, due[number_of(&sim->delivery[i])]);
        CHECK(i == 0 || sim->delivery[i].at_ns >= sim->delivery[i - 1].at_ns);
    }
    sim_free(sim);
}

/* The rest lose what they lose without it, with the same draws. */
static void losses_are_of_the_class_and_draws_stay(void) {
    static bool came[2][6000];
    memset(came, 0, sizeof came);
    for (int with = 0; with < 2; with++) {
        struct sim *sim = sim_first_link(with ? "loss=200000000 only=udp:53;loss:500000000"
                                              : "loss=200000000 only=0");
        for (uint32_t i = 0; i < 6000; i++) {
            send_number(sim, i, 200);
            sim_run(sim, sim->now_ns + MS);
        }
        for (size_t i = 0; i < sim->count; i++) {
            came[with][number_of(&sim->delivery[i])] = true;
        }
        sim_free(sim);
    }
    double lost = 0;
    for (uint32_t i = 0; i < 6000; i++) {
        CHECK(port_of(i) == 53 || came[0][i] == came[1][i]);
        lost += port_of(i) == 53 && !came[1][i];
    }
    CHECK(fabs(lost - 1000) <= 5 * sqrt(2000 * 0.25));
}

static void a_super_packet_is_of_one_class(void) {
    for (int version = 4; version <= 6; version += 2) {
        struct sim *sim = sim_first_link("delay=1000000 only=tcp;delay:9000000");
        make_frame(&sent, version, TEST_TCP, 0, 1, 40 * 1448, 1448);
        sim_send(sim, 0, &sent);
        make_frame(&sent, version, TEST_UDP, 0, 1, 100, 0);
        sim_send(sim, 0, &sent);
        sim_run(sim, T0 + 100 * MS);
        CHECK_EQ(sim->count, 2);
        CHECK_EQ(sim->delivery[0].at_ns, T0 + MS);
        CHECK_EQ(sim->delivery[0].segments, 1);
        CHECK_EQ(sim->delivery[1].at_ns, T0 + 9 * MS);
        CHECK_EQ(sim->delivery[1].segments, 40);
        sim_free(sim);
    }
}

static void the_class_is_refused_and_the_rest_passes(void) {
    struct sim *sim = sim_first_link("only=udp:53;reject:1000000000");
    for (uint32_t i = 0; i < 30; i++) {
        send_number(sim, i, 200);
    }
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim_engine_stat(sim, "rejected"), 10);
    CHECK_EQ(sim->count, 30); /* 20 of them, and 10 answers */
    sim_do(sim, "set 0 reject=1000000000 only=udp:53;reject:0");
    sim_commit(sim);
    for (uint32_t i = 0; i < 30; i++) {
        send_number(sim, i, 200);
    }
    sim_run(sim, sim->now_ns + 100 * MS);
    CHECK_EQ(sim_engine_stat(sim, "rejected"), 30);
    sim_do(sim, "set 0 reject=0 only=0");
    sim_commit(sim);
    send_number(sim, 0, 200);
    CHECK_EQ(sim_engine_stat(sim, "rejected"), 30);
    sim_free(sim);
}

/* --- changes --- */

static uint64_t arrival_of(const struct sim *sim, uint32_t number) {
    for (size_t i = 0; i < sim->count; i++) {
        if (number_of(&sim->delivery[i]) == number) {
            return sim->delivery[i].at_ns;
        }
    }
    return 0;
}

/* Numbers divisible by 3 are of the class. */
static void a_class_that_begins_keeps_its_order(void) {
    struct sim *sim = sim_first_link("delay=50000000");
    send_number(sim, 3, 200);
    send_number(sim, 4, 200);
    sim_run(sim, T0 + MS);
    sim_do(sim, "set 0 only=udp:53;delay:1000000");
    sim_commit(sim);
    send_number(sim, 6, 200);
    send_number(sim, 7, 200);
    sim_run(sim, T0 + 500 * MS);
    CHECK_EQ(sim->count, 4);
    CHECK_EQ(arrival_of(sim, 3), T0 + 50 * MS);
    CHECK_EQ(arrival_of(sim, 6), T0 + 50 * MS); /* behind 3 */
    CHECK_EQ(arrival_of(sim, 7), T0 + 51 * MS);
    CHECK_EQ(number_of(&sim->delivery[0]), 3);
    sim_free(sim);
}

static void a_class_that_ends_holds_nobody_up(void) {
    struct sim *sim = sim_first_link("delay=5000000 only=udp:53;delay:300000000");
    send_number(sim, 3, 200);
    sim_run(sim, T0 + MS);
    sim_do(sim, "set 0 only=0");
    sim_commit(sim);
    send_number(sim, 4, 200);
    send_number(sim, 6, 200);
    sim_run(sim, T0 + 500 * MS);
    CHECK_EQ(arrival_of(sim, 4), T0 + 6 * MS);
    CHECK_EQ(arrival_of(sim, 6), T0 + 6 * MS);
    CHECK_EQ(arrival_of(sim, 3), T0 + 300 * MS);
    sim_free(sim);
}

/* What waits in the queue when a class begins or ends is served as before, and then takes its new
 * delay, in the order of the queue. */
static void what_waits_changes_its_delay_and_not_its_turn(void) {
    struct sim *sim = sim_first_link("rate=1600000 queue=100000 delay=1000000");
    for (uint32_t i = 0; i < 6; i++) {
        send_number(sim, i, 200); /* 1 ms each */
    }
    sim_do(sim, "set 0 only=udp:53;delay:30000000");
    sim_commit(sim);
    sim_run(sim, T0 + 1500000);
    sim_do(sim, "set 0 rate=800000"); /* what is left takes twice as long, in both classes */
    sim_commit(sim);
    sim_run(sim, T0 + 2500000);
    sim_do(sim, "set 0 only=0");
    sim_commit(sim);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 6);
    CHECK_EQ(arrival_of(sim, 0), T0 + 31 * MS); /* was on its way */
    CHECK_EQ(arrival_of(sim, 1), T0 + 2500000 + MS);
    for (uint32_t i = 2; i < 6; i++) {
        CHECK_EQ(arrival_of(sim, i), T0 + 2500000 + 2 * (i - 1) * MS + MS);
    }
    sim_free(sim);
}

/* A link whose queue holds its packets, and one that goes down with both classes on it. */
static void with_an_aqm_and_down(void) {
    struct sim *sim = sim_first_link("rate=1600000 queue=100000 delay=1000000 pkts=100 "
                                     "only=udp:53;delay:30000000");
    for (uint32_t i = 0; i < 6; i++) {
        send_number(sim, i, 200);
    }
    sim_run(sim, T0 + 100 * MS);
    for (uint32_t i = 0; i < 6; i++) {
        uint64_t delay = port_of(i) == 53 ? 30 * MS : MS;
        CHECK_EQ(arrival_of(sim, i), T0 + (i + 1) * MS + delay);
    }
    sim_forget(sim);
    for (uint32_t i = 0; i < 6; i++) {
        send_number(sim, i, 200);
    }
    sim_run(sim, sim->now_ns + 3500000);
    sim_do(sim, "set 0 up=0");
    sim_commit(sim);
    sim_run(sim, sim->now_ns + 100 * MS);
    CHECK_EQ(sim->count, 1); /* the second, of the usual class */
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    CHECK_EQ(counter_get(&engine_link(sim->engine, 0)->count.drop_down), 5);
    sim_free(sim);
}

static void texts_are_strict(void) {
    static const char *const bad[] = {"",
                                      "udp",
                                      "loss:1",
                                      "udp;loss",
                                      "udp;loss:",
                                      "udp;loss:1;",
                                      "udp;loss:1;tcp",
                                      "udp:0;loss:1",
                                      "icmp:1;loss:1",
                                      "udp:65536;loss:1",
                                      "from:65536;loss:1",
                                      "from;loss:1",
                                      "udp;loss:1;loss:1",
                                      "udp;loss:1000000001",
                                      "http;loss:1",
                                      "udp;delay:18446744073709551615"};
    struct only only;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!only_parse(bad[i], &only));
    }
    CHECK(only_parse("udp;from:65534;to:0;delay:86400000000000;jitter:0;loss:0;reject:1000000000",
                     &only));
    struct sim *sim = sim_first_link("only=udp;loss:1");
    CHECK_TEXT(sim_ask(sim, "set 0 only=udp"), "err range only 'udp' is no class of packets");
    const struct only *first = engine_link(sim->engine, 0)->only;
    sim_do(sim, "set 0 only=tcp;loss:1");
    sim_do(sim, "set 0 only=udp;loss:1");
    sim_commit(sim);
    CHECK(engine_link(sim->engine, 0)->only == first); /* each is kept once */
    sim_free(sim);
}

void test_only(void) {
    protocols_and_ports_of_either_end();
    ends_are_nodes_and_both_count();
    icmp_is_that_of_both_versions();
    fragments_have_no_ports();
    probes_are_of_no_class();
    one_queue_and_two_delays();
    losses_are_of_the_class_and_draws_stay();
    a_super_packet_is_of_one_class();
    the_class_is_refused_and_the_rest_passes();
    a_class_that_begins_keeps_its_order();
    a_class_that_ends_holds_nobody_up();
    what_waits_changes_its_delay_and_not_its_turn();
    with_an_aqm_and_down();
    texts_are_strict();
}
