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

/* A full queue holds a packet up for q / C, however little of C is left for it; over any length of
 * time no more than q and what is left of C get through. */
static void what_waits_leaves_at_the_capacity(void) {
    struct queue q = {.rate_bps = 2000000, .capacity_bps = 8000000, .limit_bytes = 10000};
    struct service s = {0};
    uint64_t bytes = 0, before = 0;
    for (uint64_t at = 0; at < 4 * NS_PER_S; at += 500000) { /* 16 Mb/s */
        if (queue_offer(&q, at, 1000, &s)) {
            bytes += 1000;
            CHECK(s.start_ns >= at && s.end_ns > s.start_ns && s.end_ns >= before);
            CHECK(s.end_ns - at <= 10 * 1000000); /* 10,000 bytes at 8 Mb/s */
            before = s.end_ns;
        }
    }
    CHECK(bytes >= 1000000 && bytes <= 1000000 + 10000);
    CHECK_EQ(queue_pace(&q), 8000000);
    q.capacity_bps = 0;
    CHECK_EQ(queue_pace(&q), 2000000);
}

/* Against the same in fractions: random sizes and gaps, and a rate that changes in between. */
static void a_shared_queue_is_the_fluid_one(void) {
    struct queue q = {.rate_bps = 3000000, .capacity_bps = 10000000, .limit_bytes = 20000};
    double backlog = 0, rate = 3e6;
    uint64_t random = 11, at = 0, last = 0;
    for (int i = 0; i < 200000; i++) {
        uint64_t gap = next_random(&random) % 3000000;
        at += gap;
        backlog -= rate / 8e9 * (double)gap;
        backlog = backlog > 0 ? backlog : 0;
        if (i % 1000 == 999) {
            rate = i % 2000 == 999 ? 7e6 : 3e6;
            queue_set_rate(&q, at, (uint64_t)rate);
        }
        uint32_t size = (uint32_t)(40 + next_random(&random) % 1461);
        struct service s;
        bool fits = queue_offer(&q, at, size, &s);
        double room = 20000 - backlog - size;
        CHECK(fits == (room >= 0 || backlog == 0) || (room > -1 && room < 1));
        if (!fits) {
            continue;
        }
        backlog += size;
        double wait = backlog * 8e9 / 1e7 - (double)(s.end_ns - at);
        CHECK(wait > -20 && wait < 20);
        CHECK(s.end_ns >= last);
        last = s.end_ns;
    }
}

/* What is too much leaves at the capacity; then all is as if it had never been there. */
static void a_shorter_queue_is_soon_as_long_as_it_may_be(void) {
    struct queue q = {.rate_bps = 1000000, .capacity_bps = 10000000, .limit_bytes = 250000};
    struct service s;
    for (int i = 0; i < 250; i++) {
        CHECK(queue_offer(&q, 0, 1000, &s));
    }
    CHECK_EQ(s.end_ns, 200000000); /* 250 KB at 10 Mb/s */
    queue_set_limit(&q, 0, 25000);
    CHECK(!queue_offer(&q, 179999999, 1000, &s)); /* 225 KB take 180 ms */
    CHECK_EQ(queue_backlog(q.rate_bps, q.free_ns, 180000000), 25000);
    CHECK(queue_offer(&q, 188000000, 1000, &s));
    CHECK(s.end_ns >= 200000000 && s.end_ns - 188000000 <= 20000000);
    queue_set_limit(&q, 188000000, 250000);
    CHECK_EQ(queue_backlog(q.rate_bps, q.free_ns, 188000000), 25000);
    struct queue alone = {.rate_bps = 1000000, .limit_bytes = 250000};
    CHECK(queue_offer(&alone, 0, 100000, &s));
    queue_set_limit(&alone, 0, 1000);
    CHECK_EQ(alone.free_ns, 800000000);
}

void test_queues(void) {
    rate_is_exact();
    drop_tail();
    no_queue_passes_one();
    unlimited_never_waits();
    rate_changes_keep_the_work();
    what_waits_leaves_at_the_capacity();
    a_shared_queue_is_the_fluid_one();
    a_shorter_queue_is_soon_as_long_as_it_may_be();
}
