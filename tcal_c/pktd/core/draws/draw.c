/* Loss and jitter draws.
 *
 * Bits: the n-th output of SplitMix64 (Steele, Lea, Flood 2014), which can be computed directly
 * from its counter; the key is mixed first, so that neighbouring seeds share nothing.
 *
 * Jitter is a process in time, not a draw for each packet, so that its distribution does not depend
 * on how closely packets follow each other. It is a moving maximum (Deheuvels 1983): in each cell
 * of two jitters something new rises, and from where it is it falls by half a nanosecond in each
 * nanosecond; the deviation is the highest of all. With F the distribution wanted, what is new
 * after a fall by f would be has the distribution F(x) / F(x + f), so the product over all cells is
 * F at every moment. (That is a distribution because log F is concave, which holds for all of
 * these.) Nothing falls faster than time goes on, so no packet overtakes another, and the order
 * changes no delay. docs/pktd.md, "Delay and jitter", has it in full.
 *
 * Distributions are tables of the inverse with 4,096 intervals, linear in between, as fixed-point
 * integers: the same draw gives the same nanoseconds on every machine. normal has the jitter as its
 * standard deviation; uniform covers +-jitter; pareto is a Pareto of shape 3, cut where the table
 * ends, shifted and scaled to mean 0 and standard deviation jitter; paretonormal is a quarter of
 * the first plus three quarters of the last, of one process each, with the same deviation.
 */
#include "draw.h"

#include "process.h"

#include "common/quantile.h"

#include <math.h>
#include <string.h>

#define KEY_LOSS 0x6C6F7373ull       /* "loss" */
#define KEY_FLOW 0x666C6F77ull       /* "flow" */
#define KEY_SECOND 0x7365636F6E64ull /* "second" */

static int32_t normal_table[DRAW_PARTS + 1];
static int32_t uniform_table[DRAW_PARTS + 1];
static int32_t pareto_table[DRAW_PARTS + 1];

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

uint64_t draw_flow(const uint64_t *numbers, size_t count) {
    uint64_t flow = 0;
    for (size_t i = 0; i < count; i++) {
        flow = draw_bits(flow, numbers[i]);
    }
    return flow;
}

uint64_t draw_share(uint64_t seed, uint64_t flow) {
    return draw_bits(seed ^ KEY_FLOW, flow);
}

bool draw_happens(uint64_t key, uint64_t n, uint64_t share_ppb) {
    return share_ppb && (uint64_t)((u128)draw_bits(key, n) * PPB >> 64) < share_ppb;
}

bool draw_lost(uint64_t seed, bool probe, uint64_t n, uint32_t loss_ppb) {
    return draw_happens(seed ^ (probe ? KEY_PROBE : KEY_LOSS), n, loss_ppb);
}

/* What quantile() makes of evenly drawn bits: even between each two neighbours. */
static void standardise_between(double *point) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < DRAW_PARTS; i++) {
        double a = point[i];
        double b = point[i + 1];
        sum += (a + b) / 2;
        squares += (a * a + a * b + b * b) / 3;
    }
    standardise(point, DRAW_PARTS + 1, sum / DRAW_PARTS, squares / DRAW_PARTS);
}

void draw_init(void) {
    static double pareto[DRAW_PARTS + 1];
    for (int i = 0; i <= DRAW_PARTS; i++) {
        /* The outermost points stand half an interval inside, where the quantile is finite. */
        double p = i == 0 ? 0.5 : i == DRAW_PARTS ? DRAW_PARTS - 0.5 : i;
        p /= DRAW_PARTS;
        normal_table[i] = (int32_t)lrint(normal_quantile(p) * ONE);
        uniform_table[i] = (2 * i - DRAW_PARTS) * (ONE / DRAW_PARTS);
        pareto[i] = pareto_quantile(p);
    }
    standardise_between(pareto);
    for (int i = 0; i <= DRAW_PARTS; i++) {
        pareto_table[i] = (int32_t)lrint(pareto[i] * ONE);
    }
}

/* Of a normal and a Pareto: variance 1/16 + 9/16; 1326355 = 2^20 / sqrt(0.625) makes it 1. */
static int64_t mixed(int64_t normal, int64_t pareto) {
    return (normal + 3 * pareto) * 1326355 / (4 << FIXED_BITS);
}

int64_t draw_scaled(int64_t deviation, uint64_t jitter_ns) {
    return (int64_t)((i128)deviation * (int64_t)jitter_ns / ONE);
}

int32_t draw_alone(uint64_t seed, bool probe, uint64_t n, enum dist dist) {
    uint64_t key = alone_key(seed, probe);
    uint64_t one = draw_bits(key, n) >> 32;
    switch (dist) {
    case DIST_UNIFORM:
        return (int32_t)quantile(uniform_table, one);
    case DIST_PARETO:
        return (int32_t)quantile(pareto_table, one);
    case DIST_PARETONORMAL:
        return (int32_t)mixed(quantile(normal_table, one),
                              quantile(pareto_table, draw_bits(key ^ KEY_SECOND, n) >> 32));
    default:
        return (int32_t)quantile(normal_table, one);
    }
}

int64_t draw_jitter(uint64_t seed, uint64_t at_ns, enum dist dist, uint64_t jitter_ns) {
    if (jitter_ns == 0) {
        return 0;
    }
    uint64_t cell_ns = 2 * jitter_ns;
    uint64_t cell = at_ns / cell_ns;
    int64_t fall = (int64_t)(((u128)(at_ns % cell_ns) << FIXED_BITS) / cell_ns);
    int64_t z;
    switch (dist) {
    case DIST_UNIFORM:
        z = process(uniform_table, seed ^ KEY_JITTER, cell, fall, ONE);
        break;
    case DIST_PARETO:
        z = process(pareto_table, seed ^ KEY_JITTER, cell, fall, ONE);
        break;
    case DIST_PARETONORMAL:
        z = mixed(process(normal_table, seed ^ KEY_JITTER, cell, fall, ONE),
                  process(pareto_table, seed ^ KEY_SECOND, cell, fall, ONE));
        break;
    default:
        z = process(normal_table, seed ^ KEY_JITTER, cell, fall, ONE);
        break;
    }
    return draw_scaled(z, jitter_ns);
}
