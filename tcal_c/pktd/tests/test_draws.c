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

static void moments(enum dist dist, double *mean, double *deviation, double *low, double *high) {
    double sum = 0;
    double squares = 0;
    *low = 1e9;
    *high = -1e9;
    enum { COUNT = 2000000 };
    for (uint64_t n = 0; n < COUNT; n++) {
        double x = (double)draw_jitter(99, n, dist, 1000000) / 1e6;
        sum += x;
        squares += x * x;
        *low = x < *low ? x : *low;
        *high = x > *high ? x : *high;
    }
    *mean = sum / COUNT;
    *deviation = sqrt(squares / COUNT - *mean * *mean);
}

static void jitter_is_as_asked(void) {
    double mean;
    double deviation;
    double low;
    double high;
    moments(DIST_NORMAL, &mean, &deviation, &low, &high);
    CHECK(fabs(mean) < 0.01 && fabs(deviation - 1) < 0.01 && low > -3.8 && high < 3.8);
    moments(DIST_UNIFORM, &mean, &deviation, &low, &high);
    CHECK(fabs(mean) < 0.01 && fabs(deviation - 0.577) < 0.01 && low >= -1 && high <= 1);
    moments(DIST_PARETO, &mean, &deviation, &low, &high);
    CHECK(fabs(mean) < 0.01 && fabs(deviation - 1) < 0.02 && low > -0.64 && high > 15);
    moments(DIST_PARETONORMAL, &mean, &deviation, &low, &high);
    CHECK(fabs(mean) < 0.01 && fabs(deviation - 1) < 0.02 && low > -1.8 && high > 10);
    CHECK_EQ(draw_jitter(1, 1, DIST_PARETO, 0), 0);
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
    no_jitter_deviates_further();
    names_are_found();
}
