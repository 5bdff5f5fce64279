/* Staging: all or nothing, at the right time, in the right order. */
#include "common/tests/check.h"
#include "pktd/tests/sim.h"

#define T0 1000000000ull
#define MS 1000000ull
#define PLAIN "rate=0 delay=1000000 jitter=0 loss=0 queue=0 dist=normal up=1"

static struct test_frame frame;

static void nothing_happens_before_the_commit(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_pair(sim, PLAIN);
    sim_do(sim, "set 0 up=0");
    sim_do(sim, "route 2 - 1");
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 1);
    sim_commit(sim);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 20 * MS);
    CHECK_EQ(sim->count, 1);
    sim_free(sim);
}

static void abort_takes_everything_back(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_pair(sim, PLAIN);
    sim_do(sim, "set 0 up=0");
    sim_do(sim, "node 0 ip=10.77.0.99");
    sim_do(sim, "node 9 ip=10.77.0.1");
    sim_do(sim, "link 9 0 9 " PLAIN " seed=1");
    CHECK_TEXT(sim_ask(sim, "abort"), "ok");
    CHECK_TEXT(sim_ask(sim, "bind 9 0"), "err unknown node 9 is not declared");
    CHECK_TEXT(sim_ask(sim, "set 9 up=0"), "err unknown link 9 is not declared");
    CHECK_TEXT(sim_ask(sim, "node 9 ip=10.77.0.1"),
               "err conflict node 9: its IPv4 address belongs to node 0 already");
    CHECK_TEXT(sim_ask(sim, "node 9 ip=10.77.0.99"), "ok");
    sim_do(sim, "abort");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 1);
    sim_free(sim);
}

static void a_refused_command_stages_nothing(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_pair(sim, PLAIN);
    CHECK(strncmp(sim_ask(sim, "route 2 - 1 77"), "err", 3) == 0);
    CHECK(strncmp(sim_ask(sim, "set 0 up=0 rate=x"), "err", 3) == 0);
    CHECK(strncmp(sim_ask(sim, "node 1 ip=10.77.0.1"), "err", 3) == 0);
    sim_commit(sim);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 1);
    sim_free(sim);
}

/* Batches go by time, then by number, whatever the order of their commits. */
static void times_decide(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_pair(sim, PLAIN);
    sim_do(sim, "set 0 delay=7000000");
    sim_do(sim, "commit %llu", T0 + 30 * MS);
    sim_do(sim, "set 0 delay=5000000");
    sim_do(sim, "commit %llu", T0 + 20 * MS);
    sim_do(sim, "set 0 delay=6000000");
    sim_do(sim, "commit %llu", T0 + 20 * MS);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 25 * MS);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 35 * MS);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 99 * MS);
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 2 * MS);
    CHECK_EQ(sim->delivery[1].at_ns, T0 + 25 * MS + 7 * MS);
    CHECK_EQ(sim->delivery[2].at_ns, T0 + 35 * MS + 8 * MS);
    sim_free(sim);
}

/* Links and routes that come into force before the commit that declares them are harmless. */
static void early_changes_are_harmless(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_pair(sim, PLAIN);
    sim_do(sim, "node 3 ip=10.77.0.3");
    sim_do(sim, "link 4 2 3 " PLAIN " seed=5");
    sim_do(sim, "commit %llu", T0 + 50 * MS);
    sim_do(sim, "route 2 4 1");
    sim_do(sim, "set 4 delay=3");
    sim_do(sim, "commit %llu", T0 + 10 * MS);
    sim_run(sim, T0 + 20 * MS);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 99 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_EQ(sim_stat(sim, "stats links", "4 ", 7), 1);
    sim_free(sim);
}

static void many_nodes_links_and_routes(void) {
    enum { NODES = 3000 };
    struct sim *sim = sim_new(8 << 20);
    for (unsigned i = 0; i < NODES; i++) {
        sim_do(sim, "node %u ip=10.77.%u.%u ip6=fd77:7473::%x", i, (i + 1) >> 8, (i + 1) & 255,
               i + 1);
    }
    sim_do(sim, "node %u", NODES);
    for (unsigned i = 0; i < NODES; i++) {
        sim_do(sim, "link %u %u %u " PLAIN " seed=%u", 2 * i, i, NODES, i);
        sim_do(sim, "link %u %u %u " PLAIN " seed=%u", 2 * i + 1, NODES, i, i);
        sim_do(sim, "routes %u %u 0-%u", i, 2 * i, NODES - 1);
        sim_do(sim, "route %u %u %u", NODES, 2 * i + 1, i);
    }
    for (unsigned i = 0; i < 2; i++) {
        sim_do(sim, "open %u netns=/x if=e", i);
    }
    sim_do(sim, "bind 1 0");
    sim_do(sim, "bind 2999 1");
    sim_commit(sim);
    make_frame(&frame, 6, TEST_UDP, 1, 2999, 100, 0);
    sim_send(sim, 0, &frame);
    make_frame(&frame, 4, TEST_UDP, 2999, 1, 100, 0);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 2);
    CHECK_EQ(sim->delivery[0].port, 1);
    CHECK_EQ(sim->delivery[1].port, 0);
    CHECK_TEXT(sim_ask(sim, "stats pairs"),
               "ok 2\n1 2999 1 148 1 148 0 0 0 0\n2999 1 1 128 1 128 0 0 0 0");
    sim_free(sim);
}

static void ports_move(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_pair(sim, PLAIN);
    sim_do(sim, "bind 0 1"); /* takes the port from node 1 */
    sim_commit(sim);
    make_packet(&frame, 0, 1, 100);
    sim_send(sim, 1, &frame); /* node 0 sends from port 1 now; node 1 has none */
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_EQ(sim_stat(sim, "stats pairs", "0 1 ", 9), 1);
    sim_do(sim, "close 1");
    sim_send(sim, 1, &frame);
    CHECK_TEXT(sim_ask(sim, "stats pairs"), "ok 0");
    sim_free(sim);
}

static void addresses_move(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_pair(sim, PLAIN);
    make_packet(&frame, 0, 1, 100);
    sim_do(sim, "node 1");
    sim_commit(sim);
    sim_send(sim, 0, &frame); /* nobody has the address now */
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_TEXT(sim_ask(sim, "stats pairs"), "ok 0");
    sim_do(sim, "node 2 ip=10.77.0.2");
    sim_commit(sim);
    sim_send(sim, 0, &frame);
    CHECK_EQ(sim_stat(sim, "stats pairs", "0 2 ", 2), 1);
    sim_free(sim);
}

void test_stages(void) {
    nothing_happens_before_the_commit();
    abort_takes_everything_back();
    a_refused_command_stages_nothing();
    times_decide();
    early_changes_are_harmless();
    many_nodes_links_and_routes();
    ports_move();
    addresses_move();
}
