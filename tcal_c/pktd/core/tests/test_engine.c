/* The whole core: who gets what, and that nothing is lost track of. */
#include "common/tests/check.h"
#include "pktd/tests/sim.h"

#include <errno.h>

#define T0 1000000000ull
#define MS 1000000ull
#define PLAIN "rate=0 delay=1000000 jitter=0 loss=0 queue=0 dist=normal up=1"

static struct test_frame frame;

static void strangers_are_counted(void) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, PLAIN);
    make_packet(&frame, 0, 77, 100); /* nobody's address */
    sim_send(sim, 0, &frame);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 9, &frame); /* nobody's port */
    frame.data[12] = 0x88;
    sim_send(sim, 0, &frame); /* not IP */
    frame.bytes = 20;
    frame.data[12] = 0x08;
    sim_send(sim, 0, &frame); /* too short */
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_EQ(sim_engine_stat(sim, "drop_unknown"), 3);
    CHECK_EQ(sim_engine_stat(sim, "drop_malformed"), 1);
    CHECK_EQ(sim_engine_stat(sim, "rx"), 4);
    CHECK_TEXT(sim_ask(sim, "stats pairs"), "ok 0");
    sim_free(sim);
}

/* Those that nobody has joined are unknown like all that no node has, and told apart from it. What
 * kernels send by themselves is not. */
static void packets_for_many_are_counted(void) {
    static const uint8_t to[][4] = {{224, 0, 0, 251}, {239, 1, 2, 3}, {232, 1, 1, 1}};
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, PLAIN);
    for (size_t i = 0; i < 3; i++) {
        make_packet(&frame, 0, 77, 100);
        memcpy(frame.data + 14 + 16, to[i], 4);
        sim_send(sim, 0, &frame);
    }
    frame.data[14 + 9] = 2; /* IGMP */
    sim_send(sim, 0, &frame);
    make_packet(&frame, 0, 77, 100);
    sim_send(sim, 0, &frame);
    for (int header = 0; header < 2; header++) {
        make_frame(&frame, 6, TEST_UDP, 0, 77, 100, 0);
        frame.data[14 + 24] = 0xff;
        frame.data[14 + 6] = header ? 0 : frame.data[14 + 6]; /* as MLD has it */
        sim_send(sim, 0, &frame);
    }
    CHECK_EQ(sim_engine_stat(sim, "drop_unknown"), 7);
    CHECK_TEXT(sim_ask(sim, "stats ports"), "ok 1\n0 0 0 4");
    CHECK_TEXT(sim_ask(sim, "stats ports"), "ok 0");
    sim_free(sim);
}

/* From another node's address, or from one of a family that the node does not have. */
static void spoofed_sources_are_dropped_and_counted(void) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, PLAIN);
    make_packet(&frame, 1, 1, 100);
    sim_send(sim, 0, &frame);
    make_packet(&frame, 5, 1, 100);
    sim_send(sim, 0, &frame);
    make_frame(&frame, 6, TEST_UDP, 0, 1, 100, 0);
    frame.data[14 + 8 + 15] ^= 8; /* the last byte of the source */
    sim_send(sim, 0, &frame);
    make_packet(&frame, 5, 77, 100); /* to nobody: unknown, wherever it comes from */
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_EQ(sim_engine_stat(sim, "drop_spoofed"), 3);
    CHECK_EQ(sim_engine_stat(sim, "drop_unknown"), 1);
    CHECK_TEXT(sim_ask(sim, "stats pairs"), "ok 0");
    CHECK_TEXT(sim_ask(sim, "stats ports"), "ok 1\n0 3 0 0");
    CHECK_TEXT(sim_ask(sim, "stats ports"), "ok 0");
    engine_take_any_source(sim->engine);
    make_packet(&frame, 5, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 200 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim_engine_stat(sim, "drop_spoofed"), 3);
    CHECK_TEXT(sim_ask(sim, "stats ports"), "ok 0");
    sim->gone = 2;
    CHECK_TEXT(sim_ask(sim, "stats ports"), "ok 1\n1 0 1 0");
    CHECK_TEXT(sim_ask(sim, "stats ports"), "ok 0");
    sim_free(sim);
}

/* Addresses behind a node are a destination and a source as its own, by the longest prefix. */
static void a_node_leads_to_addresses_behind_it(void) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, PLAIN);
    sim_do(sim, "node 1 ip=10.77.0.2 behind=10.77.0.64/26");
    sim_commit(sim);
    make_packet(&frame, 0, 76, 100); /* 10.77.0.77 */
    sim_send(sim, 0, &frame);
    make_packet(&frame, 76, 0, 100);
    sim_send(sim, 1, &frame);
    make_packet(&frame, 0, 199, 100); /* not among them */
    sim_send(sim, 0, &frame);
    make_packet(&frame, 199, 0, 100);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 2);
    CHECK_EQ(sim->delivery[0].port, 1);
    CHECK_EQ(sim->delivery[1].port, 0);
    CHECK_EQ(sim_engine_stat(sim, "drop_unknown"), 1);
    CHECK_EQ(sim_engine_stat(sim, "drop_spoofed"), 1);
    sim_forget(sim);
    /* One that is longer wins, whichever was declared first; without one it leads to nothing. */
    sim_do(sim, "node 2 behind=10.77.0.78/32");
    sim_do(sim, "open 9 netns=/x if=eth0");
    sim_do(sim, "bind 2 9");
    sim_do(sim, "route 0 0 2");
    sim_commit(sim);
    make_packet(&frame, 0, 76, 100);
    sim_send(sim, 0, &frame);
    make_packet(&frame, 0, 77, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 200 * MS);
    CHECK_EQ(sim->count, 2);
    CHECK_EQ(sim->delivery[0].port + sim->delivery[1].port, 10);
    sim_do(sim, "node 1 ip=10.77.0.2");
    sim_commit(sim);
    make_packet(&frame, 0, 76, 100);
    sim_send(sim, 0, &frame);
    CHECK_EQ(sim_engine_stat(sim, "drop_unknown"), 2);
    CHECK_TEXT(sim_ask(sim, "node 1 behind=10.77.0.65/26"),
               "err range prefix '10.77.0.65/26' has bits beyond its length; 10.77.0.64/26 has "
               "none");
    CHECK_TEXT(sim_ask(sim, "node 1 hop=1 ip=10.77.0.2 behind=10.77.0.64/26"),
               "err syntax usage: node NODE [ip=A.B.C.D] [ip6=ADDR] [hop=0|1] [behind=CIDR] "
               "[mac=MAC], or node NODE frames=end|lan|air");
    sim_free(sim);
}

static void no_route_is_counted(void) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, PLAIN);
    sim_do(sim, "route 2 - 1");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    make_packet(&frame, 1, 0, 100);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].port, 0);
    CHECK_TEXT(sim_ask(sim, "stats pairs"), "ok 2\n0 1 1 100 0 0 0 0 0 1\n1 0 1 100 1 100 0 0 0 0");
    CHECK_TEXT(sim_ask(sim, "stats pairs"), "ok 0");
    /* A destination without a port. */
    sim_do(sim, "route 2 1 1");
    sim_do(sim, "unbind 1");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 200 * MS);
    CHECK_EQ(sim_stat(sim, "stats pairs", "0 1 ", 9), 2);
    /* To itself. */
    make_packet(&frame, 0, 0, 100);
    sim_send(sim, 0, &frame);
    CHECK_EQ(sim_stat(sim, "stats pairs", "0 0 ", 9), 1);
    sim_free(sim);
}

static void loops_end(void) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1");
    sim_do(sim, "route 2 3 1");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0);
    CHECK_EQ(sim->count, 0);
    CHECK_EQ(sim_stat(sim, "stats pairs", "0 1 ", 9), 1);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    sim_free(sim);
}

static void others_go_on_when_a_path_changes(void) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, "rate=0 delay=10000000 jitter=0 loss=0 queue=0 dist=normal up=1");
    sim_do(sim, "node 3");
    sim_do(sim, "link 4 2 3 " PLAIN " seed=5");
    sim_do(sim, "link 5 3 1 " PLAIN " seed=6");
    sim_do(sim, "route 3 5 1");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 15 * MS); /* on link 1 now */
    sim_send(sim, 0, &frame);   /* on link 0 now */
    sim_do(sim, "set 1 up=0");
    sim_do(sim, "route 2 4 1");
    sim_commit(sim);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 15 * MS + 12 * MS);
    CHECK_EQ(sim_stat(sim, "stats links", "1 ", 7), 1);
    sim_free(sim);
}

static void write_errors_are_counted(void) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, PLAIN);
    sim->deliver_error = -EAGAIN;
    make_frame(&frame, 4, TEST_TCP, 0, 1, 14480, 1448);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim_engine_stat(sim, "drop_write"), 10);
    CHECK_EQ(sim_engine_stat(sim, "tx"), 0);
    sim_free(sim);
}

static void memory_is_bounded(void) {
    struct sim *sim = sim_new(4 << 20);
    sim_pair(sim, "rate=0 delay=1000000000 jitter=0 loss=0 queue=0 dist=normal up=1");
    make_frame(&frame, 4, TEST_TCP, 0, 1, 60000, 1448);
    for (int i = 0; i < 200; i++) {
        sim_send(sim, 0, &frame);
    }
    CHECK(sim_engine_stat(sim, "pool_bytes") <= 4 << 20);
    sim_run(sim, T0 + 3000 * MS);
    CHECK(sim->count > 40 && sim->count < 60);
    size_t before = sim->count;
    /* All of it can be used again. */
    for (int i = 0; i < 200; i++) {
        sim_send(sim, 0, &frame);
    }
    sim_run(sim, T0 + 6000 * MS);
    CHECK_EQ(sim->count, 2 * before);
    sim_free(sim);
}

struct sums {
    uint64_t offered, delivered, dropped;
};

static void add_pair(void *context, uint32_t source, uint32_t dest, const struct pair *p) {
    struct sums *sums = context;
    (void)source;
    (void)dest;
    sums->offered += counter_get(&p->offered_pkts);
    sums->delivered += counter_get(&p->delivered_pkts);
    sums->dropped += counter_get(&p->drop_queue) + counter_get(&p->drop_loss) +
                     counter_get(&p->drop_down) + counter_get(&p->drop_route);
}

/* A ring of bridges with two end points, and a change to anything at any time. */
static void build_ring(struct sim *sim, uint32_t bridges) {
    for (unsigned i = 0; i < 2; i++) {
        sim_do(sim, "open %u netns=/x if=e", i);
        sim_do(sim, "node %u ip=10.77.0.%u", i, i + 1);
        sim_do(sim, "bind %u %u", i, i);
    }
    for (uint32_t b = 0; b < bridges; b++) {
        sim_do(sim, "node %u", 2 + b);
    }
    const char *properties = "rate=10000000 delay=3000000 jitter=500000 loss=10000000 queue=30000 "
                             "dist=uniform up=1";
    for (uint32_t b = 0; b < bridges; b++) {
        sim_do(sim, "link %u %u %u %s seed=%u", b, 2 + b, 2 + (b + 1) % bridges, properties, b);
        sim_do(sim, "route %u %u 0 1", 2 + b, b);
    }
    for (unsigned i = 0; i < 2; i++) {
        uint32_t bridge = 2 + i * bridges / 2;
        sim_do(sim, "link %u %u %u %s seed=9", bridges + 2 * i, i, bridge, properties);
        sim_do(sim, "link %u %u %u %s seed=8", bridges + 2 * i + 1, bridge, i, properties);
        sim_do(sim, "route %u %u %u", i, bridges + 2 * i, 1 - i);
        sim_do(sim, "route %u %u %u", bridge, bridges + 2 * i + 1, i);
    }
    sim_commit(sim);
}

static void random_change(struct sim *sim, uint32_t links, uint64_t *random) {
    uint32_t link = (uint32_t)(next_random(random) % links);
    unsigned long long value = next_random(random);
    switch (next_random(random) % 6) {
    case 0:
        sim_do(sim, "set %u up=%llu", link, value % 3 ? 1 : value % 2);
        break;
    case 1:
        sim_do(sim, "set %u rate=%llu", link, value % 4 ? value % 50000000 : 0);
        break;
    case 2:
        sim_do(sim, "set %u delay=%llu jitter=%llu dist=pareto", link, value % 5000000,
               value % 3000000);
        break;
    case 3:
        sim_do(sim, "set %u loss=%llu queue=%llu", link, value % 50000000, value % 60000);
        break;
    case 4:
        sim_do(sim, "set %u up=1", link);
        break;
    default:
        break;
    }
    sim_do(sim, "commit %llu", (unsigned long long)(sim->now_ns + value % 2000000));
}

static void nothing_is_lost_track_of(void) {
    enum { BRIDGES = 6, LINKS = BRIDGES + 4 };
    struct sim *sim = sim_new(32 << 20);
    uint64_t random = 4711;
    build_ring(sim, BRIDGES);
    for (int i = 0; i < 4000; i++) {
        unsigned from = (unsigned)(next_random(&random) % 2);
        unsigned size = 1 + (unsigned)(next_random(&random) % 20000);
        if (size % 3 == 0) {
            make_packet(&frame, from, 1 - from, 28 + size % 1470);
        } else {
            make_frame(&frame, 4, TEST_TCP, from, 1 - from, size, 1448);
        }
        sim_send(sim, from, &frame);
        if (i % 7 == 0) {
            random_change(sim, LINKS, &random);
        }
        sim_run(sim, sim->now_ns + next_random(&random) % 1000000);
        sim_forget(sim);
    }
    for (uint32_t link = 0; link < LINKS; link++) {
        sim_do(sim, "set %u up=1 rate=0", link);
    }
    sim_commit(sim);
    sim_run(sim, sim->now_ns + 10000 * MS);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    CHECK_EQ(engine_next(sim->engine), TIME_NEVER);
    struct sums sums = {0};
    pairs_report(&sim->engine->pairs, NODE_LIMIT, add_pair, &sums);
    CHECK(sums.offered > 20000 && sums.delivered > 1000);
    CHECK_EQ(sums.offered,
             sums.delivered + sums.dropped + counter_get(&sim->engine->transit.drop_nobuf));
    CHECK_EQ(sums.delivered, counter_get(&sim->engine->count.tx));
    for (uint32_t i = 0; i < LINKS; i++) {
        const struct link_counters *c = &engine_link(sim->engine, i)->count;
        CHECK_EQ(counter_get(&c->pkts), counter_get(&c->out_pkts) + counter_get(&c->drop_queue) +
                                            counter_get(&c->drop_loss) +
                                            counter_get(&c->drop_down));
    }
    sim_free(sim);
}

static void what_there_is_no_memory_for_is_counted_by_segments(void) {
    struct sim *sim = sim_new(64 << 20);
    uint8_t data[VNET_BYTES + sizeof frame.data];
    make_frame(&frame, 4, TEST_TCP, 0, 1, 10000, 1448);
    memcpy(data, &frame.vnet, VNET_BYTES);
    memcpy(data + VNET_BYTES, frame.data, frame.bytes);
    engine_lost(sim->engine, data, frame.bytes);
    CHECK_EQ(sim_engine_stat(sim, "drop_nobuf"), 7);
    engine_lost(sim->engine, data, 10); /* cut: no packet */
    CHECK_EQ(sim_engine_stat(sim, "drop_nobuf"), 8);
    sim_free(sim);
}

static struct leaving handed;

static bool take_over(void *context, uint32_t port, uint64_t at_ns, const struct leaving *leaving,
                      const struct iovec *io, int count) {
    (void)context, (void)port, (void)at_ns, (void)io, (void)count;
    handed = *leaving;
    return true;
}

/* Whoever asks meanwhile finds no packet that is neither there nor lost. */
static void what_was_handed_over_is_in_flight_until_it_is_written(void) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, PLAIN);
    sim->engine->hand_over = take_over;
    for (int error = 0; error >= -EIO; error -= EIO) {
        make_packet(&frame, 0, 1, 100);
        sim_send(sim, 0, &frame);
        sim_run(sim, sim->now_ns + 10 * MS);
        CHECK_EQ(sim_engine_stat(sim, "in_flight"), 1);
        CHECK_EQ(sim_engine_stat(sim, "tx"), error ? 1 : 0);
        engine_left(sim->engine, &handed, error);
        CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
        CHECK_EQ(sim_engine_stat(sim, "tx"), 1);
        CHECK_EQ(sim_engine_stat(sim, "drop_write"), error ? 1 : 0);
    }
    sim_free(sim);
}

static void what_is_for_a_node_has_its_mac(void) {
    static const uint8_t plain[6] = {2, 0x54, 0x53, 0, 0, 1}, own[6] = {2, 0x54, 0x53, 1, 0, 9};
    static const struct {
        const char *node;
        const uint8_t *mac;
    } cases[] = {{"", plain}, {" mac=02:54:53:01:00:09", own}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sim *sim = sim_new(64u << 20);
        sim_pair(sim, PLAIN);
        sim_do(sim, "set 0 mtu=600 duplicate=1000000000");
        sim_do(sim, "node 1 ip=10.77.0.2 ip6=fd77:7473::2%s", cases[i].node);
        sim_commit(sim);
        make_frame(&frame, 4, TEST_UDP, 0, 1, 1000, 0); /* two fragments, twice */
        sim_send(sim, 0, &frame);
        memcpy(frame.data + 14 + 16, "\xff\xff\xff\xff", 4); /* as devices without ARP send it */
        sim_send(sim, 0, &frame);
        memcpy(frame.data, "\xff\xff\xff\xff\xff\xff", 6);
        sim_send(sim, 0, &frame);
        sim_run(sim, sim->now_ns + 10 * MS);
        CHECK_EQ(sim->count, 12);
        for (size_t k = 0; k < sim->count; k++) {
            const uint8_t *data = sim->delivery[k].data;
            bool to_all = data[0] & 1;
            CHECK_EQ(to_all, k >= 8);
            CHECK(to_all || memcmp(data, cases[i].mac, 6) == 0);
            CHECK(memcmp(data + 6, plain, 6) == 0);
        }
        sim_free(sim);
    }
}

void test_engine(void) {
    what_is_for_a_node_has_its_mac();
    what_was_handed_over_is_in_flight_until_it_is_written();
    strangers_are_counted();
    spoofed_sources_are_dropped_and_counted();
    a_node_leads_to_addresses_behind_it();
    packets_for_many_are_counted();
    no_route_is_counted();
    loops_end();
    others_go_on_when_a_path_changes();
    write_errors_are_counted();
    memory_is_bounded();
    nothing_is_lost_track_of();
    what_there_is_no_memory_for_is_counted_by_segments();
}
