/* Where the parts of a distribution of jitter lie, for whoever makes a table of it (docs/pktd.md,
 * "Delay and jitter"). One place, so that both datapaths delay alike. */
#ifndef COMMON_QUANTILE_H
#define COMMON_QUANTILE_H

#include <math.h>
#include <stddef.h>

/* The x with P(X <= x) = p for a standard normal, 0 < p < 1, by bisection. */
static inline double normal_quantile(double p) {
    double low = -9;
    double high = 9;
    for (int i = 0; i < 48; i++) {
        double middle = (low + high) / 2;
        if (0.5 * erfc(-middle / sqrt(2)) < p) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (low + high) / 2;
}

/* Shape 3, scale 1 has mean 3/2 and variance 3/4. A table ends before its tail does, and with it go
 * some 7 % of the deviation: whoever makes one asks for standardise() as well. */
static inline double pareto_quantile(double p) {
    return (pow(1 - p, -1.0 / 3) - 1.5) / sqrt(0.75);
}

/* Moves and stretches values to mean 0 and standard deviation 1; the mean and the mean square of
 * what is drawn from them are the caller's to know. */
static inline void standardise(double *value, size_t count, double mean, double square) {
    double deviation = sqrt(square - mean * mean);
    for (size_t i = 0; i < count; i++) {
        value[i] = (value[i] - mean) / deviation;
    }
}

#endif
