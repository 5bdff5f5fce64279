/* The draws: fixed values, right frequencies, independent of order. */
#include "common/tests/check.h"
#include "pktd/core/draws/draw.h"
#include "tabulate.h"

#include <math.h>
#include <stdlib.h>

/* These values are in the specification of the draws; if they change, old runs do not repeat. */
static void bits_are_fixed(void) {
    /* SplitMix64 from state 0 begins with E220A8397B1DCDAF, whose generator state is the mixed key
     * 0. */
    CHECK_EQ(draw_bits(0 - 0x9E3779B97F4A7C15ull, 0), 0xE220A8397B1DCDAFull);
    CHECK_EQ(draw_bits(0 - 0x9E3779B97F4A7C15ull, 1), 0x6E789E6AA1B965F4ull);
    CHECK_EQ(draw_bits(0 - 0x9E3779B97F4A7C15ull, 2), 0x06C45D188009454Full);
}

static void loss_is_as_asked(void) {
    static const uint32_t loss[] = {0, 1000000, 10000000, 500000000, 999999999, PPB};
    for (size_t k = 0; k < sizeof loss / sizeof *loss; k++) {
        uint32_t lost = 0;
        enum { COUNT = 200000 };
        for (uint64_t n = 0; n < COUNT; n++) {
            lost += draw_lost(12345, false, n, loss[k]);
        }
        double p = loss[k] / 1e9;
        double deviation = sqrt(COUNT * p * (1 - p));
        CHECK(fabs(lost - COUNT * p) <= 4 * deviation);
    }
    CHECK(draw_lost(1, false, 77, PPB) && !draw_lost(1, true, 77, 0));
}

static void seeds_differ(void) {
    int same = 0;
    int apart = 0; /* a program's packet and a probe of the same number */
    for (uint64_t n = 0; n < 1000; n++) {
        same += draw_lost(1, false, n, 500000000) == draw_lost(2, false, n, 500000000);
        apart += draw_lost(1, false, n, 500000000) != draw_lost(1, true, n, 500000000);
    }
    CHECK(same > 400 && same < 600);
    CHECK(apart > 400 && apart < 600);
}

/* What jitter has to look like, in jitters: drawn one by one from the distributions as docs/pktd.md
 * has them, and sorted. */
#define EXPECTED 100000
static double expected[DIST_COUNT][EXPECTED];

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double between(const double *at, uint64_t n, uint64_t key) {
    double place = (double)draw_bits(key, n) / 18446744073709551616.0 * PARTS;
    int slot = (int)place < PARTS ? (int)place : PARTS - 1;
    return at[slot] + (at[slot + 1] - at[slot]) * (place - slot);
}

static void draw_expected(void) {
    static double normal[PARTS + 1];
    static double pareto[PARTS + 1];
    tabulate(normal, normal_quantile);
    tabulate(pareto, pareto_quantile);
    for (uint64_t n = 0; n < EXPECTED; n++) {
        double x = between(normal, n, 11);
        double y = between(pareto, n, 12);
        expected[DIST_NORMAL][n] = x;
        expected[DIST_UNIFORM][n] = 2.0 * (double)n / EXPECTED - 1;
        expected[DIST_PARETO][n] = y;
        expected[DIST_PARETONORMAL][n] = (x + 3 * y) / sqrt(10);
    }
    for (int dist = 0; dist < DIST_COUNT; dist++) {
        qsort(expected[dist], EXPECTED, sizeof(double), compare);
    }
}

/* The greatest distance of two distribution functions (Kolmogorov and Smirnov); both sorted. */
static double distance(const double *a, size_t as, const double *b, size_t bs) {
    double most = 0;
    for (size_t i = 0, j = 0; i < as && j < bs;) {
        if (a[i] < b[j]) {
            i++;
        } else {
            j++;
        }
        most = fmax(most, fabs((double)i / (double)as - (double)j / (double)bs));
    }
    return most;
}

enum { HOPS = 5, BURSTS = 12000, MOST = 3, SAMPLES = HOPS * BURSTS * MOST };
#define JITTER_NS 10000000ull

struct seen {
    double hop[SAMPLES]; /* of each packet on each hop, in jitters */
    double way[BURSTS * MOST];
    size_t hops;
    size_t ways;
};

/* Packets `apart_ns` after each other cross links of 50 jitters, each with a seed of its own. None
 * may overtake another. */
static void send_burst(struct seen *seen, enum dist dist, uint64_t begin_ns, uint64_t apart_ns,
                       int count) {
    uint64_t before[HOPS] = {0};
    for (int i = 0; i < count; i++) {
        uint64_t at = begin_ns + (uint64_t)i * apart_ns;
        double sum = 0;
        for (int hop = 0; hop < HOPS; hop++) {
            int64_t by = draw_jitter(100 + (uint64_t)hop, at, dist, JITTER_NS);
            at += 50 * JITTER_NS + (uint64_t)by;
            CHECK(at > before[hop]);
            before[hop] = at;
            seen->hop[seen->hops++] = (double)by / JITTER_NS;
            sum += (double)by / JITTER_NS;
        }
        seen->way[seen->ways++] = sum;
    }
}

static void moments(const double *of, size_t count, double *mean, double *deviation) {
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        sum += of[i];
        squares += of[i] * of[i];
    }
    *mean = sum / (double)count;
    *deviation = sqrt(squares / (double)count - *mean * *mean);
}

/* The same at every rate, on one hop and after five; bursts are so far from each other that they
 * tell of different moments. Bounds: mean 1 % of the jitter, deviation 3 %, and the distance that
 * 1 of 1,000 sets of so many independent values would exceed. */
static void jitter_is_as_asked_at_every_rate(void) {
    static const uint64_t rates[] = {20, 500, 10000};
    static const double deviations[DIST_COUNT] = {1, 0.57735, 1, 1};
    static struct seen seen;
    draw_expected();
    for (int k = 0; k < 3 * DIST_COUNT; k++) {
        enum dist dist = (enum dist)(k / 3);
        uint64_t apart = NS_PER_S / rates[k % 3];
        int count = apart > JITTER_NS ? 1 : MOST;
        seen.hops = seen.ways = 0;
        for (uint64_t i = 0; i < BURSTS; i++) {
            send_burst(&seen, dist, i * (60 * JITTER_NS + 777777), apart, count);
        }
        double mean;
        double deviation;
        moments(seen.hop, seen.hops, &mean, &deviation);
        CHECK(fabs(mean) < 0.01);
        CHECK(fabs(deviation / deviations[dist] - 1) < 0.03);
        qsort(seen.hop, seen.hops, sizeof(double), compare);
        CHECK(distance(seen.hop, seen.hops, expected[dist], EXPECTED) <
              1.95 * sqrt(1.0 / (HOPS * BURSTS) + 1.0 / EXPECTED));
        moments(seen.way, seen.ways, &mean, &deviation);
        CHECK(fabs(mean) < 0.01 * sqrt(HOPS));
        CHECK(fabs(deviation / deviations[dist] / sqrt(HOPS) - 1) < 0.03);
    }
}

/* The same values stand in tests/pktd/test_draws.py, which makes them from docs/pktd.md. */
static void jitter_is_fixed(void) {
    static const uint64_t at_ns[] = {0, 700000000, 3999999999, 86400123456789};
    static const int64_t want[DIST_COUNT][4] = {
        {1528992652, 1178993225, -471006393, 109591484},
        {884513854, 534514427, -473822593, -193788528},
        {890274047, 540274620, -464269638, -445117950},
        {527352333, 371821403, -610412597, -94047546},
    };
    for (int dist = 0; dist < DIST_COUNT; dist++) {
        for (int n = 0; n < 4; n++) {
            CHECK_EQ(draw_jitter(99, at_ns[n], (enum dist)dist, 1000000000), want[dist][n]);
        }
    }
    CHECK_EQ(draw_jitter(1, 1, DIST_PARETO, 0), 0);
}

/* common/limits.h counts on it: no delay of a link is beyond a signed number. */
static void no_jitter_deviates_further(void) {
    for (int dist = 0; dist < DIST_COUNT; dist++) {
        for (uint64_t n = 0; n < 20000; n++) {
            int64_t by = draw_jitter(7, draw_bits(7, n), (enum dist)dist, JITTER_LIMIT_NS);
            CHECK(by > -24 * (int64_t)JITTER_LIMIT_NS && by < 24 * (int64_t)JITTER_LIMIT_NS);
        }
    }
}

static void names_are_found(void) {
    for (int i = 0; i < DIST_COUNT; i++) {
        CHECK(dist_find(dist_name((enum dist)i)) == (enum dist)i);
    }
    CHECK(dist_find("gauss") == DIST_COUNT && dist_name(DIST_COUNT) == NULL);
}

void test_draws(void) {
    bits_are_fixed();
    loss_is_as_asked();
    seeds_differ();
    jitter_is_as_asked_at_every_rate();
    jitter_is_fixed();
    no_jitter_deviates_further();
    names_are_found();
}
