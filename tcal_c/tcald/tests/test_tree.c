/* What the kernel is told: enough, and nothing twice. */
#include "bench.h"
#include "common/tests/check.h"
#include "suites.h"
#include "verify.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

static void nothing_else(struct bench *b) {
    CHECK_EQ(bench_verify(b), kernel_objects());
}

static void builds_and_removes(bool deep) {
    struct bench b;
    bench_start(&b, deep);
    bench_star(&b, 20);
    nothing_else(&b);
    uint64_t a_path = 1 + deep + 1 + 1 + 2;
    /* tbf, htb, three filters of neighbour discovery; for each family the first table, its prefix,
     * the second table and the link to it. */
    CHECK_EQ(kernel_objects(), 5 + 2 * 4 + 20 * a_path);
    bench_do(&b, "detach 0");
    CHECK_EQ(kernel_objects(), 0);
    bench_end(&b);
}

static uint64_t rate_of(uint32_t slot) {
    uint64_t rate;
    CHECK_EQ(kernel_option(bench_class(slot), TCA_HTB_RATE64, &rate, sizeof rate), 8);
    return rate;
}

/* One message for each thing that changes. */
static void changes_are_minimal(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 10);
    kernel_count();
    bench_do(&b, "path 0 3 rate=4000000");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count_of(RTM_NEWTCLASS, "htb"), 1);
    CHECK_EQ(kernel_count(), 1);
    CHECK_EQ(rate_of(2), 500000);
    bench_do(&b, "path 0 3 queue=20000");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count_of(RTM_NEWQDISC, "bfifo"), 1);
    CHECK_EQ(kernel_count(), 1);
    bench_do(&b, "path 0 3 delay=5000000 loss=1000");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count_of(RTM_NEWQDISC, "netem"), 1);
    CHECK_EQ(kernel_count(), 1);
    /* The same again, and a change that is taken back in the same batch. */
    bench_do(&b, "path 0 3 delay=5000000 loss=1000");
    bench_do(&b, "path 0 4 rate=1");
    bench_do(&b, "path 0 4 rate=8000000");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count(), 0);
    nothing_else(&b);
    bench_end(&b);
}

/* A faster path may hold more packets than its netem was made for. */
static void a_limit_grows_with_the_rate(void) {
    struct bench b;
    struct tc_netem_qopt before;
    struct tc_netem_qopt after;
    bench_start(&b, false);
    bench_star(&b, 1);
    kernel_options(bench_netem(0), &before, sizeof before);
    bench_do(&b, "path 0 1 rate=8000000000");
    CHECK(bench_commit(&b));
    kernel_options(bench_netem(0), &after, sizeof after);
    CHECK(after.limit > before.limit);
    kernel_count();
    bench_do(&b, "path 0 1 rate=80000");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count(), 1);
    nothing_else(&b);
    bench_end(&b);
}

/* Zeros are said; a table is sent once, and again when the distribution changes. */
static void netem_is_told_everything(void) {
    struct bench b;
    uint64_t value = 1;
    struct tc_netem_qopt opt;
    bench_start(&b, false);
    bench_star(&b, 1);
    bench_do(&b, "path 0 1 jitter=1000 loss=1000000000 dist=pareto");
    CHECK(bench_commit(&b));
    kernel_option(bench_netem(0), TCA_NETEM_JITTER64, &value, sizeof value);
    CHECK_EQ(value, 6000);
    bench_do(&b, "path 0 1 jitter=0 delay=0 loss=0");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_option(bench_netem(0), TCA_NETEM_JITTER64, &value, sizeof value), 8);
    CHECK_EQ(value, 0);
    CHECK_EQ(kernel_option(bench_netem(0), TCA_NETEM_LATENCY64, &value, sizeof value), 8);
    CHECK_EQ(value, 0);
    kernel_options(bench_netem(0), &opt, sizeof opt);
    CHECK_EQ(opt.loss, 0);
    kernel_count();
    bench_do(&b, "path 0 1 dist=uniform");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count(), 0); /* nobody looks at it without jitter */
    bench_do(&b, "path 0 1 jitter=5");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count(), 1);
    nothing_else(&b);
    bench_end(&b);
}

static void down_and_up(bool deep) {
    struct bench b;
    bench_start(&b, deep);
    bench_star(&b, 3);
    kernel_count();
    bench_do(&b, "path 0 2 up=0");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count_of(RTM_NEWQDISC, "blackhole"), 1);
    CHECK_EQ(kernel_count(), 1);
    CHECK(kernel_stats_of(bench_hole(1)) && !kernel_stats_of(bench_netem(1)));
    /* Changes while it is down are kept for later. */
    bench_do(&b, "path 0 2 delay=7000000");
    CHECK(bench_commit(&b));
    bench_do(&b, "path 0 2 up=1");
    CHECK(bench_commit(&b));
    uint64_t latency;
    kernel_option(bench_netem(1), TCA_NETEM_LATENCY64, &latency, sizeof latency);
    CHECK_EQ(latency, 7000000);
    CHECK(!kernel_stats_of(bench_hole(1)));
    nothing_else(&b);
    bench_end(&b);
}

/* Nodes without a path are dropped, each in a class of its own; other addresses are left alone. */
static void nodes_without_a_path_are_dropped(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 1);
    kernel_count();
    bench_do(&b, "node 5 ip=10.77.9.9");
    bench_do(&b, "node 6 ip=192.0.2.1");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count_of(RTM_NEWQDISC, "blackhole"), 1);
    CHECK_EQ(kernel_count_of(RTM_NEWTFILTER, "u32"), 3); /* a table, its link, one address */
    nothing_else(&b);
    /* An address moves. */
    bench_do(&b, "node 5 ip=10.77.0.200");
    CHECK(bench_commit(&b));
    CHECK_EQ(kernel_count_of(RTM_DELTFILTER, "u32"), 1);
    nothing_else(&b);
    bench_do(&b, "node 5");
    CHECK(bench_commit(&b));
    nothing_else(&b);
    bench_end(&b);
}

/* Addresses that agree in the octets of the hash share a bucket. */
static void equal_octets_are_told_apart(void) {
    struct bench b;
    bench_start(&b, false);
    bench_do(&b, "attach 0 netns=/x if=eth0 prefix=10.0.0.0/8,fd00::/8");
    bench_do(&b, "node 0 ip=10.0.0.1");
    bench_do(&b, "bind 0 0");
    for (int i = 1; i < 50; i++) {
        bench_do(&b, "node %d ip=10.%d.3.4 ip6=fd00:%x::3:304", i, i, i);
    }
    CHECK(bench_commit(&b));
    nothing_else(&b);
    bench_end(&b);
}

/* Another node at the port: nothing of the one before is left. */
static void a_port_changes_hands(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 3);
    bench_do(&b, "path 2 1 " BENCH_PATH);
    bench_do(&b, "bind 2 0");
    CHECK(bench_commit(&b));
    CHECK_TEXT(bench_ask(&b, "ports"), "ok 1\n0 2 eth0 4026531840 kernel");
    nothing_else(&b);
    bench_do(&b, "unbind 2");
    CHECK(bench_commit(&b));
    CHECK_TEXT(bench_ask(&b, "ports"), "ok 1\n0 - eth0 4026531840 kernel");
    nothing_else(&b);
    for (uint32_t slot = 0; slot < 3; slot++) {
        CHECK(kernel_stats_of(bench_hole(slot)));
    }
    bench_do(&b, "bind 2 0");
    CHECK(bench_commit(&b));
    nothing_else(&b);
    CHECK(kernel_stats_of(bench_netem(0)) || kernel_stats_of(bench_netem(1)) ||
          kernel_stats_of(bench_netem(2)));
    bench_end(&b);
}

static void a_lease_closes_and_opens(void) {
    struct bench b;
    bench_start(&b, false);
    bench_star(&b, 2);
    bench_do(&b, "lease 1000");
    b.event[0] = '\0';
    bench_wait(&b, 999);
    CHECK_TEXT(b.event, "");
    bench_wait(&b, 1);
    CHECK_TEXT(b.event, "! lease expired");
    CHECK(kernel_stats_of(bench_hole(0)) && kernel_stats_of(bench_hole(1)));
    bench_do(&b, "lease 0");
    CHECK_TEXT(b.event, "! lease renewed");
    CHECK(kernel_stats_of(bench_netem(0)) && kernel_stats_of(bench_netem(1)));
    nothing_else(&b);
    bench_end(&b);
}

static void verify_sees_what_others_did(void) {
    struct bench b;
    uint64_t objects;
    char why[VERIFY_TEXT];
    bench_start(&b, false);
    bench_star(&b, 2);
    kernel_break(bench_fifo(1));
    CHECK(!verify(b.tcal, 0, &objects, why));
    CHECK_TEXT(why, "the bfifo of node 2 is missing");
    kernel_break(bench_netem(0));
    CHECK(!verify(b.tcal, 0, &objects, why));
    CHECK_TEXT(why, "the netem of node 1 is missing");
    bench_end(&b);
}

void test_tree(void) {
    for (int deep = 0; deep < 2; deep++) {
        builds_and_removes(deep);
        down_and_up(deep);
    }
    changes_are_minimal();
    a_limit_grows_with_the_rate();
    netem_is_told_everything();
    nodes_without_a_path_are_dropped();
    equal_octets_are_told_apart();
    a_port_changes_hands();
    a_lease_closes_and_opens();
    verify_sees_what_others_did();
}
