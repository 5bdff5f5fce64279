/* A number with one writer, the data thread, that the control thread may read at any moment. */
#ifndef PKTD_COUNTER_H
#define PKTD_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

static inline void counter_set(counter *c, uint64_t v) {
    atomic_store_explicit(c, v, memory_order_relaxed);
}

static inline uint64_t counter_get(const counter *c) {
    return atomic_load_explicit(c, memory_order_relaxed);
}

/* Not an atomic read-modify-write: there is only one writer. */
static inline void counter_add(counter *c, uint64_t n) {
    counter_set(c, counter_get(c) + n);
}

#endif
