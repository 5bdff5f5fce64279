/* Other draws from a moment on: from then on each link draws by its seed XOR the moment's key. What
 * the engine does before that moment is the same with and without it. */
#ifndef PKTD_RESEED_H
#define PKTD_RESEED_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define RESEED_LIMIT 16

struct reseeds {
    struct {
        uint64_t at_ns; /* of CLOCK_MONOTONIC, ascending */
        uint64_t key;
    } at[RESEED_LIMIT];
    _Atomic uint32_t count; /* written last: the data thread reads what is there by then */
};

/* In place of those that were there, before the moment of any of them. */
static inline void reseeds_set(struct reseeds *all, const struct reseeds *other) {
    atomic_store_explicit(&all->count, 0, memory_order_release);
    memcpy(all->at, other->at, sizeof all->at);
    atomic_store_explicit(&all->count, other->count, memory_order_release);
}

/* The seed of a link's draws at a moment. */
static inline uint64_t reseeded(const struct reseeds *all, uint64_t seed, uint64_t at_ns) {
    uint32_t count = atomic_load_explicit(&all->count, memory_order_acquire);
    while (count && at_ns < all->at[count - 1].at_ns) {
        count--;
    }
    return count ? seed ^ all->at[count - 1].key : seed;
}

#endif
