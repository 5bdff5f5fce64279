/* The pair table: two levels by destination under each source, memory straight from the system.
 *
 * The data thread must not enter malloc, and a table that is rehashed would hold packets up; pages
 * of zeroed memory that are only ever added need neither.
 */
#include "pairs.h"

#include <sys/mman.h>

#define SLAB_BYTES (1u << 20)
#define SLAB_HEAD 64u /* holds the address of the slab before */

static void *take(struct pairs *pairs, size_t bytes) {
    bytes = (bytes + 63u) & ~(size_t)63u;
    if (pairs->slab_left < bytes + SLAB_HEAD) {
        void *slab =
            mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (slab == MAP_FAILED) {
            return NULL;
        }
        *(uint8_t **)slab = pairs->slab;
        pairs->slab = slab;
        pairs->slab_left = SLAB_BYTES;
    }
    pairs->slab_left -= bytes;
    return pairs->slab + pairs->slab_left;
}

void pairs_destroy(struct pairs *pairs) {
    uint8_t *slab = pairs->slab;
    while (slab) {
        uint8_t *next = *(uint8_t **)(void *)slab;
        munmap(slab, SLAB_BYTES);
        slab = next;
    }
}

struct pair *pairs_get(struct pairs *pairs, uint32_t source, uint32_t dest) {
    struct pair_source *s = atomic_load_explicit(&pairs->source[source], memory_order_relaxed);
    if (!s) {
        s = take(pairs, sizeof *s);
        if (!s) {
            return NULL;
        }
        atomic_store_explicit(&pairs->source[source], s, memory_order_release);
    }
    struct pair_page *page = atomic_load_explicit(&s->page[dest / PAIR_FAN], memory_order_relaxed);
    if (!page) {
        page = take(pairs, sizeof *page);
        if (!page) {
            return NULL;
        }
        atomic_store_explicit(&s->page[dest / PAIR_FAN], page, memory_order_release);
    }
    struct pair *pair = &page->pair[dest % PAIR_FAN];
    pair->page = page;
    return pair;
}

static uint64_t packets(const struct pair *p) {
    return counter_get(&p->offered_pkts) + counter_get(&p->delivered_pkts) +
           counter_get(&p->drop_queue) + counter_get(&p->drop_loss) + counter_get(&p->drop_down) +
           counter_get(&p->drop_route);
}

static void report_page(struct pair_page *page, uint32_t source, uint32_t base, pair_visit *visit,
                        void *context) {
    uint64_t changes = atomic_load_explicit(&page->changes, memory_order_acquire);
    if (changes == page->seen) {
        return;
    }
    page->seen = changes;
    for (uint32_t i = 0; i < PAIR_FAN; i++) {
        struct pair *pair = &page->pair[i];
        uint64_t now = packets(pair);
        if (now != pair->reported) {
            pair->reported = now;
            visit(context, source, base + i, pair);
        }
    }
}

void pairs_report(struct pairs *pairs, uint32_t sources, pair_visit *visit, void *context) {
    for (uint32_t source = 0; source < sources; source++) {
        struct pair_source *s = atomic_load_explicit(&pairs->source[source], memory_order_acquire);
        for (uint32_t k = 0; s && k < PAIR_FAN; k++) {
            struct pair_page *page = atomic_load_explicit(&s->page[k], memory_order_acquire);
            if (page) {
                report_page(page, source, k * PAIR_FAN, visit, context);
            }
        }
    }
}

static void usage_of_page(struct pair_page *page, uint32_t source, uint32_t base, bool all,
                          pair_usage *visit, void *context) {
    uint64_t changes = atomic_load_explicit(&page->changes, memory_order_acquire);
    if (changes == page->usage_seen && page->waiting == 0 && !all) {
        return;
    }
    page->usage_seen = changes;
    page->waiting = 0;
    for (uint32_t i = 0; i < PAIR_FAN; i++) {
        if (counter_get(&page->pair[i].offered_pkts)) {
            page->waiting += visit(context, source, base + i);
        }
    }
}

void pairs_usage(struct pairs *pairs, uint32_t nodes, bool all, pair_usage *visit, void *context) {
    for (uint32_t source = 0; source < nodes; source++) {
        struct pair_source *s = atomic_load_explicit(&pairs->source[source], memory_order_acquire);
        for (uint32_t k = 0; s && k * PAIR_FAN < nodes; k++) {
            struct pair_page *page = atomic_load_explicit(&s->page[k], memory_order_acquire);
            if (page) {
                usage_of_page(page, source, k * PAIR_FAN, all, visit, context);
            }
        }
    }
}

void pair_drop(struct pair *pair, enum drop_cause cause, uint32_t count) {
    counter *const counters[] = {&pair->drop_queue, &pair->drop_loss, &pair->drop_down,
                                 &pair->drop_route};
    counter_add(counters[cause], count);
    pair_touch(pair);
}
