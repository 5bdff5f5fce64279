/* Links whose queue holds its packets: the same times as on others where nothing is dropped, and
 * what changes, ends and damages packets does what it does there. */
#include "common/tests/check.h"
#include "pktd/core/packets/ecn.h"
#include "pktd/tests/sim.h"

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define POOL (64u << 20)
#define PLAIN "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1"
#define EVERY "pkts=715827"
#define CODEL "aqm=codel;target:5000000;interval:100000000;ecn:"
#define FQ_CODEL "aqm=fq_codel;target:5000000;interval:100000000;quantum:1514;flows:1024;ecn:"
#define PIE "aqm=pie;target:15000000;tupdate:15000000;alpha:2;beta:20;ecn:"
#define RED "aqm=red;min:0;max:0;probability:20000000;avpkt:1000;burst:0;ecn:"

static struct test_frame frame;

static uint64_t of_link(struct sim *sim, int field) {
    const struct link_counters *c = &engine_link(sim->engine, 0)->count;
    const counter *fields[] = {&c->pkts, &c->out_pkts, &c->drop_queue, &c->drop_loss,
                               &c->drop_down};
    return counter_get(fields[field]);
}

enum { CAME, LEFT, NO_ROOM, LOST, DOWN };

static void send_packets(struct sim *sim, uint32_t packets, size_t bytes) {
    make_packet(&frame, 0, 1, bytes);
    for (uint32_t i = 0; i < packets; i++) {
        sim_send(sim, 0, &frame);
    }
}

/* Random single packets: to the nanosecond as in a queue whose times are computed. */
static void times_are_those_of_other_links(void) {
    static const char *const kinds[] = {
        "queue=1000000000 rate=9999991 delay=3000000 jitter=1000000",
        "queue=1000000000 rate=9999991 delay=3000000 jitter=1000000 " EVERY,
        "queue=1000000000 rate=9999991 delay=3000000 jitter=1000000 aqm=codel;target:3600000000000;"
        "interval:100000000;ecn:0"};
    static uint64_t at[2000];
    for (size_t kind = 0; kind < 3; kind++) {
        struct sim *sim = sim_first_link(kinds[kind]);
        uint64_t random = 9;
        for (int i = 0; i < 2000; i++) {
            make_packet(&frame, 0, 1, 60 + next_random(&random) % 1400);
            sim_send(sim, 0, &frame);
            sim_run(sim, sim->now_ns + next_random(&random) % 1200000);
            if (i % 500 == 250) { /* and while packets wait, the rate changes */
                sim_do(sim, "set 0 rate=%d", i % 1000 == 250 ? 4000003 : 9999991);
                sim_commit(sim);
            }
        }
        sim_run(sim, T0 + 100 * NS_PER_S);
        CHECK_EQ(sim->count, 2000);
        for (size_t i = 0; i < 2000; i++) {
            at[i] = kind == 0 ? sim->delivery[i].at_ns : at[i];
            uint64_t off = sim->delivery[i].at_ns - at[i] + 2000;
            CHECK(off <= 4000); /* a part of a nanosecond is lost with each change of the rate */
        }
        CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
        sim_free(sim);
    }
}

/* A super-packet over two such links arrives when it does over two others, its segments joined. */
static void super_packets_stay_together(void) {
    static const char *const kinds[] = {"rate=1000000000 delay=2000000 queue=1000000",
                                        "rate=1000000000 delay=2000000 queue=1000000 " EVERY,
                                        "rate=1000000000 delay=2000000 queue=1000000 " FQ_CODEL
                                        "1"};
    uint64_t last[3] = {0};
    for (size_t kind = 0; kind < 3; kind++) {
        struct sim *sim = sim_first_link(kinds[kind]);
        sim_do(sim, "set 1 %s", kinds[kind]);
        sim_commit(sim);
        make_frame(&frame, 4, TEST_TCP, 0, 1, 40 * 1448, 1448);
        sim_send(sim, 0, &frame);
        sim_run(sim, T0 + 100 * MS);
        uint32_t segments = 0;
        for (size_t i = 0; i < sim->count; i++) {
            segments += sim->delivery[i].segments;
            last[kind] = sim->delivery[i].at_ns;
        }
        CHECK_EQ(segments, 40);
        CHECK(sim->count <= 2); /* 0.48 ms of service */
        CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
        sim_free(sim);
    }
    CHECK(last[1] >= last[0] && last[1] - last[0] < 1000);
    CHECK(last[2] >= last[0] && last[2] - last[0] < 1000);
}

static void a_limit_of_packets_is_one_of_packets(void) {
    struct sim *sim = sim_first_link("rate=8000000 queue=1000000 pkts=10");
    send_packets(sim, 4, 1500);
    send_packets(sim, 20, 100);
    CHECK_EQ(of_link(sim, NO_ROOM), 14);
    sim_run(sim, T0 + 1500000); /* one is gone */
    send_packets(sim, 2, 100);
    CHECK_EQ(of_link(sim, NO_ROOM), 15);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 11);
    sim_do(sim, "set 0 pkts=0"); /* bytes count again */
    sim_commit(sim);
    send_packets(sim, 100, 100);
    CHECK_EQ(of_link(sim, NO_ROOM), 15);
    sim_run(sim, T0 + 1000 * MS);
    CHECK_EQ(sim->count, 111);
    sim_free(sim);
}

static void the_backlog_is_what_waits(void) {
    struct sim *sim = sim_first_link("rate=8000000 queue=1000000 " EVERY);
    send_packets(sim, 10, 1000);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 8), 10000);
    sim_run(sim, T0 + 3 * MS + MS / 2);
    const struct link_counters *c = &engine_link(sim->engine, 0)->count;
    uint64_t packets;
    CHECK_EQ(link_backlog(c, sim->now_ns, &packets), 6500);
    CHECK_EQ(packets, 7);
    sim_run(sim, T0 + 20 * MS);
    CHECK_EQ(link_backlog(c, sim->now_ns, &packets), 0);
    CHECK_EQ(packets, 0);
    sim_free(sim);
}

static void what_is_held_is_lost_with_the_link(void) {
    static const char *const kinds[] = {EVERY, CODEL "0", FQ_CODEL "1", PIE "0", RED "0"};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        struct sim *sim = sim_first_link("rate=8000000 delay=5000000 queue=1000000");
        sim_do(sim, "set 0 %s", kinds[kind]);
        sim_commit(sim);
        send_packets(sim, 20, 1000);
        sim_run(sim, T0 + 7 * MS + MS / 2); /* two are through, five travel, one is being sent */
        CHECK_EQ(sim->count, 2);
        sim_do(sim, "set 0 up=0");
        sim_commit(sim);
        CHECK_EQ(of_link(sim, DOWN), 18);
        CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
        sim_run(sim, T0 + 50 * MS);
        CHECK_EQ(sim->count, 2);
        sim_do(sim, "set 0 up=1");
        sim_commit(sim);
        send_packets(sim, 3, 1000);
        sim_run(sim, T0 + 100 * MS);
        CHECK_EQ(sim->count, 5);
        CHECK_EQ(sim->delivery[2].at_ns, T0 + 56 * MS);
        uint64_t packets;
        CHECK_EQ(link_backlog(&engine_link(sim->engine, 0)->count, sim->now_ns, &packets), 0);
        sim_free(sim);
    }
}

/* Twenty packets of a millisecond each, and one discipline after the other: nothing is lost, and
 * each leaves when it would have left. */
static void another_discipline_takes_over(void) {
    static const char *const kinds[] = {CODEL "0", FQ_CODEL "1",       "aqm=",  EVERY,
                                        PIE "0",   "pkts=0",           RED "1", FQ_CODEL "0",
                                        "aqm=",    EVERY " " CODEL "1"};
    struct sim *sim = sim_first_link("rate=8000000 queue=1000000");
    send_packets(sim, 20, 1000);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        sim_run(sim, T0 + (2 * kind + 1) * MS + MS / 2);
        sim_do(sim, "set 0 %s", kinds[kind]);
        sim_commit(sim);
    }
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 20);
    for (size_t i = 0; i < 20; i++) {
        CHECK_EQ(sim->delivery[i].at_ns, T0 + (i + 1) * MS);
    }
    sim_free(sim);
}

/* Without a rate nothing waits, whatever did. */
static void an_unlimited_rate_sends_what_is_held(void) {
    struct sim *sim = sim_first_link("rate=8000000 queue=1000000 " CODEL "0");
    send_packets(sim, 10, 1000);
    sim_run(sim, T0 + 2 * MS + MS / 2);
    sim_do(sim, "set 0 rate=0");
    sim_commit(sim);
    sim_run(sim, sim->now_ns);
    CHECK_EQ(sim->count, 10);
    send_packets(sim, 1, 1000);
    sim_run(sim, sim->now_ns);
    CHECK_EQ(sim->count, 11);
    sim_free(sim);
}

/* --- marks --- */

static unsigned ecn_bits(const struct delivery *d) {
    return d->data[14] >> 4 == 4 ? d->data[15] & 3 : d->data[15] >> 4 & 3;
}

static void set_capable(struct test_frame *f) {
    struct packet_info info;
    f->data[15] |= f->data[14] >> 4 == 4 ? 2 : 2 << 4;
    if (f->data[14] >> 4 == 4) { /* its checksum anew */
        uint32_t sum = 0;
        f->data[24] = f->data[25] = 0;
        for (size_t i = 14; i < 34; i += 2) {
            sum += (uint32_t)(f->data[i] << 8 | f->data[i + 1]);
        }
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = ~((sum & 0xFFFF) + (sum >> 16));
        f->data[24] = (uint8_t)(sum >> 8);
        f->data[25] = (uint8_t)sum;
    }
    CHECK_EQ(packet_parse(&info, &f->vnet, f->data, f->bytes), PACKET_OK);
    CHECK(ecn_capable(&info, f->data) && !ecn_marked(&info, f->data));
}

/* Single packets and segments of super-packets of both families: each is right, and those that are
 * marked say so; nothing else of them changes. */
static void marks_are_written(void) {
    static const struct {
        int version, protocol;
        unsigned segment;
    } sent[] = {{4, TEST_UDP, 0}, {6, TEST_UDP, 0}, {4, TEST_TCP, 1448}, {6, TEST_TCP, 1428}};
    for (size_t k = 0; k < sizeof sent / sizeof *sent; k++) {
        struct sim *sim = sim_first_link("rate=10000000 queue=10000000 " FQ_CODEL "1");
        uint32_t marks = 0, packets = 0;
        for (int i = 0; i < 400; i++) {
            size_t payload = sent[k].segment ? 4 * sent[k].segment : 1400;
            make_frame(&frame, sent[k].version, sent[k].protocol, 0, 1, payload, sent[k].segment);
            set_capable(&frame);
            sim_send(sim, 0, &frame);
            sim_run(sim, sim->now_ns + MS);
        }
        sim_run(sim, sim->now_ns + 100000 * MS);
        for (size_t i = 0; i < sim->count; i++) {
            struct delivery *d = &sim->delivery[i];
            bool marked = ecn_bits(d) == 3;
            marks += marked ? d->segments : 0;
            packets += d->segments;
            CHECK(marked || ecn_bits(d) == 2);
            check_sums(d->vnet.flags ? &d->vnet : NULL, d->data, d->bytes);
        }
        CHECK(marks > 1);
        CHECK_EQ(sim_engine_stat(sim, "marked"), marks);
        CHECK_EQ(packets, sent[k].segment ? 1600 : 400);
        CHECK_EQ(of_link(sim, NO_ROOM), 0);
        sim_free(sim);
    }
}

static void what_cannot_be_marked_is_dropped(void) {
    static const char *const kinds[] = {CODEL "1", FQ_CODEL "1", PIE "1", RED "1"};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        struct sim *sim = sim_first_link("rate=10000000 queue=400000");
        sim_do(sim, "set 0 %s", kinds[kind]);
        sim_commit(sim);
        for (int i = 0; i < 2000; i++) {
            make_packet(&frame, 0, 1, 1500);
            sim_send(sim, 0, &frame);
            sim_run(sim, sim->now_ns + MS);
        }
        sim_run(sim, sim->now_ns + 100000 * MS);
        CHECK(of_link(sim, NO_ROOM) > 3);
        CHECK_EQ(sim_engine_stat(sim, "marked"), 0);
        CHECK_EQ(of_link(sim, CAME), of_link(sim, LEFT) + of_link(sim, NO_ROOM));
        CHECK_EQ(sim->count, of_link(sim, LEFT));
        sim_free(sim);
    }
}

/* --- all together --- */

/* Random packets, impairments and changes: every segment is somewhere, once, and twice the same is
 * the same. */
static uint64_t chaos(uint64_t seed, uint64_t *marked) {
    static const char *const changes[] = {
        CODEL "1",
        FQ_CODEL "1",
        PIE "1",
        RED "1",
        "aqm=",
        "pkts=20",
        "pkts=0",
        "rate=3000000",
        "rate=20000000",
        "rate=0",
        "up=0",
        "up=1",
        "delay=0",
        "delay=20000000",
        "queue=3000",
        "queue=200000",
        "reorder=0",
        "reorder=200000000 by=1000000",
        "corrupt=0",
        "corrupt=100000000",
        "duplicate=0",
        "duplicate=100000000",
        "loss=0",
        "loss=50000000",
        "aqm=fq_codel;target:1000000;interval:2000000;quantum:300;flows:4;ecn:1",
        "aqm=codel;target:1000;interval:10000;ecn:0",
        "jitter=0",
        "jitter=3000000",
        "mtu=0",
        "mtu=600"};
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=3000000 delay=1000000 jitter=0 loss=0 queue=100000 dist=normal up=1 "
                  "aqm=codel;target:1000000;interval:2000000;ecn:1");
    uint64_t random = seed * 7919 + 1, sum = 0;
    for (int i = 0; i < 1000; i++) {
        unsigned segment = next_random(&random) % 3 ? 0 : 1000;
        int version = next_random(&random) % 2 ? 4 : 6;
        int protocol = segment || next_random(&random) % 2 ? TEST_TCP : TEST_UDP;
        make_frame(&frame, version, protocol, 0, 1,
                   segment ? 2000 + next_random(&random) % 20000 : next_random(&random) % 1400,
                   segment);
        if (next_random(&random) % 2) {
            set_capable(&frame);
        }
        sim_send(sim, 0, &frame);
        sim_run(sim, sim->now_ns + next_random(&random) % 8000000);
        if (next_random(&random) % 8 == 0) {
            sim_do(sim, "set %u %s", (unsigned)(next_random(&random) % 2),
                   changes[next_random(&random) % (sizeof changes / sizeof *changes)]);
            sim_commit(sim);
        }
    }
    sim_run(sim, sim->now_ns + 1000000 * MS);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    CHECK_EQ(sim_engine_stat(sim, "drop_nobuf"), 0);
    for (uint32_t link = 0; link < 2; link++) {
        const struct link_counters *c = &engine_link(sim->engine, link)->count;
        uint64_t gone = counter_get(&c->out_pkts) + counter_get(&c->drop_queue) +
                        counter_get(&c->drop_loss) + counter_get(&c->drop_down);
        uint64_t packets;
        CHECK(gone >= counter_get(&c->pkts)); /* copies are more */
        CHECK(gone <= counter_get(&c->pkts) + sim_engine_stat(sim, "duplicated"));
        CHECK_EQ(link_backlog(c, sim->now_ns, &packets), 0);
        CHECK_EQ(counter_get(&c->held_pkts), 0);
    }
    for (size_t i = 0; i < sim->count; i++) {
        sum = sum * 31 + sim->delivery[i].at_ns + sim->delivery[i].bytes;
    }
    *marked += sim_engine_stat(sim, "marked");
    sim_free(sim);
    return sum;
}

static void nothing_is_lost_twice_or_forgotten(void) {
    uint64_t marked = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        uint64_t once = chaos(seed, &marked);
        CHECK_EQ(chaos(seed, &marked), once);
    }
    CHECK(marked > 0);
}

/* --- the protocol --- */

static void wrong_texts_are_refused(void) {
    static const char *const wrong[] = {
        "aqm=fq",
        "aqm=codel",
        "aqm=codel;target:5000000;interval:100000000",
        "aqm=codel;interval:100000000;target:5000000;ecn:0",
        "aqm=codel;target:0;interval:100000000;ecn:0",
        "aqm=codel;target:5000000;interval:100000000;ecn:2",
        "aqm=codel;target:5000000;interval:100000000;ecn:0;flows:3",
        "aqm=fq_codel;target:5000000;interval:100000000;quantum:1514;flows:16385;ecn:1",
        "aqm=red;min:9;max:9;probability:1;avpkt:1;burst:0;ecn:0",
        "aqm=red;min:9;max:0;probability:1;avpkt:1;burst:0;ecn:0",
        "aqm=;",
        "pkts=715828"};
    struct sim *sim = sim_first_link("rate=8000000");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(strncmp(sim_ask(sim, "set 0 %s", wrong[i]), "err range ", 10) == 0);
    }
    sim_free(sim);
}

/* Where a link has no memory for its flows nothing passes it, and that is said. */
static void without_memory_nothing_passes(void) {
    struct sim *sim = sim_new(4u << 20);
    sim_pair(sim, PLAIN);
    sim_do(sim, "set 0 rate=1000000 queue=1000000 " EVERY);
    sim_commit(sim);
    send_packets(sim, 5, 100);
    for (uint32_t link = 0; link < 4; link++) {
        sim_do(sim,
               "set %u aqm=fq_codel;target:5;interval:100;quantum:1514;flows:16384;ecn:0 pkts=0",
               3 - link);
    }
    sim_commit(sim);
    send_packets(sim, 5, 100);
    sim_run(sim, T0 + 1000 * MS);
    CHECK(sim_engine_stat(sim, "drop_nobuf") >= 9);
    uint64_t lost = sim_engine_stat(sim, "drop_nobuf");
    for (uint32_t link = 0; link < 4; link++) { /* another change does not give it any */
        sim_do(sim, "set %u delay=1000000 queue=500000", link);
    }
    sim_commit(sim);
    sim_forget(sim);
    send_packets(sim, 5, 100);
    sim_run(sim, T0 + 2000 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_EQ(sim_engine_stat(sim, "drop_nobuf"), lost + 5);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    sim_free(sim);
}

void test_holding(void) {
    times_are_those_of_other_links();
    super_packets_stay_together();
    a_limit_of_packets_is_one_of_packets();
    the_backlog_is_what_waits();
    what_is_held_is_lost_with_the_link();
    another_discipline_takes_over();
    an_unlimited_rate_sends_what_is_held();
    marks_are_written();
    what_cannot_be_marked_is_dropped();
    nothing_is_lost_twice_or_forgotten();
    wrong_texts_are_refused();
    without_memory_nothing_passes();
}
