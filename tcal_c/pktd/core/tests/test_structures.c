/* Heap, address table, routing table, histogram, pacing: against simple references. */
#include "common/addr.h"
#include "common/tests/check.h"
#include "pktd/core/structures/fib.h"
#include "pktd/core/structures/heap.h"
#include "pktd/core/structures/histogram.h"
#include "pktd/core/pace.h"

#define NODES 300

struct reference {
    struct heap_node node;
    uint64_t due;
    uint64_t seq;
};

static struct reference *least(struct reference *all) {
    struct reference *best = NULL;
    for (int i = 0; i < NODES; i++) {
        struct reference *r = &all[i];
        if (r->node.at != HEAP_OUT &&
            (!best || r->due < best->due || (r->due == best->due && r->seq < best->seq))) {
            best = r;
        }
    }
    return best;
}

/* Random puts, moves and removals: the top is always the least. */
static void heap_agrees(void) {
    static struct reference all[NODES];
    struct heap h = {0};
    uint64_t random = 42;
    free(heap_reserve(&h, malloc(NODES / 2 * sizeof(struct heap_entry)), NODES / 2));
    for (int i = 0; i < NODES; i++) {
        all[i].node.at = HEAP_OUT;
    }
    for (uint64_t step = 0; step < 20000; step++) {
        struct reference *r = &all[next_random(&random) % (step < 500 ? NODES / 2 : NODES)];
        if (step == 500) {
            free(heap_reserve(&h, malloc(NODES * sizeof(struct heap_entry)), NODES));
        }
        if (next_random(&random) % 3) {
            r->due = next_random(&random) % 50;
            r->seq = step;
            heap_put(&h, &r->node, r->due, r->seq);
        } else {
            heap_remove(&h, &r->node);
        }
        const struct heap_entry *top = heap_top(&h);
        struct reference *want = least(all);
        CHECK((top == NULL) == (want == NULL));
        CHECK(!top || top->node == &want->node);
    }
    free(h.entry);
}

static struct addr address(uint64_t n) {
    struct addr a = {.version = n % 2 ? 4 : 6};
    a.bytes[a.version == 4 ? 3 : 15] = (uint8_t)n;
    a.bytes[a.version == 4 ? 2 : 14] = (uint8_t)(n >> 8);
    return a;
}

static void addresses_agree(void) {
    enum { COUNT = 400 };
    static uint32_t owner[COUNT];
    struct addr_table t = {calloc(1024, sizeof(struct addr_slot)), 1024};
    uint64_t random = 7;
    for (int i = 0; i < COUNT; i++) {
        owner[i] = NODE_NONE;
    }
    for (int step = 0; step < 30000; step++) {
        uint64_t n = next_random(&random) % COUNT;
        uint32_t node = (uint32_t)(next_random(&random) % 5);
        struct addr a = address(n);
        if (next_random(&random) % 2) {
            addr_put(&t, &a, node);
            owner[n] = node;
        } else {
            addr_drop(&t, &a, node);
            owner[n] = owner[n] == node ? NODE_NONE : owner[n];
        }
        if (step == 15000) {
            free(addr_reserve(&t, calloc(4096, sizeof(struct addr_slot)), 4096));
        }
        n = next_random(&random) % COUNT;
        a = address(n);
        CHECK_EQ(addr_find(&t, &a), owner[n]);
    }
    free(t.slot);
}

static void routes_are_kept(void) {
    struct fib *fib = calloc(1, sizeof *fib);
    CHECK(fib);
    CHECK_EQ(fib_get(fib, 3, 5), LINK_NONE);
    CHECK(fib_prepare(fib, 3, 250, 600));
    CHECK_EQ(fib_get(fib, 3, 300), LINK_NONE);
    fib_set(fib, 3, 250, 600, 0);
    CHECK_EQ(fib_get(fib, 3, 249), LINK_NONE);
    CHECK_EQ(fib_get(fib, 3, 250), 0);
    CHECK_EQ(fib_get(fib, 3, 600), 0);
    CHECK_EQ(fib_get(fib, 3, 601), LINK_NONE);
    fib_set(fib, 3, 300, 300, LINK_NONE);
    CHECK_EQ(fib_get(fib, 3, 300), LINK_NONE);
    CHECK(fib_prepare(fib, NODE_LIMIT - 1, 0, NODE_LIMIT - 1));
    fib_set(fib, NODE_LIMIT - 1, NODE_LIMIT - 1, NODE_LIMIT - 1, LINK_LIMIT - 1);
    CHECK_EQ(fib_get(fib, NODE_LIMIT - 1, NODE_LIMIT - 1), LINK_LIMIT - 1);
    fib_destroy(fib);
    free(fib);
}

static void quantiles_are_close(void) {
    static struct histogram h;
    CHECK_EQ(histogram_quantile(&h, 500), 0);
    for (uint64_t i = 1; i <= 10000; i++) {
        histogram_add(&h, i * 100);
    }
    uint64_t half = histogram_quantile(&h, 500);
    CHECK(half >= 500000 && half <= 562500);
    uint64_t most = histogram_quantile(&h, 990);
    CHECK(most >= 990000 && most <= 1000000);
    histogram_add(&h, UINT64_MAX);
    CHECK_EQ(counter_get(&h.highest), UINT64_MAX);
}

static void sleeps_end_before_the_due_time(void) {
    struct pace p;
    pace_init(&p, 0, 1);
    CHECK_EQ(pace_sleep(&p, 1000, 1000, 0), 0);
    uint64_t sleep = pace_sleep(&p, 0, 10000000, 0);
    CHECK(sleep < 10000000 && sleep >= 10000000 - 80000);
    CHECK_EQ(pace_sleep(&p, 0, 20000, 0), 0);
    /* Spinning all the time uses the budget up; then it sleeps to the end. */
    uint64_t t = 0;
    for (int i = 0; i < 1000; i++, t += 20000) {
        pace_sleep(&p, t, t + 20000, 0);
        pace_spun(&p, t, t + 20000);
    }
    uint64_t before = p.spun_ns;
    CHECK(before <= 20000000);
    p.may_spin_ns = 0;
    p.window_ns = t;
    CHECK_EQ(pace_sleep(&p, t, t + 20000, 0), 20000);
    /* Late wake-ups lengthen the spin, early ones shorten it slowly. */
    uint64_t wake = p.wake_ns;
    pace_woke(&p, t, t + 10, t + 1000000, true);
    CHECK(p.wake_ns > wake);
    wake = p.wake_ns;
    pace_woke(&p, t, t + 10, t + 10, true);
    CHECK(p.wake_ns < wake);
    pace_wrote(&p, 1000000000);
    CHECK(pace_lead(&p) <= 10000);
}

/* Something is always due in 50 us, and sleeps end late: how much of a second is spun away? */
static uint64_t spun_in_a_second(uint32_t sharers) {
    struct pace p;
    uint64_t spun = 0;
    pace_init(&p, 0, sharers);
    for (uint64_t t = 0; t < NS_PER_S; t += 50000) {
        if (pace_sleep(&p, t, t + 50000, 0)) {
            pace_woke(&p, t, t, t + 50000, true);
        } else {
            pace_spun(&p, t, t + 50000);
            spun += 50000;
        }
    }
    return spun;
}

static void engines_share_the_spin(void) {
    uint64_t alone = spun_in_a_second(1);
    CHECK(alone > NS_PER_S / 2 && alone <= NS_PER_S * 61 / 100);
    for (uint32_t sharers = 2; sharers <= 8; sharers *= 2) {
        uint64_t shared = spun_in_a_second(sharers);
        CHECK(shared > alone / sharers / 2 && shared <= NS_PER_S * 61 / 100 / sharers);
    }
}

void test_structures(void) {
    heap_agrees();
    addresses_agree();
    routes_are_kept();
    quantiles_are_close();
    sleeps_end_before_the_due_time();
    engines_share_the_spin();
}
