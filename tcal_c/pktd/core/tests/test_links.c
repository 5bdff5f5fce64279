/* Links: delay, rate, order, loss, changes; single packets and super-packets. */
#include "common/tests/check.h"
#include "pktd/tests/sim.h"
#include "probe/wire.h"

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define POOL (64u << 20)

static struct test_frame frame;

static uint32_t delivered(const struct sim *sim) {
    uint32_t segments = 0;
    for (size_t i = 0; i < sim->count; i++) {
        segments += sim->delivery[i].segments;
    }
    return segments;
}

static void delay_is_exact_over_two_hops(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=0 delay=5000001 jitter=0 loss=0 queue=0 dist=normal up=1");
    make_packet(&frame, 0, 1, 1500);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 10 * MS + 1);
    CHECK_EQ(sim->count, 0);
    sim_run(sim, T0 + 10 * MS + 2);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].port, 1);
    CHECK_EQ(sim->delivery[0].bytes, 1514);
    CHECK(memcmp(sim->delivery[0].data, frame.data, 1514) == 0);
    sim_free(sim);
}

static void rate_spaces_packets(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=8000000 delay=1000000 jitter=0 loss=0 queue=4500 dist=normal up=1");
    make_packet(&frame, 0, 1, 1500);
    for (int i = 0; i < 5; i++) {
        sim_send(sim, 0, &frame); /* three fit, two do not */
    }
    sim_run(sim, T0 + 1000 * MS);
    CHECK_EQ(sim->count, 3);
    for (uint64_t i = 0; i < 3; i++) {
        /* Two services of 1.5 ms and two delays; behind the first the second link is pipelined. */
        CHECK_EQ(sim->delivery[i].at_ns, T0 + 3 * MS + 2 * MS + i * 3 * MS / 2);
    }
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 5), 2);
    sim_free(sim);
}

/* A background that begins leaves what waits its times; so does one that ends. */
static void a_background_moves_nothing_that_waits(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=8000000 delay=0 jitter=0 loss=0 queue=100000 dist=normal up=1");
    make_packet(&frame, 0, 1, 1000);
    for (int i = 0; i < 10; i++) {
        sim_send(sim, 0, &frame); /* one each ms */
    }
    sim_run(sim, T0 + 3 * MS);
    sim_do(sim, "set 0 rate=2000000 cap=8000000");
    sim_commit(sim);
    sim_send(sim, 0, &frame); /* behind 7,000 bytes */
    sim_run(sim, T0 + 5 * MS);
    sim_do(sim, "set 0 rate=8000000 cap=0");
    sim_commit(sim);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 11);
    for (uint64_t i = 0; i < 11; i++) {
        CHECK_EQ(sim->delivery[i].at_ns, T0 + (i + 2) * MS); /* over two links */
    }
    sim_free(sim);
}

/* Each reading takes time in virtual time, in which programs that wake are late. */
static void counters_of_many_links_read_the_clock_as_often_as_those_of_one(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=8000000 delay=0 jitter=0 loss=0 queue=4500 dist=normal up=1");
    make_packet(&frame, 0, 1, 1500);
    sim_send(sim, 0, &frame);
    uint32_t before = sim->readings;
    CHECK_TEXT(sim_ask(sim, "stats links"), "ok 1\n0 1 1500 0 0 0 0 0 1500 1 1500");
    uint32_t of_one = sim->readings - before;
    sim_run(sim, T0 + 100 * MS);
    before = sim->readings;
    CHECK_TEXT(sim_ask(sim, "stats links"),
               "ok 2\n0 1 1500 1 1500 0 0 0 0 0 0\n1 1 1500 1 1500 0 0 0 0 0 0");
    CHECK_EQ(sim->readings - before, of_one);
    sim_free(sim);
}

/* A super-packet on rate-limited links: bytes per segment, the last one on time on every hop. */
static void super_packets_are_served_by_segment(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=100000000 delay=0 jitter=0 loss=0 queue=1000000 dist=normal up=1");
    make_frame(&frame, 4, TEST_TCP, 0, 1, 40 * 1448, 1448);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 1000 * MS);
    CHECK_EQ(delivered(sim), 40);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 2), 40 * 1500);
    /* 120 us a segment: the last has left the first link after 40, the second one after one more.
     */
    CHECK_EQ(sim->delivery[sim->count - 1].at_ns, T0 + 41 * 120000);
    uint32_t before = 0;
    for (size_t i = 0; i < sim->count; i++) {
        const struct delivery *d = &sim->delivery[i];
        before += d->segments;
        CHECK_EQ(d->at_ns, T0 + (before + 1) * 120000ull);
        CHECK(d->segments <= 12); /* at most 1.5 ms of service */
    }
    CHECK(sim->count <= 4);
    sim_free(sim);
}

static void unlimited_links_keep_super_packets_whole(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=0 delay=20000000 jitter=0 loss=0 queue=0 dist=normal up=1");
    make_frame(&frame, 6, TEST_TCP, 0, 1, 60000, 1428);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 40 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK(memcmp(sim->delivery[0].data, frame.data, frame.bytes) == 0);
    CHECK_EQ(sim->delivery[0].vnet.gso_size, 1428);
    sim_free(sim);
}

static void a_slow_link_behind_a_fast_one(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=1000000000 delay=0 jitter=0 loss=0 queue=1000000 dist=normal up=1");
    sim_do(sim, "set 1 rate=10000000");
    sim_commit(sim);
    make_frame(&frame, 4, TEST_TCP, 0, 1, 20 * 1448, 1448);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 1000 * MS);
    CHECK_EQ(delivered(sim), 20);
    /* The first segment is through the fast link after 12 us. */
    CHECK_EQ(sim->delivery[sim->count - 1].at_ns, T0 + 12000 + 20 * 1200000ull);
    sim_free(sim);
}

static void queues_drop_segments_not_super_packets(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=10000000 delay=0 jitter=0 loss=0 queue=15000 dist=normal up=1");
    make_frame(&frame, 4, TEST_TCP, 0, 1, 40 * 1448, 1448);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 1000 * MS);
    CHECK_EQ(delivered(sim), 10);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 5), 30);
    CHECK_EQ(sim_stat(sim, "stats pairs", "0 1 ", 6), 30);
    sim_free(sim);
}

/* The same packets are lost however they come, alone or in super-packets. */
static void loss_repeats(void) {
    static uint32_t seq[2][400];
    uint32_t count[2] = {0, 0};
    for (int whole = 0; whole < 2; whole++) {
        struct sim *sim = sim_new(POOL);
        sim_pair(sim, "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1");
        sim_do(sim, "set 0 loss=100000000");
        sim_commit(sim);
        for (unsigned i = 0; i < (whole ? 10 : 400); i++) {
            make_frame(&frame, 4, TEST_TCP, 0, 1, whole ? 40 * 1000 : 1000, whole ? 1000 : 0);
            uint32_t number = whole ? i * 40 * 1000 : i * 1000;
            for (int b = 0; b < 4; b++) {
                frame.data[14 + 20 + 4 + b] = (uint8_t)(number >> (24 - 8 * b));
            }
            sim_send(sim, 0, &frame);
        }
        sim_run(sim, T0 + 1);
        for (size_t i = 0; i < sim->count; i++) {
            const uint8_t *s = sim->delivery[i].data + 14 + 20 + 4;
            uint32_t number =
                (uint32_t)s[0] << 24 | (uint32_t)s[1] << 16 | (uint32_t)s[2] << 8 | s[3];
            for (uint32_t k = 0; k < sim->delivery[i].segments; k++) {
                seq[whole][count[whole]++] = number + k * 1000;
            }
        }
        CHECK_EQ(sim_stat(sim, "stats links", "0 ", 6), 400 - count[whole]);
        sim_free(sim);
    }
    CHECK(count[0] > 330 && count[0] < 390);
    CHECK_EQ(count[0], count[1]);
    CHECK(memcmp(seq[0], seq[1], count[0] * sizeof seq[0][0]) == 0);
}

/* Each packet is as late as the links' seeds and the time say, also where packets are closer to
 * each other than the jitter: none waits for the one before. */
static void jitter_is_of_the_time_and_keeps_order(void) {
    struct sim *sim = sim_new(POOL);
    sim_do(sim, "epoch %llu", T0 - 40 * MS);
    sim_pair(sim, "rate=0 delay=20000000 jitter=3000000 loss=0 queue=0 dist=paretonormal up=1");
    for (unsigned i = 0; i < 300; i++) {
        make_packet(&frame, 0, 1, 100 + i);
        sim_run(sim, T0 + i * MS / 4);
        sim_send(sim, 0, &frame);
    }
    sim_run(sim, T0 + 1000 * MS);
    CHECK_EQ(sim->count, 300);
    for (size_t i = 0; i < 300; i++) {
        uint64_t at = 40 * MS + i * MS / 4; /* since the epoch */
        for (uint64_t seed = 1; seed <= 2; seed++) {
            at += 20 * MS + (uint64_t)draw_jitter(seed, at, DIST_PARETONORMAL, 3 * MS);
        }
        CHECK_EQ(sim->delivery[i].bytes, 114 + i);
        CHECK_EQ(sim->delivery[i].at_ns - (T0 - 40 * MS), at);
    }
    sim_free(sim);
}

/* Losses and jitter are other ones from the moment on, and the same before it. */
static void a_reseed_changes_what_comes_after_it(void) {
    static const char *const told[] = {"", " reseed=1100000000:77 reseed=1150000000:78"};
    static uint64_t at_ns[2][200];
    memset(at_ns, 0, sizeof at_ns);
    for (int k = 0; k < 2; k++) {
        struct sim *sim = sim_new(POOL);
        sim_do(sim, "epoch %llu%s", T0, told[k]);
        sim_pair(sim, "rate=0 delay=1000000 jitter=100000 loss=300000000 queue=0 dist=normal up=1");
        for (unsigned i = 0; i < 200; i++) {
            make_packet(&frame, 0, 1, 100 + i);
            sim_run(sim, T0 + i * MS);
            sim_send(sim, 0, &frame);
        }
        sim_run(sim, T0 + 1000 * MS);
        for (size_t i = 0; i < sim->count; i++) {
            at_ns[k][sim->delivery[i].bytes - 114] = sim->delivery[i].at_ns;
        }
        sim_free(sim);
    }
    size_t half = 99 * sizeof at_ns[0][0]; /* the last before it leaves the second link after it */
    CHECK(memcmp(at_ns[0], at_ns[1], half) == 0);
    unsigned same = 0, lost = 0;
    for (size_t i = 100; i < 200; i++) {
        same += at_ns[0][i] == at_ns[1][i] && at_ns[1][i];
        lost += at_ns[1][i] == 0;
    }
    CHECK_EQ(same, 0);
    CHECK(lost > 30 && lost < 72); /* 51 */
}

/* What a run sends to measure takes no numbers of what programs send. */
static void probes_change_no_losses(void) {
    static bool arrived[2][200];
    uint32_t probes = 0;
    for (int probed = 0; probed < 2; probed++) {
        struct sim *sim = sim_new(POOL);
        sim_pair(sim, "rate=0 delay=0 jitter=0 loss=200000000 queue=0 dist=normal up=1");
        for (unsigned i = 0; i < 200; i++) {
            if (probed) {
                make_packet(&frame, 0, 1, 28);
                frame.data[14 + 9] = PROBE_PROTOCOL;
                sim_send(sim, 0, &frame);
            }
            make_packet(&frame, 0, 1, 100 + i);
            sim_send(sim, 0, &frame);
        }
        sim_run(sim, T0 + 1);
        for (size_t i = 0; i < sim->count; i++) {
            bool probe = sim->delivery[i].bytes == 14 + 28;
            probes += probe;
            if (!probe) {
                arrived[probed][sim->delivery[i].bytes - 114] = true;
            }
        }
        sim_free(sim);
    }
    CHECK(memcmp(arrived[0], arrived[1], sizeof arrived[0]) == 0);
    CHECK(memchr(arrived[0], false, sizeof arrived[0]) != NULL);
    CHECK(probes > 100 && probes < 160); /* 128: they are lost as often */
}

static void down_loses_what_is_in_the_link(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=8000000 delay=2000000 jitter=0 loss=0 queue=100000 dist=normal up=1");
    make_packet(&frame, 0, 1, 1000); /* 1 ms of service */
    for (int i = 0; i < 10; i++) {
        sim_send(sim, 0, &frame);
    }
    /* At 4.5 ms two are on the second link, two travel on the first, six wait there. */
    sim_do(sim, "set 0 up=0");
    sim_do(sim, "commit %llu", T0 + 4500000);
    sim_run(sim, T0 + 5 * MS);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 7), 8);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 2);
    CHECK_EQ(sim_stat(sim, "stats pairs", "0 1 ", 8), 9);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 7), 9);
    sim_do(sim, "set 0 up=1");
    sim_commit(sim);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 200 * MS);
    CHECK_EQ(sim->count, 3);
    CHECK_EQ(sim->delivery[2].at_ns, T0 + 100 * MS + 6 * MS);
    sim_free(sim);
}

static void a_rate_change_retimes_what_waits(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=8000000 delay=5000000 jitter=0 loss=0 queue=100000 dist=normal up=1");
    sim_do(sim, "set 1 rate=0 delay=0");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 1000);
    for (int i = 0; i < 4; i++) {
        sim_send(sim, 0, &frame); /* served at 1, 2, 3, 4 ms */
    }
    /* At 2.5 ms half of the third is left: it takes 1 ms at half the rate, the fourth 2 ms. */
    sim_do(sim, "set 0 rate=4000000");
    sim_do(sim, "commit %llu", T0 + 2500000);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 4);
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 6 * MS);
    CHECK_EQ(sim->delivery[1].at_ns, T0 + 7 * MS);
    CHECK_EQ(sim->delivery[2].at_ns, T0 + 8500000);
    CHECK_EQ(sim->delivery[3].at_ns, T0 + 10500000);
    /* To no limit at all: what waits leaves at once. */
    for (int i = 0; i < 3; i++) {
        sim_send(sim, 0, &frame);
    }
    sim_do(sim, "set 0 rate=0");
    sim_commit(sim);
    sim_run(sim, T0 + 106 * MS);
    CHECK_EQ(sim->count, 7);
    CHECK_EQ(sim->delivery[6].at_ns, T0 + 105 * MS);
    sim_free(sim);
}

static void a_delay_change_holds_from_the_queue_on(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=8000000 delay=50000000 jitter=0 loss=0 queue=100000 dist=normal up=1");
    sim_do(sim, "set 1 rate=0 delay=0");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 1000);
    sim_send(sim, 0, &frame);
    sim_send(sim, 0, &frame);
    sim_do(sim, "set 0 delay=1000000");
    sim_do(sim, "commit %llu", T0 + 1500000);
    sim_run(sim, T0 + 100 * MS);
    /* The first travels already; the second may not pass it. */
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 51 * MS);
    CHECK_EQ(sim->delivery[1].at_ns, T0 + 51 * MS);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 200 * MS);
    CHECK_EQ(sim->delivery[2].at_ns, T0 + 102 * MS);
    sim_free(sim);
}

static void backlog_is_what_waits(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=8000000 delay=0 jitter=0 loss=0 queue=100000 dist=normal up=1");
    make_packet(&frame, 0, 1, 1000);
    for (int i = 0; i < 10; i++) {
        sim_send(sim, 0, &frame);
    }
    sim_run(sim, T0 + 2500000);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 8), 7500);
    sim_send(sim, 0, &frame);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 9), 9);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 8), 0);
    CHECK_TEXT(sim_ask(sim, "stats links"), "ok 0");
    sim_free(sim);
}

void test_links(void) {
    delay_is_exact_over_two_hops();
    a_background_moves_nothing_that_waits();
    rate_spaces_packets();
    counters_of_many_links_read_the_clock_as_often_as_those_of_one();
    super_packets_are_served_by_segment();
    unlimited_links_keep_super_packets_whole();
    a_slow_link_behind_a_fast_one();
    queues_drop_segments_not_super_packets();
    loss_repeats();
    jitter_is_of_the_time_and_keeps_order();
    a_reseed_changes_what_comes_after_it();
    probes_change_no_losses();
    down_loses_what_is_in_the_link();
    a_rate_change_retimes_what_waits();
    a_delay_change_holds_from_the_queue_on();
    backlog_is_what_waits();
}
