/* Every command: what it answers when it is right and when it is not. */
#include "bench.h"
#include "common/tests/check.h"
#include "suites.h"

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static void greets_first(void) {
    struct bench b;
    bench_start(&b, false);
    b.proto.session.greeted = false;
    CHECK_TEXT(bench_ask(&b, "clock"), "err order 'clock' before 'hello'");
    CHECK_TEXT(bench_ask(&b, "sync a1"), "ok sync a1");
    CHECK_TEXT(bench_ask(&b, "hello 2"),
               "err version this tcald speaks version 1 of the protocol, not 2");
    CHECK_TEXT(bench_ask(&b, "hello"), "err syntax usage: hello 1");
    b.proto.lacks = "this kernel refuses netem: No such file or directory";
    CHECK_TEXT(bench_ask(&b, "hello 1"),
               "err system this kernel refuses netem: No such file or directory");
    CHECK(!b.proto.session.greeted);
    b.proto.lacks = NULL;
    CHECK_TEXT(bench_ask(&b, "hello 1"), "ok tcald 1 version=" VERSION " paths=1");
    CHECK_TEXT(bench_ask(&b, "hello 1"), "ok tcald 1 version=" VERSION " paths=1");
    CHECK_TEXT(bench_ask(&b, "clock"), "ok 1000000000");
    CHECK_TEXT(bench_ask(&b, "quit"), "ok");
    CHECK(b.proto.session.quit);
    bench_end(&b);
}

static void lines_are_strict(void) {
    static const char *const bad[] = {"",       " ",       " clock",  "clock ",
                                      "set  1", "cl\tock", "clock\r", "\x18"};
    struct bench b;
    bench_start(&b, false);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_TEXT(bench_ask(&b, "%s", bad[i]),
                   "err syntax a line is printable words separated by one space");
    }
    CHECK_TEXT(bench_ask(&b, "open 0"), "err syntax unknown command 'open'");
    CHECK_TEXT(bench_ask(&b, "stats"), "err syntax usage: stats links|pairs|engine");
    CHECK_TEXT(bench_ask(&b, "usage some"), "err syntax usage: usage [all]");
    CHECK_TEXT(bench_ask(&b, "lease -1"),
               "err range lease '-1' is not a number from 0 to 3600000000000");
    CHECK_TEXT(bench_ask(&b, "sync a_b"),
               "err range token 'a_b' is not 1 to 32 letters and digits");
    CHECK_TEXT(bench_ask(&b, "commit x"), "err range time 'x' is not a number of ns");
    CHECK(begins(bench_ask(&b, "stats engine"), "ok commits=0 applied=0 failed=0 "));
    bench_end(&b);
}

static void ports(void) {
    struct bench b;
    bench_start(&b, false);
    CHECK_TEXT(bench_ask(&b, BENCH_ATTACH), "ok kind=kernel mac=02:00:00:00:00:01 stamp=none");
    CHECK_TEXT(bench_ask(&b, BENCH_ATTACH), "err conflict port 0 is attached already");
    CHECK_TEXT(bench_ask(&b, "attach 1 netns=/refused if=eth0 prefix=10.0.0.0/8"),
               "err system open network namespace /refused: No such file or directory");
    CHECK_TEXT(bench_ask(&b, "attach 1 netns=/x if=eth9 prefix=10.0.0.0/8"),
               "err system find interface eth9: No such device");
    static const char *const bad[] = {"attach 5",
                                      "attach 5 netns=/x if=e",
                                      "attach 5 netns=/x prefix=10.0.0.0/8",
                                      "attach 5 netns= if=e prefix=10.0.0.0/8",
                                      "attach 5 netns=/x if=e prefix=10.0.0.0/8 mtu=1500",
                                      "attach 5 netns=/x if=e prefix=10.0.0.0/8 remove=never"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(begins(bench_ask(&b, "%s", bad[i]), "err syntax usage: attach"));
    }
    static const char *const out[] = {"attach 65535 netns=/x if=e prefix=10.0.0.0/8",
                                      "attach 5 netns=/x if= prefix=10.0.0.0/8",
                                      "attach 5 netns=/x if=a/b prefix=10.0.0.0/8",
                                      "attach 5 netns=/x if=e prefix=10.0.0.0",
                                      "attach 5 netns=/x if=e prefix=10.0.0.0/33",
                                      "attach 5 netns=/x if=e prefix=10.0.0.0/8,",
                                      "attach 5 netns=/x if=e prefix=10.0.0.0/8 kind=tap"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        CHECK(begins(bench_ask(&b, "%s", out[i]), "err range "));
    }
    CHECK_TEXT(bench_ask(&b, "attach 5 netns=/x if=e prefix=10.0.0.1/8"),
               "err range prefix '10.0.0.1/8' has bits beyond its length; 10.0.0.0/8 has none");
    CHECK_TEXT(bench_ask(&b, "detach 9"), "err unknown port 9 is not attached");
    CHECK_TEXT(bench_ask(&b, "detach 0"), "ok");
    CHECK_TEXT(bench_ask(&b, "ports"), "ok 0");
    bench_end(&b);
}

static void nodes_and_paths(void) {
    struct bench b;
    bench_start(&b, false);
    bench_do(&b, "node 0 ip=10.0.0.1 ip6=fd00::1");
    CHECK_TEXT(bench_ask(&b, "node 1 ip=10.0.0.1"),
               "err conflict node 1: its IPv4 address belongs to node 0 already");
    CHECK_TEXT(bench_ask(&b, "node 1 ip6=fd00::1"),
               "err conflict node 1: its IPv6 address belongs to node 0 already");
    bench_do(&b, "node 0");
    bench_do(&b, "node 1 ip=10.0.0.1");
    CHECK_TEXT(bench_ask(&b, "node 2 ip=10.0.0"), "err range '10.0.0' is no IPv4 address");
    CHECK(begins(bench_ask(&b, "node 2 mac=1"), "err syntax usage: node"));
    CHECK_TEXT(bench_ask(&b, "bind 7 0"), "err unknown node 7 is not declared");
    CHECK_TEXT(bench_ask(&b, "bind 0 0"), "err unknown port 0 is not attached");
    CHECK_TEXT(bench_ask(&b, "unbind 7"), "err unknown node 7 is not declared");
    CHECK_TEXT(bench_ask(&b, "path 0 0 " BENCH_PATH), "err conflict path from node 0 to itself");
    CHECK_TEXT(bench_ask(&b, "path 0 9 " BENCH_PATH), "err unknown node 9 is not declared");
    CHECK_TEXT(
        bench_ask(&b, "path 0 1 rate=1"),
        "err unknown path from node 0 to node 1 is not declared: first it needs rate, delay, "
        "jitter, loss, queue and up");
    CHECK(begins(bench_ask(&b, "path 0 1"), "err syntax usage: path"));
    CHECK(begins(bench_ask(&b, "path 0 1 " BENCH_PATH " x=1"), "err syntax usage: path"));
    static const char *const out[] = {"rate=-1",
                                      "rate=10000000000001",
                                      "delay=x",
                                      "jitter=",
                                      "loss=1000000001",
                                      "queue=1.5",
                                      "dist=gauss",
                                      "up=2",
                                      "up=",
                                      "jitter=2147483648",
                                      "jitter=400000000 dist=pareto"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        CHECK(begins(bench_ask(&b, "path 0 1 %s", out[i]), "err range "));
    }
    bench_do(&b, "path 0 1 " BENCH_PATH);
    bench_do(&b, "path 0 1 rate=1");
    bench_end(&b);
}

/* What is staged is forgotten by abort and sync, what is committed is not. */
static void abort_and_sync(void) {
    struct bench b;
    bench_start(&b, false);
    bench_do(&b, "node 0 ip=10.0.0.1");
    bench_do(&b, "node 1 ip=10.0.0.2");
    bench_do(&b, "commit 5000000000");
    bench_do(&b, "node 2 ip=10.0.0.3");
    bench_do(&b, "node 1 ip=10.0.0.4");
    bench_do(&b, "path 0 1 " BENCH_PATH);
    bench_do(&b, "abort");
    CHECK(begins(bench_ask(&b, "path 0 1 rate=1"), "err unknown path"));
    CHECK(begins(bench_ask(&b, "path 0 2 " BENCH_PATH), "err unknown node 2"));
    CHECK(begins(bench_ask(&b, "node 3 ip=10.0.0.2"), "err conflict node 3"));
    bench_do(&b, "node 3 ip=10.0.0.4");
    bench_do(&b, "path 0 1 " BENCH_PATH);
    CHECK_TEXT(bench_ask(&b, "sync Token9"), "ok sync Token9");
    CHECK(begins(bench_ask(&b, "path 0 1 rate=1"), "err unknown path"));
    b.event[0] = '\0';
    bench_wait(&b, 3999999999);
    CHECK_TEXT(b.event, "");
    bench_wait(&b, 1);
    CHECK_TEXT(b.event, "! applied 1 5000000000 5000000000");
    bench_end(&b);
}

/* Batches take effect by their times, at equal times in order. */
static void batches_wait_for_their_time(void) {
    struct bench b;
    uint64_t rate;
    bench_start(&b, false);
    bench_star(&b, 1);
    bench_do(&b, "path 0 1 rate=8000");
    bench_do(&b, "commit 3000000000");
    bench_do(&b, "path 0 1 rate=16000");
    bench_do(&b, "commit 2000000000");
    bench_do(&b, "path 0 1 rate=24000");
    bench_do(&b, "commit 3000000000");
    CHECK_EQ(session_next(&b.proto.session), 2000000000);
    bench_wait(&b, NS_PER_S);
    kernel_option(bench_class(0), 6, &rate, sizeof rate);
    CHECK_EQ(rate, 2000);
    bench_wait(&b, NS_PER_S);
    kernel_option(bench_class(0), 6, &rate, sizeof rate);
    CHECK_EQ(rate, 3000);
    CHECK_TEXT(b.event, "! applied 4 3000000000 3000000000");
    CHECK_EQ(session_next(&b.proto.session), TIME_NEVER);
    bench_end(&b);
}

void test_commands(void) {
    greets_first();
    lines_are_strict();
    ports();
    nodes_and_paths();
    abort_and_sync();
    batches_wait_for_their_time();
}
