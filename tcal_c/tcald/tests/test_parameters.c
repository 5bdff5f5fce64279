/* From properties of paths to the kernel's numbers. */
#include "common/tests/check.h"
#include "tcal/tree/derive.h"
#include "tcal/tree/dist.h"
#include "tcal/tree/objects.h"
#include "suites.h"

#include <math.h>

static const struct tcal_options options = {.burst_ns = 1000000};

static struct tcal_params derive(const struct tcal_path *path) {
    return tcal_derive(path, &options, 1500, 0);
}

static void rates_become_bytes(void) {
    struct tcal_path path = {.rate_bps = 8000000, .up = true};
    CHECK_EQ(derive(&path).rate_bytes_ps, 1000000);
    path.rate_bps = 1;
    CHECK_EQ(derive(&path).rate_bytes_ps, 1);
    path.rate_bps = 100000000000ull;
    CHECK_EQ(derive(&path).rate_bytes_ps, 12500000000ull);
    path.rate_bps = 0;
    CHECK_EQ(derive(&path).rate_bytes_ps, TCAL_UNLIMITED_BYTES_PS);
    CHECK(derive(&path).queue_bytes > 1u << 30);
}

/* What a timer may be late by, and two frames at the least. */
static void bursts_cover_late_timers(void) {
    struct tcal_path path = {.rate_bps = 1000000000, .up = true};
    CHECK_EQ(derive(&path).burst_ticks, 1000000 / 64);
    path.rate_bps = 1000000;
    CHECK_EQ(derive(&path).burst_ticks, (24000000 + 1 + 63) / 64);
    path.rate_bps = 8;
    CHECK_EQ(derive(&path).burst_ticks, UINT32_MAX);
}

static void queues_take_a_packet_at_least(void) {
    struct tcal_path path = {.rate_bps = 1000000, .queue_bytes = 100, .up = true};
    CHECK_EQ(derive(&path).queue_bytes, 1518);
    path.queue_bytes = 50000;
    CHECK_EQ(derive(&path).queue_bytes, 50000);
}

static void limits_hold_what_flies_and_what_waits(void) {
    struct tcal_path path = {
        .rate_bps = 80000000, .delay_ns = 100000000, .queue_bytes = 100000, .up = true};
    /* A megabyte and the queue, as packets of 64 bytes, twice. */
    uint32_t limit = derive(&path).netem.limit;
    CHECK(limit >= 2 * 1100000 / 64 && (limit & (limit - 1)) == 0);
    /* It never shrinks by itself, so that a change of the rate is one message. */
    path.rate_bps = 1000;
    CHECK_EQ(tcal_derive(&path, &options, 1500, limit).netem.limit, limit);
    path.rate_bps = 0;
    path.delay_ns = 3600ull * 1000000000;
    CHECK_EQ(derive(&path).netem.limit, 1 << 20);
}

static void losses_are_shares_of_all_draws(void) {
    struct tcal_path path = {.loss_ppb = 1000000000, .up = true};
    CHECK_EQ(derive(&path).netem.loss, UINT32_MAX);
    path.loss_ppb = 500000000;
    CHECK_EQ(derive(&path).netem.loss, 0x80000000u);
    path.loss_ppb = 1;
    CHECK_EQ(derive(&path).netem.loss, 4);
    path.loss_ppb = 0;
    CHECK_EQ(derive(&path).netem.loss, 0);
}

static void jitter_has_its_limits(void) {
    struct tcal_path path = {.jitter_ns = 0x7fffffff, .dist = TCAL_DIST_NORMAL};
    CHECK(!tcal_unfit(&path));
    path.jitter_ns++;
    CHECK(tcal_unfit(&path));
    path = (struct tcal_path){.jitter_ns = 357913941, .dist = TCAL_DIST_PARETO};
    CHECK(!tcal_unfit(&path));
    path.jitter_ns++;
    CHECK(tcal_unfit(&path));
}

/* Each table has mean 0 and standard deviation 1 in jitters, as pktd's draws do. */
static void tables_have_their_moments(void) {
    static const struct {
        double deviation;
        double low;
        double high;
    } want[TCAL_DIST_COUNT] = {{1, -3.8, 3.8}, {0.57735, -1, 1}, {1, -0.64, 24}, {1, -1.9, 24}};
    for (int dist = 0; dist < TCAL_DIST_COUNT; dist++) {
        const int16_t *table = tcal_dist_table((enum tcal_dist)dist);
        double unit = (double)tcal_dist_scale((enum tcal_dist)dist) / 8192;
        double sum = 0;
        double squares = 0;
        double low = 0;
        double high = 0;
        for (int i = 0; i < TCAL_TABLE_SIZE; i++) {
            double x = table[i] * unit;
            sum += x;
            squares += x * x;
            low = fmin(low, x);
            high = fmax(high, x);
        }
        double mean = sum / TCAL_TABLE_SIZE;
        CHECK(fabs(mean) < 0.001);
        double deviation = sqrt(squares / TCAL_TABLE_SIZE - mean * mean);
        CHECK(fabs(deviation / want[dist].deviation - 1) < 0.02);
        CHECK(low >= want[dist].low && high <= want[dist].high);
    }
}

static void seeds_go_on(void) {
    CHECK(tcal_seed(1, 0) != tcal_seed(1, 1));
    CHECK(tcal_seed(1, 0) != tcal_seed(2, 0));
    CHECK_EQ(tcal_seed(1, 5), tcal_seed(1, 5));
}

static void prefixes_hold_their_addresses(void) {
    struct prefix prefix = {{4, {10, 77, 0xc0}}, 18};
    struct addr in = {4, {10, 77, 0xff, 1}};
    struct addr out = {4, {10, 77, 0x80, 1}};
    struct addr six = {6, {10, 77, 0xff, 1}};
    CHECK(tcal_inside(&prefix, &in));
    CHECK(!tcal_inside(&prefix, &out));
    CHECK(!tcal_inside(&prefix, &six));
    struct prefix all = {{4, {0}}, 0};
    CHECK(tcal_inside(&all, &out));
    struct prefix one = {out, 32};
    CHECK(tcal_inside(&one, &out));
    CHECK(!tcal_inside(&one, &in));
}

void test_parameters(void) {
    rates_become_bytes();
    bursts_cover_late_timers();
    queues_take_a_packet_at_least();
    limits_hold_what_flies_and_what_waits();
    losses_are_shares_of_all_draws();
    jitter_has_its_limits();
    tables_have_their_moments();
    seeds_go_on();
    prefixes_hold_their_addresses();
}
