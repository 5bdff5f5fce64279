/* Routing tables that grow beside the data thread and change only in it. */
#include "fib.h"

#include <stdlib.h>

bool fib_prepare(struct fib *fib, uint32_t node, uint32_t first, uint32_t last) {
    struct fib_node *n = atomic_load_explicit(&fib->node[node], memory_order_relaxed);
    if (!n) {
        n = calloc(1, sizeof *n);
        if (!n) {
            return false;
        }
        atomic_store_explicit(&fib->node[node], n, memory_order_release);
    }
    for (uint32_t i = first / FIB_FAN; i <= last / FIB_FAN; i++) {
        if (atomic_load_explicit(&n->page[i], memory_order_relaxed)) {
            continue;
        }
        struct fib_page *page = calloc(1, sizeof *page);
        if (!page) {
            return false;
        }
        atomic_store_explicit(&n->page[i], page, memory_order_release);
    }
    return true;
}

void fib_set(struct fib *fib, uint32_t node, uint32_t first, uint32_t last, uint32_t link) {
    struct fib_node *n = atomic_load_explicit(&fib->node[node], memory_order_acquire);
    for (uint32_t dest = first; dest <= last; dest++) {
        struct fib_page *page =
            atomic_load_explicit(&n->page[dest / FIB_FAN], memory_order_acquire);
        page->link[dest % FIB_FAN] = link + 1u;
    }
}

void fib_destroy(struct fib *fib) {
    for (uint32_t i = 0; i < NODE_LIMIT; i++) {
        struct fib_node *n = atomic_load_explicit(&fib->node[i], memory_order_relaxed);
        for (uint32_t k = 0; n && k < FIB_FAN; k++) {
            free(atomic_load_explicit(&n->page[k], memory_order_relaxed));
        }
        free(n);
    }
}
