/* Log-linear slots: the exponent and the next three bits of a value. */
#include "histogram.h"

static uint32_t slot_of(uint64_t value) {
    if (value < HISTOGRAM_STEPS) {
        return (uint32_t)value;
    }
    uint32_t exponent = 63u - (uint32_t)__builtin_clzll(value);
    uint32_t step = (uint32_t)(value >> (exponent - 3)) & (HISTOGRAM_STEPS - 1);
    uint32_t slot = (exponent - 2) * HISTOGRAM_STEPS + step;
    return slot < HISTOGRAM_SLOTS ? slot : HISTOGRAM_SLOTS - 1;
}

static uint64_t upper_edge(uint32_t slot) {
    if (slot < HISTOGRAM_STEPS) {
        return slot;
    }
    uint32_t exponent = slot / HISTOGRAM_STEPS + 2;
    uint64_t step = slot % HISTOGRAM_STEPS;
    return ((HISTOGRAM_STEPS + step + 1) << (exponent - 3)) - 1;
}

void histogram_add(struct histogram *h, uint64_t value) {
    counter_add(&h->slot[slot_of(value)], 1);
    if (value > counter_get(&h->highest)) {
        counter_set(&h->highest, value);
    }
}

uint64_t histogram_quantile(const struct histogram *h, uint32_t permille) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < HISTOGRAM_SLOTS; i++) {
        total += counter_get(&h->slot[i]);
    }
    uint64_t below = 0;
    for (uint32_t i = 0; i < HISTOGRAM_SLOTS; i++) {
        below += counter_get(&h->slot[i]);
        if (below && below * 1000 >= total * permille) {
            return min_u64(upper_edge(i), counter_get(&h->highest));
        }
    }
    return 0;
}
