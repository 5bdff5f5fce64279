/* A bounded queue from one thread to one other, without locks. What is in a slot when it is put is
 * what the other thread finds there (release and acquire on the two counts). */
#ifndef PKTD_SPSC_H
#define PKTD_SPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct spsc {
    uint8_t *memory;
    size_t slot_bytes;
    size_t slots; /* a power of two */
    /* Of all time, each written by one side, apart so that the sides do not share a cache line. */
    _Alignas(64) _Atomic size_t put;
    _Alignas(64) _Atomic size_t taken;
};

static inline bool spsc_init(struct spsc *q, size_t slots, size_t slot_bytes) {
    *q = (struct spsc){.slot_bytes = slot_bytes, .slots = slots};
    q->memory = calloc(slots, slot_bytes);
    return q->memory;
}

static inline void spsc_destroy(struct spsc *q) {
    free(q->memory);
    q->memory = NULL;
}

static inline size_t spsc_count(const struct spsc *q) {
    size_t taken = atomic_load_explicit(&q->taken, memory_order_acquire);
    return atomic_load_explicit(&q->put, memory_order_acquire) - taken;
}

/* The putting side: the slot that is put next, NULL when there is no room. */
static inline void *spsc_room(const struct spsc *q) {
    size_t put = atomic_load_explicit(&q->put, memory_order_relaxed);
    if (put - atomic_load_explicit(&q->taken, memory_order_acquire) == q->slots) {
        return NULL;
    }
    return q->memory + (put & (q->slots - 1)) * q->slot_bytes;
}

static inline void spsc_put(struct spsc *q) {
    size_t put = atomic_load_explicit(&q->put, memory_order_relaxed);
    atomic_store_explicit(&q->put, put + 1, memory_order_release);
}

/* The taking side: the oldest slot, NULL when there is none. It stays until spsc_take. */
static inline void *spsc_first(const struct spsc *q) {
    size_t taken = atomic_load_explicit(&q->taken, memory_order_relaxed);
    if (atomic_load_explicit(&q->put, memory_order_acquire) == taken) {
        return NULL;
    }
    return q->memory + (taken & (q->slots - 1)) * q->slot_bytes;
}

static inline void spsc_take(struct spsc *q) {
    size_t taken = atomic_load_explicit(&q->taken, memory_order_relaxed);
    atomic_store_explicit(&q->taken, taken + 1, memory_order_release);
}

#endif
