/* Frames between ends, over lans and between radios: what carries them, who learns what, and what
 * is counted. */
#include "common/tests/check.h"
#include "pktd/tests/sim.h"

#include <stdlib.h>
#include <string.h>

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define PLAIN "rate=0 jitter=0 loss=0 queue=0 dist=normal up=1"

static struct test_frame frame;

static void make_raw(unsigned to, unsigned from, unsigned type, size_t bytes) {
    static struct test_frame empty;
    frame = empty;
    frame.bytes = bytes;
    memset(frame.data, 0xAB, bytes);
    memcpy(frame.data, (uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)to}, 6);
    memcpy(frame.data + 6, (uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)from}, 6);
    frame.data[12] = (uint8_t)(type >> 8);
    frame.data[13] = (uint8_t)type;
}

static void make_broadcast(unsigned from) {
    make_raw(0, from, 0x0806, 42);
    memset(frame.data, 0xff, 6);
}

static void declare_ends(struct sim *sim, int count) {
    for (int i = 0; i < count; i++) {
        sim_do(sim, "open %d netns=/x if=eth%d mac=02:00:00:00:00:%02x", i, i, i);
        sim_do(sim, "node %d frames=end", i);
        sim_do(sim, "bind %d %d", i, i);
    }
}

static void join(struct sim *sim, int k, int a, int b) {
    sim_do(sim, "link %d %d %d delay=1000000 seed=%d " PLAIN, 2 * k, a, b, k);
    sim_do(sim, "link %d %d %d delay=1000000 seed=9 " PLAIN, 2 * k + 1, b, a);
}

/* Ends 0 and 1 with a link between them. */
static struct sim *between(void) {
    struct sim *sim = sim_new(64u << 20);
    declare_ends(sim, 2);
    join(sim, 0, 0, 1);
    sim_commit(sim);
    return sim;
}

/* Ends 0, 1 at lan 3, end 2 at lan 4, and 3--4 between them. */
static struct sim *two_lans(void) {
    struct sim *sim = sim_new(64u << 20);
    declare_ends(sim, 3);
    sim_do(sim, "node 3 frames=lan");
    sim_do(sim, "node 4 frames=lan");
    join(sim, 0, 0, 3);
    join(sim, 1, 1, 3);
    join(sim, 2, 2, 4);
    join(sim, 3, 3, 4);
    sim_commit(sim);
    return sim;
}

/* Ends 0, 1, 2 with radios 3, 4, 5, of which the one in the middle is linked to both others. */
static struct sim *three_radios(void) {
    struct sim *sim = sim_new(64u << 20);
    declare_ends(sim, 3);
    for (int i = 0; i < 3; i++) {
        sim_do(sim, "node %d frames=air", 3 + i);
    }
    for (int i = 0; i < 3; i++) {
        join(sim, i, i, 3 + i);
    }
    join(sim, 3, 3, 4);
    join(sim, 4, 4, 5);
    sim_commit(sim);
    return sim;
}

static uint64_t offered(struct sim *sim, uint32_t link) {
    return counter_get(&engine_link(sim->engine, link)->count.pkts);
}

static bool came(const struct sim *sim, uint32_t port) {
    for (size_t i = 0; i < sim->count; i++) {
        if (sim->delivery[i].port == port) {
            return true;
        }
    }
    return false;
}

static void whatever_enters_comes_out_as_it_was(void) {
    static const unsigned types[] = {0x0806, 0x88CC, 0x8100, 0x0800, 0x86DD, 0x0027};
    struct sim *sim = between();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        make_raw(77, 88, types[i], 14 + 46 * i); /* of IP, what cannot be read as such */
        sim_send(sim, 0, &frame);
        sim_run(sim, T0 + (i + 1) * 10 * MS);
        CHECK_EQ(sim->count, 1);
        CHECK_EQ(sim->delivery[0].port, 1);
        CHECK_EQ(sim->delivery[0].at_ns, T0 + (i * 10 + 1) * MS);
        CHECK_EQ(sim->delivery[0].bytes, frame.bytes);
        CHECK(memcmp(sim->delivery[0].data, frame.data, frame.bytes) == 0);
        sim_forget(sim);
    }
    make_raw(1, 2, 0x0806, 13);
    sim_send(sim, 0, &frame);
    CHECK_EQ(sim_engine_stat(sim, "drop_malformed"), 1);
    sim_free(sim);
}

static void packets_keep_their_ttl_and_may_come_from_anywhere(void) {
    struct sim *sim = between();
    make_frame(&frame, 4, TEST_UDP, 55, 66, 100, 0);
    uint8_t ttl = frame.data[14 + 8];
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].port, 0);
    CHECK_EQ(sim->delivery[0].data[14 + 8], ttl);
    CHECK_EQ(sim_engine_stat(sim, "drop_spoofed"), 0);
    CHECK_EQ(sim_stat(sim, "stats pairs", "1 0", 2), 1); /* offered of that pair */
    sim_free(sim);
}

static void super_packets_are_cut_where_links_are_slow(void) {
    struct sim *sim = between();
    sim_do(sim, "set 0 rate=1000000 queue=100000000");
    sim_commit(sim);
    make_frame(&frame, 4, TEST_TCP, 0, 1, 10000, 1000);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 2000 * MS);
    CHECK_EQ(sim->count, 10);
    for (size_t i = 0; i < sim->count; i++) {
        check_sums(&sim->delivery[i].vnet, sim->delivery[i].data, sim->delivery[i].bytes);
    }
    sim_free(sim);
}

static void a_link_that_is_down_or_lossy_is_so_for_frames(void) {
    struct sim *sim = between();
    sim_do(sim, "set 0 up=0");
    sim_commit(sim);
    make_broadcast(1);
    sim_send(sim, 0, &frame);
    sim_do(sim, "set 0 up=1 loss=1000000000");
    sim_commit(sim);
    sim_send(sim, 0, &frame);
    sim_do(sim, "set 0 loss=0 reject=1000000000");
    sim_commit(sim);
    sim_send(sim, 0, &frame);
    sim_do(sim, "set 0 reject=0 mtu=600");
    sim_commit(sim);
    make_frame(&frame, 4, TEST_UDP, 0, 1, 1000, 0);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 0); /* and nobody was told */
    CHECK_EQ(sim_engine_stat(sim, "too_large"), 1);
    sim_free(sim);
}

static void a_lan_learns_where_addresses_are(void) {
    struct sim *sim = two_lans();
    make_raw(2, 0, 0x0800, 100);
    sim_send(sim, 0, &frame); /* nobody knows 2 yet */
    sim_run(sim, T0 + 5 * MS);
    CHECK_EQ(sim->count, 2);
    CHECK(came(sim, 1) && came(sim, 2));
    sim_forget(sim);
    make_raw(0, 2, 0x0800, 100);
    sim_send(sim, 2, &frame); /* both know 0 */
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK(came(sim, 0));
    sim_forget(sim);
    make_raw(2, 0, 0x0800, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 15 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK(came(sim, 2));
    CHECK_EQ(offered(sim, 3), 1); /* to 1, the first alone */
    sim_free(sim);
}

static void who_moves_is_found_where_it_was_seen_last(void) {
    struct sim *sim = two_lans();
    make_raw(9, 7, 0x0800, 100);
    sim_send(sim, 0, &frame); /* 7 is at port 0 */
    sim_run(sim, T0 + 5 * MS);
    sim_send(sim, 2, &frame); /* and then at port 2 */
    sim_run(sim, T0 + 10 * MS);
    sim_forget(sim);
    make_raw(7, 1, 0x0800, 100);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 15 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK(came(sim, 2));
    sim_do(sim, "set 6 up=0"); /* from one lan to the other: then it is looked for */
    sim_commit(sim);
    sim_forget(sim);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 20 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK(came(sim, 0));
    sim_free(sim);
}

static void what_is_for_a_neighbour_at_the_same_link_stays_there(void) {
    struct sim *sim = two_lans();
    make_raw(9, 5, 0x0800, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 5 * MS);
    sim_forget(sim);
    make_raw(5, 6, 0x0800, 100);
    sim_send(sim, 0, &frame); /* both addresses are behind port 0 */
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 0);
    sim_free(sim);
}

static void groups_and_all_reach_everybody_once(void) {
    struct sim *sim = two_lans();
    make_broadcast(1);
    sim_send(sim, 1, &frame);
    make_raw(5, 1, 0x0800, 100);
    memcpy(frame.data, (uint8_t[6]){1, 0, 0x5e, 0, 0, 5}, 6); /* OSPF */
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 4);
    CHECK(came(sim, 0) && came(sim, 2) && !came(sim, 1));
    sim_free(sim);
}

static void a_loop_ends(void) {
    struct sim *sim = sim_new(64u << 20);
    declare_ends(sim, 1);
    for (int i = 1; i < 4; i++) {
        sim_do(sim, "node %d frames=lan", i);
    }
    join(sim, 0, 0, 1);
    join(sim, 1, 1, 2);
    join(sim, 2, 2, 3);
    join(sim, 3, 3, 1);
    sim_commit(sim);
    make_broadcast(1);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 1000 * MS);
    CHECK(offered(sim, 2) < 300);
    CHECK_EQ(sim_engine_stat(sim, "in_flight"), 0);
    sim_free(sim);
}

static void radios_pass_on_nothing_that_they_hear(void) {
    struct sim *sim = three_radios();
    make_broadcast(0);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 1); /* the middle, and not who is behind it */
    CHECK(came(sim, 1));
    sim_forget(sim);
    make_broadcast(1);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 20 * MS);
    CHECK_EQ(sim->count, 2);
    CHECK(came(sim, 0) && came(sim, 2));
    sim_free(sim);
}

static void a_frame_for_one_goes_to_that_radio_or_is_lost(void) {
    struct sim *sim = three_radios();
    make_broadcast(0);
    sim_send(sim, 0, &frame); /* the middle knows 0 now */
    sim_run(sim, T0 + 10 * MS);
    sim_forget(sim);
    make_raw(0, 1, 0x0800, 100);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 20 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK(came(sim, 0));
    CHECK_EQ(offered(sim, 8), 0); /* to 2 */
    sim_do(sim, "set 7 up=0");
    sim_commit(sim);
    sim_forget(sim);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 30 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_EQ(offered(sim, 8), 0);
    CHECK_EQ(counter_get(&engine_link(sim->engine, 7)->count.drop_down), 1);
    make_raw(9, 0, 0x0800, 100); /* nobody knows 9: it is on the air for all */
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 40 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK(came(sim, 1));
    sim_free(sim);
}

static void what_all_hear_is_sent_once(void) {
    struct sim *sim = three_radios();
    sim_do(sim, "set 2 rate=800000 queue=1000000"); /* 10 us a byte, of the middle */
    sim_do(sim, "set 8 delay=3000000");
    sim_commit(sim);
    make_frame(&frame, 4, TEST_UDP, 0, 1, 972, 0); /* 1000 bytes of IP */
    memset(frame.data, 0xff, 6);
    sim_send(sim, 1, &frame);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 4);
    uint64_t at[3][2] = {{0}};
    uint32_t seen[3] = {0};
    for (size_t i = 0; i < sim->count && sim->delivery[i].port < 3; i++) {
        uint32_t port = sim->delivery[i].port;
        at[port][seen[port]++ % 2] = sim->delivery[i].at_ns;
    }
    CHECK_EQ(at[0][0], T0 + 13 * MS); /* 10 of its queue, and three links of 1 */
    CHECK_EQ(at[0][1], T0 + 23 * MS);
    CHECK_EQ(at[2][0], T0 + 15 * MS);
    CHECK_EQ(at[2][1], T0 + 25 * MS);
    sim_free(sim);
}

static void each_copy_has_its_own_loss(void) {
    struct sim *sim = three_radios();
    sim_do(sim, "set 7 loss=1000000000");
    sim_commit(sim);
    make_broadcast(1);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 10 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK(came(sim, 2));
    sim_free(sim);
}

static void addresses_are_forgotten_where_there_are_too_many(void) {
    struct sim *sim = two_lans();
    for (uint32_t i = 0; i < 200000; i++) {
        make_raw(1, 0, 0x0800, 60);
        memcpy(frame.data + 8, &i, sizeof i);
        sim_send(sim, 0, &frame);
        if (i % 1000 == 0) {
            sim_run(sim, sim->now_ns + 10 * MS);
            sim_forget(sim);
        }
    }
    sim_run(sim, sim->now_ns + 10 * MS);
    sim_forget(sim);
    make_broadcast(0);
    sim_send(sim, 1, &frame);
    sim_run(sim, sim->now_ns + 10 * MS);
    CHECK_EQ(sim->count, 2);
    sim_free(sim);
}

static void nodes_stay_what_they_are(void) {
    struct sim *sim = between();
    CHECK(strncmp(sim_ask(sim, "node 0 ip=10.0.0.1"), "err conflict", 12) == 0);
    CHECK(strncmp(sim_ask(sim, "node 5 frames=lan ip=10.0.0.1"), "err syntax", 10) == 0);
    CHECK(strncmp(sim_ask(sim, "node 5 frames=x"), "err syntax", 10) == 0);
    CHECK(strncmp(sim_ask(sim, "open 9 netns=/x if=e mac=01:00:00:00:00:00"), "err range", 9) == 0);
    CHECK(strncmp(sim_ask(sim, "open 9 netns=/x if=e mac=02:00"), "err range", 9) == 0);
    sim_free(sim);
}

void test_switching(void) {
    whatever_enters_comes_out_as_it_was();
    packets_keep_their_ttl_and_may_come_from_anywhere();
    super_packets_are_cut_where_links_are_slow();
    a_link_that_is_down_or_lossy_is_so_for_frames();
    a_lan_learns_where_addresses_are();
    who_moves_is_found_where_it_was_seen_last();
    what_is_for_a_neighbour_at_the_same_link_stays_there();
    groups_and_all_reach_everybody_once();
    a_loop_ends();
    radios_pass_on_nothing_that_they_hear();
    a_frame_for_one_goes_to_that_radio_or_is_lost();
    what_all_hear_is_sent_once();
    each_copy_has_its_own_loss();
    addresses_are_forgotten_where_there_are_too_many();
    nodes_stay_what_they_are();
}
