/* The arithmetic of a queue. */
#include "common/tests/check.h"
#include "pktd/core/queue.h"

static void rate_is_exact(void) {
    static const uint64_t rates[] = {128000,     9999991,       300000000,
                                     1000000000, 4000000007ull, 39999999999ull};
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
        struct queue q = {.rate_bps = rates[k], .limit_bytes = 1 << 30};
        struct service service = {0};
        uint64_t bytes = 0;
        uint64_t random = 5;
        for (int i = 0; i < 100000; i++) {
            uint32_t size = (uint32_t)(40 + next_random(&random) % 1461);
            bytes += size;
            CHECK(queue_offer(&q, 1000, size, &service));
        }
        u128 want = (u128)bytes * 8 * NS_PER_S / rates[k];
        CHECK_EQ(service.end_ns - 1000, want);
    }
}

static void drop_tail(void) {
    struct queue q = {.rate_bps = 8000000, .limit_bytes = 3000}; /* 1 byte = 1 us */
    struct service s;
    CHECK(queue_offer(&q, 0, 1500, &s));
    CHECK_EQ(s.end_ns, 1500000);
    CHECK(queue_offer(&q, 0, 1500, &s));
    CHECK_EQ(s.start_ns, 1500000);
    CHECK(!queue_offer(&q, 0, 1, &s));
    CHECK(!queue_offer(&q, 999999, 1000, &s)); /* one ns too early */
    CHECK(queue_offer(&q, 1000000, 1000, &s));
    CHECK_EQ(s.end_ns, 4000000);
    CHECK_EQ(queue_backlog(q.rate_bps, q.free_ns, 1000000), 3000);
    CHECK_EQ(queue_backlog(q.rate_bps, q.free_ns, 4000000), 0);
    /* Idle again: it starts at once. */
    CHECK(queue_offer(&q, 5000000, 100, &s));
    CHECK_EQ(s.start_ns, 5000000);
}

static void no_queue_passes_one(void) {
    struct queue q = {.rate_bps = 8000000, .limit_bytes = 0};
    struct service s;
    CHECK(queue_offer(&q, 0, 1500, &s));
    CHECK(!queue_offer(&q, 1499999, 40, &s));
    CHECK(queue_offer(&q, 1500000, 40, &s));
}

static void unlimited_never_waits(void) {
    struct queue q = {.limit_bytes = 0};
    struct service s;
    for (uint64_t i = 0; i < 10; i++) {
        CHECK(queue_offer(&q, i, 65535, &s));
        CHECK_EQ(s.end_ns, i);
    }
}

static void rate_changes_keep_the_work(void) {
    struct queue q = {.rate_bps = 8000000, .limit_bytes = 1 << 20};
    struct service s;
    for (int i = 0; i < 10; i++) {
        CHECK(queue_offer(&q, 0, 1000, &s)); /* ends at 10 ms */
    }
    CHECK_EQ(queue_retimed(s.end_ns, 2000000, 8000000, 4000000), 18000000);
    CHECK_EQ(queue_retimed(1000000, 2000000, 8000000, 4000000), 1000000);
    queue_set_rate(&q, 2000000, 4000000);
    CHECK_EQ(q.free_ns, 18000000);
    queue_set_rate(&q, 2000000, 0);
    CHECK_EQ(q.free_ns, 2000000);
    queue_set_rate(&q, 3000000, 8000000);
    CHECK(queue_offer(&q, 3000000, 1000, &s));
    CHECK_EQ(s.end_ns, 4000000);
    /* The slowest rate and the fullest queue stay within 64 bits. */
    struct queue slow = {.rate_bps = RATE_LIMIT_BPS, .limit_bytes = QUEUE_LIMIT_BYTES};
    slow.free_ns = 1000 * NS_PER_S;
    queue_set_rate(&slow, 0, 1);
    CHECK(slow.free_ns > 1000 * NS_PER_S && slow.free_ns < UINT64_MAX / 2);
}

void test_queues(void) {
    rate_is_exact();
    drop_tail();
    no_queue_passes_one();
    unlimited_never_waits();
    rate_changes_keep_the_work();
}
