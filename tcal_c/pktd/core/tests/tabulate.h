/* Distributions as tables, for tests that compare draws with them. */
#ifndef TESTS_TABULATE_H
#define TESTS_TABULATE_H

#include "common/quantile.h"

enum { PARTS = 4096 };

/* The inverse distribution function at the ends of PARTS parts, with mean 0 and deviation 1. */
static inline void tabulate(double *at, double (*inverse)(double)) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i <= PARTS; i++) {
        at[i] = inverse((i == 0 ? 0.5 : i == PARTS ? PARTS - 0.5 : i) / PARTS);
    }
    for (int i = 0; i < PARTS; i++) {
        sum += (at[i] + at[i + 1]) / 2;
        squares += (at[i] * at[i] + at[i] * at[i + 1] + at[i + 1] * at[i + 1]) / 3;
    }
    standardise(at, PARTS + 1, sum / PARTS, squares / PARTS);
}

#endif
