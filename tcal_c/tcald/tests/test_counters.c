/* What has moved, from the kernel's counters to the lines of the protocol. */
#include "bench.h"
#include "common/tests/check.h"
#include "suites.h"

static void moved_paths_are_told_once(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 3);
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 0");
    *kernel_stats_of(bench_class(1)) = (struct kernel_stats){.bytes = 3000, .packets = 2};
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 2 2 3000 0 0 0");
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 0");
    CHECK_TEXT(bench_ask(&b, "usage all"), "ok 1\n0 2 2 3000 0 0 0");
    /* Waiting packets and drops of the queue show when the class was held up. */
    *kernel_stats_of(bench_class(0)) =
        (struct kernel_stats){.bytes = 1500, .packets = 1, .qlen = 4, .overlimits = 1};
    *kernel_stats_of(bench_fifo(0)) = (struct kernel_stats){.backlog = 6000, .drops = 9};
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 1 1500 9 0 6000");
    kernel_stats_of(bench_fifo(0))->backlog = 0;
    kernel_stats_of(bench_class(0))->qlen = 0;
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 1 1500 9 0 0");
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 0");
    CHECK_TEXT(bench_ask(&b, "stats pairs"),
               "ok 2\n0 1 10 1500 1 1500 9 0 0 0\n0 2 2 3000 2 3000 0 0 0 0");
    CHECK_TEXT(bench_ask(&b, "stats links"), "ok 0");
    bench_end(&b);
}

static void losses_are_what_netem_drops_beyond_the_queue(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 1);
    bench_do(&b, "path 0 1 loss=1000000");
    CHECK(bench_commit(&b));
    *kernel_stats_of(bench_class(0)) = (struct kernel_stats){.bytes = 1, .packets = 1, .drops = 5};
    *kernel_stats_of(bench_fifo(0)) = (struct kernel_stats){.drops = 3};
    *kernel_stats_of(bench_netem(0)) = (struct kernel_stats){.drops = 8};
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 1 1 3 5 0");
    bench_end(&b);
}

/* netem counts the drops of the queue behind it, too, but is only asked when packets may be lost by
 * draw, or in a dump of all: what it says late is no loss. */
static void drops_that_netem_tells_later_are_no_losses(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 1);
    *kernel_stats_of(bench_class(0)) = (struct kernel_stats){.packets = 1, .overlimits = 1};
    *kernel_stats_of(bench_fifo(0)) = (struct kernel_stats){.drops = 50};
    *kernel_stats_of(bench_netem(0)) = (struct kernel_stats){.drops = 50};
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 1 0 50 0 0");
    bench_do(&b, "path 0 1 loss=1000000");
    CHECK(bench_commit(&b));
    kernel_stats_of(bench_class(0))->packets = 2;
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 2 0 50 0 0");
    /* One between the two answers: told once, as whatever it was taken for first. */
    kernel_stats_of(bench_class(0))->packets = 3;
    kernel_stats_of(bench_fifo(0))->drops = 52;
    kernel_stats_of(bench_netem(0))->drops = 51;
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 3 0 52 0 0");
    kernel_stats_of(bench_class(0))->packets = 4;
    kernel_stats_of(bench_netem(0))->drops = 53;
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 4 0 52 1 0");
    bench_end(&b);
}

/* Numbers never fall, whatever happens to the objects that count. */
static void counters_outlive_their_objects(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 2);
    *kernel_stats_of(bench_class(0)) =
        (struct kernel_stats){.bytes = 100, .packets = 1, .overlimits = 1};
    *kernel_stats_of(bench_fifo(0)) = (struct kernel_stats){.drops = 2};
    bench_do(&b, "path 0 1 up=0");
    CHECK(bench_commit(&b));
    *kernel_stats_of(bench_hole(0)) = (struct kernel_stats){.drops = 7};
    kernel_stats_of(bench_class(0))->drops = 7;
    CHECK_TEXT(bench_ask(&b, "stats pairs"), "ok 1\n0 1 10 100 1 100 2 0 7 0");
    bench_do(&b, "path 0 1 up=1");
    CHECK(bench_commit(&b));
    kernel_stats_of(bench_class(0))->bytes = 300;
    kernel_stats_of(bench_class(0))->packets = 3;
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 3 300 2 0 0");
    /* The instance is made anew: another port, the same path. */
    bench_do(&b, "unbind 0");
    CHECK(bench_commit(&b));
    bench_do(&b, "detach 0");
    bench_do(&b, BENCH_ATTACH);
    bench_do(&b, "bind 0 0");
    CHECK(bench_commit(&b));
    /* Before it was bound every node had a class, the first its own. */
    *kernel_stats_of(bench_class(1)) = (struct kernel_stats){.bytes = 1000, .packets = 10};
    *kernel_stats_of(bench_class(2)) = (struct kernel_stats){.bytes = 1000, .packets = 10};
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 2\n0 1 13 1300 2 0 0\n0 2 10 1000 0 0 0");
    bench_end(&b);
}

static void pairs_without_a_path_are_counted(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 1);
    bench_do(&b, "node 2 ip=10.77.7.7");
    CHECK(bench_commit(&b));
    kernel_stats_of(bench_class(1))->drops = 4;
    kernel_stats_of(bench_hole(1))->drops = 4;
    CHECK_TEXT(bench_ask(&b, "usage all"), "ok 0");
    CHECK_TEXT(bench_ask(&b, "stats pairs"), "ok 1\n0 2 4 0 0 0 0 0 0 4");
    CHECK_TEXT(bench_ask(&b, "stats pairs"), "ok 0");
    bench_end(&b);
}

static void add_drops(void *context, const struct tcal_usage *usage) {
    *(uint64_t *)context += usage->drop_queue;
}

/* Beyond a few, all qdiscs are dumped instead of asked for. */
static void many_that_moved(void) {
    struct bench b;
    struct tcal_error error;
    uint64_t drops = 0;
    bench_start(&b, false);
    bench_star(&b, 100);
    for (uint32_t slot = 0; slot < 100; slot++) {
        *kernel_stats_of(bench_class(slot)) = (struct kernel_stats){.packets = 1, .overlimits = 1};
        kernel_stats_of(bench_fifo(slot))->drops = slot;
    }
    kernel_count();
    CHECK(tcal_read(b.tcal, TCAL_READ_MOVED, add_drops, &drops, &error));
    CHECK_EQ(drops, 99 * 100 / 2);
    CHECK_EQ(kernel_count(), 0);
    bench_end(&b);
}

/* What packets the kernel counts in 32 bits, it goes on counting in 64. */
static void large_numbers(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 1);
    *kernel_stats_of(bench_class(0)) =
        (struct kernel_stats){.bytes = 1ull << 50, .packets = (1ull << 40) + 5, .overlimits = 1};
    kernel_stats_of(bench_fifo(0))->drops = UINT32_MAX;
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 1099511627781 1125899906842624 4294967295 0 0");
    kernel_stats_of(bench_class(0))->overlimits = 2;
    kernel_stats_of(bench_fifo(0))->drops = 4; /* wrapped */
    CHECK_TEXT(bench_ask(&b, "usage"), "ok 1\n0 1 1099511627781 1125899906842624 4294967300 0 0");
    bench_end(&b);
}

void test_counters(void) {
    moved_paths_are_told_once();
    losses_are_what_netem_drops_beyond_the_queue();
    drops_that_netem_tells_later_are_no_losses();
    counters_outlive_their_objects();
    pairs_without_a_path_are_counted();
    many_that_moved();
    large_numbers();
}
