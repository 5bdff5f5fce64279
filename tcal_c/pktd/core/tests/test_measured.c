/* Jitter with distributions that somebody measured: what it has to look like at every rate,
 * whatever their shape; fixed values; what is refused. */
#include "common/quantile.h"
#include "common/tests/check.h"
#include "pktd/core/draws/measured.h"
#include "tabulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 4 };
#define ONE 1048576.0

/* Inverse distribution functions that are no usual ones. */
static double two_modes(double p) {
    double within = p < 0.6 ? p / 0.6 : 1 + (p - 0.6) / 0.4;
    double gap = fmin(fmax((p - 0.596) / 0.008, 0), 1);
    return within * 0.2 + gap * 5;
}

static double rounded(double p) { /* to whole ms, three of them */
    double at = p * 3;
    double part = at - floor(at);
    return floor(at) + fmax(part - 0.98, 0) / 0.02;
}

static double mostly_late(double p) { /* few early ones, far from the others */
    return p < 0.05 ? p * 40 : 2 + 20 * fmin((p - 0.05) / 0.01, 1) + p;
}

static double (*const shapes[SHAPES])(double) = {two_modes, rounded, mostly_late, pareto_quantile};

static struct measured *made(double (*inverse)(double)) {
    static struct measured m;
    static double at[PARTS + 1];
    tabulate(at, inverse);
    for (int i = 0; i <= PARTS; i++) {
        m.at[i] = (int32_t)lrint(at[i] * ONE);
    }
    CHECK(measured_finish(&m));
    return &m;
}

/* No part is narrower, and what each adds to the logarithm of the part below grows no more. */
static void what_is_behind_is_concave(const struct measured *m) {
    double before = INFINITY;
    for (int i = 0; i < PARTS; i++) {
        double wide = m->behind[i + 1] - m->behind[i];
        CHECK(wide >= m->at[i + 1] - m->at[i]);
        double density = wide > 0 ? 1 / (wide * (2 * i + 1)) : INFINITY;
        CHECK(density <= before * (1 + 1e-9) + 1 / (wide * wide)); /* widths are whole */
        before = density < before ? density : before;
    }
}

#define EXPECTED 100000
enum { HOPS = 5, BURSTS = 12000, MOST = 3, SAMPLES = HOPS * BURSTS * MOST };
#define JITTER_NS 10000000ull

static double expected[EXPECTED];
static double seen[SAMPLES];
static size_t seen_count;

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* As often as a share of all is so early, drawn anew for each. */
static void draw_expected(const struct measured *m) {
    for (uint64_t n = 0; n < EXPECTED; n++) {
        double place = ((double)n + 0.5) / EXPECTED * PARTS;
        int slot = (int)place;
        double low = m->at[slot];
        expected[n] = (low + (m->at[slot + 1] - low) * (place - slot)) / ONE;
    }
}

/* The greatest distance of the distribution functions of what is sorted (Kolmogorov, Smirnov). */
static double distance(void) {
    double most = 0;
    for (size_t i = 0, j = 0; i < seen_count && j < EXPECTED;) {
        double at = fmin(seen[i], expected[j]);
        while (i < seen_count && seen[i] <= at + 1e-5) { /* what is rounded is one */
            i++;
        }
        while (j < EXPECTED && expected[j] <= at + 1e-5) {
            j++;
        }
        most = fmax(most, fabs((double)i / (double)seen_count - (double)j / EXPECTED));
    }
    return most;
}

/* Packets `apart_ns` after each other cross links of 50 jitters. None may overtake another. */
static void send_burst(const struct measured *m, uint64_t begin_ns, uint64_t apart_ns, int count) {
    uint64_t before[HOPS] = {0};
    for (int i = 0; i < count; i++) {
        uint64_t at = begin_ns + (uint64_t)i * apart_ns;
        for (int hop = 0; hop < HOPS; hop++) {
            int64_t by = measured_jitter(m, 100 + (uint64_t)hop, at, JITTER_NS);
            at += 50 * JITTER_NS + (uint64_t)by;
            CHECK(at >= before[hop]);
            before[hop] = at;
            seen[seen_count++] = (double)by / JITTER_NS;
        }
    }
}

/* The bounds of test_draws.c: mean 1 % of the jitter, deviation 3 %, and the distance that 1 of
 * 1,000 sets of so many independent values would exceed. */
static void is_as_measured_at_every_rate(const struct measured *m) {
    static const uint64_t rates[] = {20, 500, 10000};
    uint64_t apart_bursts = ((uint64_t)(m->behind[PARTS] / ONE) * 2 + 60) * JITTER_NS + 777777;
    draw_expected(m);
    for (int k = 0; k < 3; k++) {
        uint64_t apart = NS_PER_S / rates[k];
        seen_count = 0;
        for (uint64_t i = 0; i < BURSTS; i++) {
            send_burst(m, i * apart_bursts, apart, apart > JITTER_NS ? 1 : MOST);
        }
        double sum = 0;
        double squares = 0;
        for (size_t i = 0; i < seen_count; i++) {
            sum += seen[i];
            squares += seen[i] * seen[i];
        }
        double mean = sum / (double)seen_count;
        CHECK(fabs(mean) < 0.01);
        CHECK(fabs(sqrt(squares / (double)seen_count - mean * mean) - 1) < 0.03);
        qsort(seen, seen_count, sizeof(double), compare);
        CHECK(distance() < 1.95 * sqrt(1.0 / (HOPS * BURSTS) + 1.0 / EXPECTED));
    }
}

/* Where packets follow each other closely, one after the other, through all that it does. */
static void keeps_the_order(const struct measured *m) {
    uint64_t due = 0;
    for (uint64_t n = 0; n < 300000; n++) {
        uint64_t at = n * 10007 + draw_bits(3, n) % 10007;
        uint64_t now = at + 100 * JITTER_NS + (uint64_t)measured_jitter(m, 8, at, JITTER_NS);
        CHECK(now >= due);
        due = now;
    }
}

/* The same values stand in tests/pktd/test_draws.py, which makes them from docs/pktd.md. */
static void values_are_fixed(void) {
    static const uint64_t at_ns[] = {0, 700000000, 1000000000000, 86400125000000};
    static const int64_t want[4] = {1304750442, 1304727554, -614650726, 1303045272};
    struct measured *m = calloc(1, sizeof *m);
    for (int i = 0; i <= PARTS; i++) { /* two thirds about 0.6 early, one third 1.3 late */
        m->at[i] = i < 2720   ? -650000 + 10 * i
                   : i < 2740 ? -650000 + 100000 * (i - 2719)
                              : 1350000 + 5 * i;
    }
    CHECK(measured_finish(m));
    for (int n = 0; n < 4; n++) {
        CHECK_EQ(measured_jitter(m, 99, at_ns[n], NS_PER_S), want[n]);
    }
    CHECK_EQ(measured_jitter(m, 1, 1, 0), 0);
    CHECK(measured_alone(m, 1, false, 1) != measured_alone(m, 1, true, 1));
    free(m);
}

static void alone_is_of_the_same(const struct measured *m) {
    double sum = 0;
    double squares = 0;
    enum { COUNT = 400000 };
    for (uint64_t n = 0; n < COUNT; n++) {
        double x = measured_alone(m, 5, false, n) / ONE;
        sum += x;
        squares += x * x;
    }
    CHECK(fabs(sum / COUNT) < 0.01 && fabs(squares / COUNT - 1) < 0.03);
}

static void what_cannot_be_is_refused(void) {
    struct measured *m = calloc(1, sizeof *m);
    CHECK(measured_finish(m)); /* no jitter at all */
    CHECK_EQ(measured_jitter(m, 1, 12345, NS_PER_S), 0);
    m->at[7] = 1;
    CHECK(!measured_finish(m)); /* descends */
    memset(m, 0, sizeof *m);
    m->at[PARTS] = (JITTER_DEVIATIONS << 20) + 1;
    CHECK(!measured_finish(m));
    for (int i = 0; i <= PARTS; i++) {
        m->at[i] = i ? JITTER_DEVIATIONS << 20 : -JITTER_DEVIATIONS * (1 << 20);
    }
    CHECK(measured_finish(m)); /* one step, at once */
    m->at[1] = -JITTER_DEVIATIONS * (1 << 20);
    for (int i = 2; i <= PARTS / 2; i++) {
        m->at[i] = m->at[1];
    }
    CHECK(!measured_finish(m)); /* 256 jitters in a part of 4,096, with half of all below */
    free(m);
}

void test_measured(void) {
    for (int i = 0; i < SHAPES; i++) {
        const struct measured *m = made(shapes[i]);
        what_is_behind_is_concave(m);
        is_as_measured_at_every_rate(m);
        keeps_the_order(m);
        alone_is_of_the_same(m);
    }
    values_are_fixed();
    what_cannot_be_is_refused();
}
