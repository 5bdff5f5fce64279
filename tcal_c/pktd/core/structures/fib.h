/* Next hops: the link by which packets for an end point leave a node, or SPREAD_FIRST and the
 * number of a group of links. */
#ifndef PKTD_FIB_H
#define PKTD_FIB_H

#include "common/limits.h"

#include <stdatomic.h>

#define FIB_FAN 256u

struct fib_page {
    uint32_t link[FIB_FAN]; /* link (or group) + 1; 0 = unreachable, so that zeroed memory is a
                               valid page */
};

struct fib_node {
    _Atomic(struct fib_page *) page[FIB_FAN];
};

/* Two levels of 256 by destination, per node. The control thread adds empty pages (which mean what
 * no page means), the data thread alone writes entries. */
struct fib {
    _Atomic(struct fib_node *) node[NODE_LIMIT];
};

/* Makes room for entries of `node` towards first..last. Control thread. False: out of memory. */
bool fib_prepare(struct fib *fib, uint32_t node, uint32_t first, uint32_t last);

/* Data thread; the pages must have been prepared. `link` may be LINK_NONE. */
void fib_set(struct fib *fib, uint32_t node, uint32_t first, uint32_t last, uint32_t link);

void fib_destroy(struct fib *fib);

/* LINK_NONE when there is no route. Data thread. */
static inline uint32_t fib_get(const struct fib *fib, uint32_t node, uint32_t dest) {
    struct fib_node *n = atomic_load_explicit(&fib->node[node], memory_order_acquire);
    if (!n) {
        return LINK_NONE;
    }
    struct fib_page *page = atomic_load_explicit(&n->page[dest / FIB_FAN], memory_order_acquire);
    return page ? page->link[dest % FIB_FAN] - 1u : LINK_NONE;
}

#endif
