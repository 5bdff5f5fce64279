/* Delay tables from the same formulas as pktd's draws (docs/pktd.md, "Delay and jitter").
 *
 * netem picks one entry at random with equal chances, so a table holds the quantiles at the middle
 * of 4,096 equal parts. For paretonormal the two draws are paired by reversing the bits of the
 * index, which covers all combinations evenly (Hammersley's points) without a generator.
 */
#include "dist.h"

#include "common/quantile.h"

#include <math.h>

#define TABLE_BITS 12
#define NETEM_SCALE 8192 /* NETEM_DIST_SCALE */
#define PARETO_SCALE 6   /* its last quantile is 23 jitters away, an entry reaches 4 */

static int16_t tables[TCAL_DIST_COUNT][TCAL_TABLE_SIZE];

static double middle_of(uint32_t part) {
    return ((double)part + 0.5) / TCAL_TABLE_SIZE;
}

static uint32_t reversed(uint32_t index) {
    uint32_t result = 0;
    for (int bit = 0; bit < TABLE_BITS; bit++) {
        result |= (index >> bit & 1) << (TABLE_BITS - 1 - bit);
    }
    return result;
}

uint32_t tcal_dist_scale(enum tcal_dist dist) {
    return dist == TCAL_DIST_PARETO || dist == TCAL_DIST_PARETONORMAL ? PARETO_SCALE : 1;
}

static int16_t entry(double deviation, enum tcal_dist dist) {
    return (int16_t)lrint(deviation * NETEM_SCALE / tcal_dist_scale(dist));
}

/* netem draws each value as often as any other. */
static void fill(enum tcal_dist dist, double *value) {
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < TCAL_TABLE_SIZE; i++) {
        sum += value[i];
        squares += value[i] * value[i];
    }
    if (dist != TCAL_DIST_UNIFORM) { /* whose jitter is its width */
        standardise(value, TCAL_TABLE_SIZE, sum / TCAL_TABLE_SIZE, squares / TCAL_TABLE_SIZE);
    }
    for (uint32_t i = 0; i < TCAL_TABLE_SIZE; i++) {
        tables[dist][i] = entry(value[i], dist);
    }
}

void tcal_dist_init(void) {
    static double value[TCAL_DIST_COUNT][TCAL_TABLE_SIZE];
    for (uint32_t i = 0; i < TCAL_TABLE_SIZE; i++) {
        double normal = normal_quantile(middle_of(i));
        value[TCAL_DIST_NORMAL][i] = normal;
        value[TCAL_DIST_UNIFORM][i] = 2 * middle_of(i) - 1;
        value[TCAL_DIST_PARETO][i] = pareto_quantile(middle_of(i));
        value[TCAL_DIST_PARETONORMAL][i] = normal + 3 * pareto_quantile(middle_of(reversed(i)));
    }
    for (int dist = 0; dist < TCAL_DIST_COUNT; dist++) {
        fill((enum tcal_dist)dist, value[dist]);
    }
}

const int16_t *tcal_dist_table(enum tcal_dist dist) {
    return tables[dist];
}
