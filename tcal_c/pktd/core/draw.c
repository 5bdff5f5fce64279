/* Loss and jitter draws.
 *
 * Bits: the n-th output of SplitMix64 (Steele, Lea, Flood 2014), which can be computed directly
 * from its counter; the key is mixed first, so that neighbouring seeds share nothing. Jitter: a
 * uniform draw goes through a table of the inverse distribution function with 4,096 intervals,
 * linear in between, as fixed-point integers: the same draw gives the same nanoseconds on every
 * machine. normal has the jitter as its standard deviation; uniform covers +-jitter; pareto is a
 * Pareto of shape 3, cut where the table ends, shifted and scaled to mean 0 and standard deviation
 * jitter; paretonormal is a quarter of the first plus three quarters of the last, of one draw each,
 * with the same deviation.
 */
#include "draw.h"

#include "common/quantile.h"

#include <math.h>
#include <string.h>

#define GOLDEN 0x9E3779B97F4A7C15ull
#define KEY_LOSS 0x6C6F7373ull       /* "loss" */
#define KEY_JITTER 0x6A6974746572ull /* "jitter" */
#define KEY_SECOND 0x7365636F6E64ull /* "second" */

#define TABLE_BITS 12
#define TABLE_SIZE (1 << TABLE_BITS)
#define FIXED_BITS 20

static int32_t normal_table[TABLE_SIZE + 1];
static int32_t pareto_table[TABLE_SIZE + 1];

static const char *const names[DIST_COUNT] = {"normal", "uniform", "pareto", "paretonormal"};

const char *dist_name(enum dist dist) {
    return (unsigned)dist < DIST_COUNT ? names[dist] : NULL;
}

enum dist dist_find(const char *name) {
    for (int i = 0; i < DIST_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            return (enum dist)i;
        }
    }
    return DIST_COUNT;
}

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

uint64_t draw_bits(uint64_t key, uint64_t n) {
    return mix(mix(key + GOLDEN) + (n + 1) * GOLDEN);
}

bool draw_lost(uint64_t seed, uint64_t n, uint32_t loss_ppb) {
    if (loss_ppb == 0) {
        return false;
    }
    u128 scaled = (u128)draw_bits(seed ^ KEY_LOSS, n) * PPB;
    return (uint64_t)(scaled >> 64) < loss_ppb;
}

/* What from_table() makes of evenly drawn bits: even between each two neighbours. */
static void standardise_between(double *point) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < TABLE_SIZE; i++) {
        double a = point[i];
        double b = point[i + 1];
        sum += (a + b) / 2;
        squares += (a * a + a * b + b * b) / 3;
    }
    standardise(point, TABLE_SIZE + 1, sum / TABLE_SIZE, squares / TABLE_SIZE);
}

void draw_init(void) {
    static double pareto[TABLE_SIZE + 1];
    for (int i = 0; i <= TABLE_SIZE; i++) {
        /* The outermost points stand half an interval inside, where the quantile is finite. */
        double p = i == 0 ? 0.5 : i == TABLE_SIZE ? TABLE_SIZE - 0.5 : i;
        p /= TABLE_SIZE;
        normal_table[i] = (int32_t)lrint(normal_quantile(p) * (1 << FIXED_BITS));
        pareto[i] = pareto_quantile(p);
    }
    standardise_between(pareto);
    for (int i = 0; i <= TABLE_SIZE; i++) {
        pareto_table[i] = (int32_t)lrint(pareto[i] * (1 << FIXED_BITS));
    }
}

static int64_t from_table(const int32_t *table, uint64_t bits) {
    uint32_t slot = (uint32_t)(bits >> (64 - TABLE_BITS));
    int64_t part = (int64_t)((bits >> (64 - TABLE_BITS - FIXED_BITS)) & ((1u << FIXED_BITS) - 1));
    int64_t low = table[slot];
    int64_t high = table[slot + 1];
    return low + (high - low) * part / (1 << FIXED_BITS);
}

int64_t draw_jitter(uint64_t seed, uint64_t n, enum dist dist, uint64_t jitter_ns) {
    uint64_t bits = draw_bits(seed ^ KEY_JITTER, n);
    int64_t z;
    switch (dist) {
    case DIST_UNIFORM:
        z = (int64_t)(bits >> (63 - FIXED_BITS)) - (1 << FIXED_BITS);
        break;
    case DIST_PARETO:
        z = from_table(pareto_table, bits);
        break;
    case DIST_PARETONORMAL:
        /* Variance 1/16 + 9/16; 1326355 = 2^20 / sqrt(0.625) brings it back to 1. */
        z = from_table(normal_table, bits) +
            3 * from_table(pareto_table, draw_bits(seed ^ KEY_SECOND, n));
        z = z * 1326355 / (4 << FIXED_BITS);
        break;
    default:
        z = from_table(normal_table, bits);
        break;
    }
    return (int64_t)((i128)z * (int64_t)jitter_ns / (1 << FIXED_BITS));
}
