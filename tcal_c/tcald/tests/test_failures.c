/* A batch takes effect as a whole or not at all, whichever message fails and however. */
#include "bench.h"
#include "common/tests/check.h"
#include "suites.h"

#include <errno.h>

static void stage_much(struct bench *b) {
    bench_do(b, "path 0 1 rate=16000000000 delay=90000000 loss=5 queue=90000 jitter=7");
    bench_do(b, "path 0 2 up=0");
    bench_do(b, "node 7 ip=10.77.44.1 ip6=fd77::4401");
    bench_do(b, "path 0 7 " BENCH_PATH);
    bench_do(b, "node 3 ip=10.77.45.1");
}

/* Every message in turn is the one that fails: the kernel then has what it had before, and the same
 * batch goes through afterwards. */
static void any_message_may_fail(int error) {
    uint64_t messages = 1000;
    for (uint64_t n = 1; n <= messages; n++) {
        struct bench b;
        bench_start(&b, false);
        bench_star(&b, 4);
        size_t objects = kernel_objects();
        kernel_count();
        stage_much(&b);
        kernel_fail(n, error);
        bool applied = bench_commit(&b);
        uint64_t taken = kernel_count();
        kernel_fail(0, 0);
        if (applied) {
            /* Beyond the last message there is nothing to fail. */
            CHECK(n > taken);
            messages = 0;
        } else {
            CHECK(strstr(b.event, "; nothing of the batch is in force"));
            bench_verify(&b);
            CHECK(kernel_objects() >= objects);
            CHECK_TEXT(bench_ask(&b, "path 0 7 rate=1"), "err unknown node 7 is not declared");
            stage_much(&b);
            CHECK(bench_commit(&b));
        }
        bench_verify(&b);
        bench_end(&b);
    }
    CHECK_EQ(messages, 0);
}

/* More than one send: what was built after the failure is dropped, and made the next time. */
static void what_follows_a_failure_is_not_sent(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 4);
    size_t objects = kernel_objects();
    for (int turn = 0; turn < 2; turn++) {
        for (int node = 10; node < 250; node++) {
            bench_do(&b, "node %d ip=10.77.%d.1", node, node);
            bench_do(&b, "path 0 %d " BENCH_PATH, node);
        }
        kernel_fail(turn ? 0 : 3, -EINVAL);
        kernel_count();
        CHECK_EQ(bench_commit(&b), turn);
        CHECK(turn || kernel_count() < 240 * 6);
        CHECK_EQ(bench_verify(&b), kernel_objects());
    }
    /* A class, netem, its queue, a filter, a table and the link to it. */
    CHECK(kernel_objects() >= objects + 240 * 6);
    bench_end(&b);
}

static void the_item_and_the_kernels_words_are_told(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 4);
    bench_do(&b, "path 0 3 rate=1000000");
    kernel_fail(1, -EINVAL);
    CHECK(!bench_commit(&b));
    CHECK_TEXT(b.event, "! failed 2 0 1000000000 port 0, path 0 3: set the rate: Invalid argument: "
                        "the test wants it; nothing of the batch is in force");
    bench_end(&b);
}

/* What only shows when a change meets what was declared before. */
static void a_jitter_that_netem_does_not_take(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 1);
    bench_do(&b, "path 0 1 jitter=400000000");
    CHECK(bench_commit(&b));
    bench_do(&b, "path 0 1 dist=pareto");
    CHECK(!bench_commit(&b));
    CHECK_TEXT(b.event,
               "! failed 3 0 1000000000 path 0 1: netem takes a jitter of at most 357913941 "
               "ns with a Pareto distribution; nothing of the batch is in force");
    bench_verify(&b);
    bench_end(&b);
}

/* Two paths: what the first has taken is taken back when the second refuses. */
static void all_paths_or_none(void) {
    struct bench b;
    uint64_t rate;
    bench_start(&b, false);
    bench_star(&b, 2);
    kernel_count();
    bench_do(&b, "path 0 1 rate=800");
    bench_do(&b, "path 0 2 rate=800");
    kernel_fail(2, -ENOMEM);
    CHECK(!bench_commit(&b));
    CHECK_EQ(kernel_option(bench_class(0), 6, &rate, sizeof rate), 8);
    CHECK_EQ(rate, 1000000);
    CHECK_EQ(kernel_count(), 3); /* two and the one that takes the first back */
    bench_end(&b);
}

/* Nothing can be restored: that is said, and later batches try again. */
static void a_kernel_that_refuses_everything(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 3);
    bench_do(&b, "path 0 1 rate=800");
    bench_do(&b, "path 0 2 rate=800");
    kernel_fail(2, KERNEL_REFUSES_ALL);
    CHECK(!bench_commit(&b));
    CHECK(strstr(b.event, "could not be restored: 0"));
    kernel_fail(0, 0);
    bench_do(&b, "path 0 1 rate=1600");
    CHECK(bench_commit(&b));
    bench_verify(&b);
    uint64_t rate;
    uint32_t slots[] = {0, 1, 2};
    uint64_t sum = 0;
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(kernel_option(bench_class(slots[i]), 6, &rate, sizeof rate), 8);
        sum += rate;
    }
    CHECK_EQ(sum, 200 + 2 * 1000000);
    bench_end(&b);
}

/* The interface goes: its paths are nothing any more, and nobody else's batch fails for it. */
static void an_interface_that_disappears(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 2);
    kernel_unplug();
    bench_do(&b, "path 0 1 rate=800");
    CHECK(bench_commit(&b));
    CHECK_TEXT(bench_ask(&b, "ports"), "ok 1\n0 0 eth0 4026531840 gone");
    CHECK_TEXT(bench_ask(&b, "usage all"), "ok 0");
    bench_do(&b, "detach 0");
    bench_end(&b);
}

/* The port is gone all the same, and what is left at its interface is told. */
static void a_detach_that_restores_nothing(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 2);
    kernel_fail(1, KERNEL_REFUSES_ALL);
    const char *answer = bench_ask(&b, "detach 0");
    CHECK_EQ(strncmp(answer, "err system restore eth0: ", 25), 0);
    kernel_fail(0, 0);
    CHECK_TEXT(bench_ask(&b, "ports"), "ok 0");
    bench_end(&b);
}

static void one_port_an_interface(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 2);
    CHECK_TEXT(bench_ask(&b, "attach 9 netns=/y if=eth0 prefix=10.77.0.0/16"),
               "err system interface eth0 in /y is attached as port 0");
    bench_verify(&b);
    bench_end(&b);
}

static void attaching_fails_cleanly(void) {
    struct bench b;
    uint64_t n = 1;
    bench_start(&b, false);
    for (;; n++) {
        kernel_fail(n, -EPERM);
        const char *answer = bench_ask(&b, BENCH_ATTACH);
        kernel_fail(0, 0);
        if (strncmp(answer, "ok", 2) == 0) {
            break;
        }
        CHECK(strncmp(answer, "err system shape interface eth0 in /x: ", 39) == 0);
        CHECK_EQ(kernel_objects(), 0);
    }
    CHECK(n > 5);
    bench_do(&b, "detach 0");
    kernel_occupy("fq_codel");
    CHECK(strncmp(bench_ask(&b, BENCH_ATTACH),
                  "err system interface eth0 in /x has a queueing discipline already (fq_codel)",
                  75) == 0);
    kernel_occupy(NULL);
    kernel_leave_tree();
    bench_do(&b, BENCH_ATTACH);
    bench_verify(&b);
    bench_end(&b);
}

void test_failures(void) {
    any_message_may_fail(-EINVAL);
    any_message_may_fail(KERNEL_SEND_FAILS);
    any_message_may_fail(KERNEL_ANSWER_LOST);
    what_follows_a_failure_is_not_sent();
    the_item_and_the_kernels_words_are_told();
    a_jitter_that_netem_does_not_take();
    all_paths_or_none();
    a_kernel_that_refuses_everything();
    an_interface_that_disappears();
    a_detach_that_restores_nothing();
    one_port_an_interface();
    attaching_fails_cleanly();
}
