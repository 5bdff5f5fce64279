/* The draws: fixed values, right frequencies, independent of order. */
#include "common/tests/check.h"
#include "pktd/core/draw.h"

#include <math.h>

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
            lost += draw_lost(12345, n, loss[k]);
        }
        double p = loss[k] / 1e9;
        double deviation = sqrt(COUNT * p * (1 - p));
        CHECK(fabs(lost - COUNT * p) <= 4 * deviation);
    }
    CHECK(draw_lost(1, 77, PPB) && !draw_lost(1, 77, 0));
}

static void seeds_differ(void) {
    int same = 0;
    for (uint64_t n = 0; n < 1000; n++) {
        same += draw_lost(1, n, 500000000) == draw_lost(2, n, 500000000);
    }
    CHECK(same > 400 && same < 600);
}

static void moments(uint64_t seed, enum dist dist, double *mean, double *deviation, double *low,
                    double *high) {
    double sum = 0;
    double squares = 0;
    *low = 1e9;
    *high = -1e9;
    enum { COUNT = 2000000 };
    for (uint64_t n = 0; n < COUNT; n++) {
        double x = (double)draw_jitter(seed, n, dist, 1000000) / 1e6;
        sum += x;
        squares += x * x;
        *low = x < *low ? x : *low;
        *high = x > *high ? x : *high;
    }
    *mean = sum / COUNT;
    *deviation = sqrt(squares / COUNT - *mean * *mean);
}

/* The deviation is the one asked for within 2 %, whatever the seed: the tail of a Pareto
 * distribution is rare enough that single seeds differ by half a percent. */
static void jitter_is_as_asked(void) {
    static const struct {
        double deviation;
        double within;
        double low;
        double high;
        double reached;
    } want[DIST_COUNT] = {[DIST_NORMAL] = {1, 0.01, -3.8, 3.8, 3},
                          [DIST_UNIFORM] = {0.57735, 0.01, -1, 1, 0.99},
                          [DIST_PARETO] = {1, 0.02, -0.64, 24, 15},
                          [DIST_PARETONORMAL] = {1, 0.02, -1.8, 24, 10}};
    for (int dist = 0; dist < DIST_COUNT; dist++) {
        for (uint64_t seed = 99; seed < 102; seed++) {
            double mean;
            double deviation;
            double low;
            double high;
            moments(seed, (enum dist)dist, &mean, &deviation, &low, &high);
            CHECK(fabs(mean) < 0.01);
            CHECK(fabs(deviation / want[dist].deviation - 1) < want[dist].within);
            CHECK(low >= want[dist].low && high <= want[dist].high && high > want[dist].reached);
        }
    }
    CHECK_EQ(draw_jitter(1, 1, DIST_PARETO, 0), 0);
}

/* The same values stand in tests/pktd/test_draws.py, which makes them from docs/pktd.md. */
static void jitter_is_fixed(void) {
    static const int64_t want[DIST_COUNT][4] = {
        {-87752342, -399482727, 183519363, -125601768},
        {-69927215, -310462951, 145609855, -99952697},
        {-331112861, -431035995, -212070465, -345151901},
        {442885398, -560975074, -406857490, 832680702},
    };
    for (int dist = 0; dist < DIST_COUNT; dist++) {
        for (uint64_t n = 0; n < 4; n++) {
            CHECK_EQ(draw_jitter(99, n, (enum dist)dist, 1000000000), want[dist][n]);
        }
    }
}

/* common.h counts on it: no delay of a link is beyond a signed number. */
static void no_jitter_deviates_further(void) {
    for (int dist = 0; dist < DIST_COUNT; dist++) {
        for (uint64_t n = 0; n < 2000000; n++) {
            int64_t by = draw_jitter(7, n, (enum dist)dist, JITTER_LIMIT_NS);
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
    jitter_is_as_asked();
    jitter_is_fixed();
    no_jitter_deviates_further();
    names_are_found();
}
