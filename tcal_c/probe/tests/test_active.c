/* tprobe active: commands, probes that arrive, are lost, are foreign, or whose ends go away. */
#include "common/tests/check.h"
#include "fake_active.h"
#include "suites.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ONE "10.77.0.1"
#define TWO "10.77.0.2"

static struct fake *two_ends(void) {
    struct fake *f = fake_new();
    CHECK_TEXT(fake_ask(f, "open 1 netns=/proc/7/ns/net addr=" ONE), "ok");
    CHECK_TEXT(fake_ask(f, "open 2 netns=/proc/8/ns/net addr=" TWO), "ok");
    CHECK_TEXT(fake_ask(f, "pair 0 1 2 wait=4000"), "ok");
    CHECK_TEXT(fake_ask(f, "pair 1 2 1 wait=8000"), "ok");
    return f;
}

/* Where frames pass, probes go to the other one's device. */
static void ends_may_have_devices(void) {
    struct fake *f = two_ends();
    static const uint8_t mac[6] = {2, 0x54, 0x53, 1, 0, 7};
    CHECK_TEXT(fake_ask(f, "open 3 netns=/x addr=" ONE " if=eth1 mac=02:54:53:01:00:07"), "ok");
    CHECK(f->proto.end[3].has_mac && memcmp(f->proto.end[3].mac, mac, sizeof mac) == 0);
    CHECK(!f->proto.end[1].has_mac);
    fake_free(f);
}

static void commands_are_strict(void) {
    static const char *const wrong[] = {
        "open",
        "open 3",
        "open 3 netns=/x",
        "open 3 netns= addr=" ONE,
        "open 3 addr=" ONE,
        "open 3 netns=/x addr=" ONE " x",
        "open 3 net=/x addr=" ONE,
        "open 3 netns=/x addr=" ONE " if=eth0",
        "open 3 netns=/x addr=" ONE " if=eth0 mac=02:00",
        "open 3 netns=/x addr=" ONE " if=eth0 mac=02:00:00:00:00:01 x",
        "open 3 netns=/x addr=" ONE " mac=02:00:00:00:00:01 if=eth0",
        "close",
        "close 1 2",
        "pair",
        "pair 3 1 2",
        "pair 3 1 2 5",
        "pair 3 1 2 wait=",
        "pair 3 1 2 wait=1 2",
        "pair 3 1 2 wait=1 bytes=",
        "pair 3 1 2 wait=1 bytes=9 9",
        "at",
        "at 5",
        "at 5 0 0",
        "report",
        "report 1 2",
        "report 1 last 2"};
    static const char *const out[] = {"open 65535 netns=/x addr=" ONE,
                                      "open -1 netns=/x addr=" ONE,
                                      "open 3 netns=/x addr=10.0",
                                      "pair 4096 1 2 wait=1",
                                      "pair 3 1 2 wait=1s",
                                      "pair 3 65535 2 wait=1",
                                      "pair 3 1 2 wait=1 bytes=7",
                                      "pair 3 1 2 wait=1 bytes=9001",
                                      "at -1 0",
                                      "at 9223372036854775808 0",
                                      "at 1 4096",
                                      "report x"};
    struct fake *f = two_ends();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *answer = fake_ask(f, "%s", wrong[i]);
        CHECK(!strncmp(answer, "err syntax usage: ", 18) || !strncmp(answer, "err range ", 10));
    }
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        CHECK(!strncmp(fake_ask(f, "%s", out[i]), "err range ", 10));
    }
    CHECK_TEXT(fake_ask(f, "open 1 netns=/x addr=" ONE), "err conflict end 1 is open already");
    CHECK_TEXT(fake_ask(f, "close 9"), "err unknown end 9 is not open");
    CHECK_TEXT(fake_ask(f, "pair 2 1 1 wait=1"), "err conflict pair 2: from end 1 to itself");
    CHECK_TEXT(fake_ask(f, "pair 0 1 2 wait=1"), "err conflict pair 0 is declared already");
    CHECK_TEXT(fake_ask(f, "at 5 7"), "err unknown pair 7 is not declared");
    CHECK_TEXT(fake_ask(f, "commit 0"), "err syntax unknown command 'commit'");
    f->refuse_open = -EPERM;
    CHECK_TEXT(fake_ask(f, "open 3 netns=/x addr=" ONE),
               "err system opening a raw socket in /x: Operation not permitted");
    fake_free(f);
}

static void probes_are_timed(void) {
    struct fake *f = two_ends();
    CHECK_TEXT(fake_ask(f, "at 100 0"), "ok");
    CHECK_TEXT(fake_ask(f, "at 200 1"), "ok");
    CHECK_TEXT(fake_ask(f, "at 199 0"), "err order a probe before the one that was asked for last");
    CHECK_EQ(session_next(&f->proto.session), 100);
    fake_until(f, 300);
    CHECK_EQ(f->sent, 2);
    CHECK_EQ(f->sends[0].end, 1);
    CHECK_EQ(f->sends[0].to.bytes[3], 2);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 0 skipped=0 refused=0");
    fake_deliver(f, 1, 1, TWO, 260); /* the second one comes first */
    fake_deliver(f, 0, 2, ONE, 290);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 2 skipped=0 refused=0\n0 100 190\n1 200 60");
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 0 skipped=0 refused=0");
    CHECK_EQ(f->proto.first, f->proto.next);
    fake_free(f);
}

static void large_ones_are_told_apart_by_their_size(void) {
    struct fake *f = two_ends();
    struct addr one;
    word_ipv4(ONE, &one);
    CHECK_TEXT(fake_ask(f, "pair 2 1 2 wait=4000 bytes=1480"), "ok");
    fake_ask(f, "at 100 2");
    fake_until(f, 200);
    CHECK_EQ(f->sends[0].size, 1480);
    active_arrived(&f->proto, 2, &one, f->sends[0].bytes, PROBE_BYTES, 150); /* it was cut */
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 0 skipped=0 refused=0");
    fake_deliver(f, 0, 2, ONE, 170);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 1 skipped=0 refused=0\n2 100 70");
    fake_free(f);
}

static void what_does_not_come_is_lost(void) {
    struct fake *f = two_ends();
    fake_ask(f, "at 100 0");
    fake_ask(f, "at 100 1");
    fake_until(f, 5099);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 0 skipped=0 refused=0");
    fake_until(f, 5100);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 1 skipped=0 refused=0\n0 100 -");
    fake_deliver(f, 0, 2, ONE, 5100); /* too late: it was told as lost */
    fake_deliver(f, 1, 1, TWO, 5200); /* this one had longer */
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 1 skipped=0 refused=0\n1 100 5100");
    fake_free(f);
}

static void foreign_packets_are_left_alone(void) {
    struct fake *f = two_ends();
    struct addr one;
    word_ipv4(ONE, &one);
    fake_ask(f, "at 100 0");
    fake_until(f, 200);
    uint8_t *bytes = f->sends[0].bytes;
    active_arrived(&f->proto, 2, &one, bytes, PROBE_BYTES - 1, 150);
    fake_deliver(f, 0, 1, ONE, 150); /* at another end */
    fake_deliver(f, 0, 2, TWO, 150); /* from another address */
    fake_deliver(f, 0, 2, "fd77::1", 150);
    bytes[7]++; /* a number that was not given */
    fake_deliver(f, 0, 2, ONE, 150);
    bytes[7]--;
    bytes[0]++; /* another process' cookie */
    fake_deliver(f, 0, 2, ONE, 150);
    bytes[0]--;
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 0 skipped=0 refused=0");
    fake_deliver(f, 0, 2, ONE, 90);  /* before it was sent, by the clock */
    fake_deliver(f, 0, 2, ONE, 170); /* twice */
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 1 skipped=0 refused=0\n0 100 0");
    fake_free(f);
}

static void ends_come_and_go(void) {
    struct fake *f = two_ends();
    for (int i = 1; i <= 4; i++) {
        fake_ask(f, "at %d00 0", i);
    }
    fake_until(f, 100);
    CHECK_TEXT(fake_ask(f, "close 2"), "ok"); /* the first probe is nobody's now */
    fake_until(f, 200);
    CHECK_EQ(f->sent, 1);
    CHECK_TEXT(fake_ask(f, "open 2 netns=/proc/9/ns/net addr=" TWO), "ok");
    fake_deliver(f, 0, 2, ONE, 250); /* of the life before */
    fake_until(f, 300);
    fake_deliver(f, 1, 2, ONE, 310);
    f->refuse_send = -ENETUNREACH;
    fake_until(f, 400);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 2 skipped=0 refused=1\n0 100 ?\n0 300 10");
    fake_until(f, 100000);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 0 skipped=0 refused=0");
    fake_free(f);
}

/* At an end those that may still come are neither lost nor left out. */
static void the_last_report_tells_of_all(void) {
    struct fake *f = two_ends();
    fake_ask(f, "at 100 0");
    fake_ask(f, "at 100 1");
    fake_ask(f, "at 5050 0");
    fake_ask(f, "at 5060 0");
    fake_until(f, 5100);
    fake_deliver(f, 2, 2, ONE, 5090);
    CHECK_TEXT(fake_ask(f, "report 1000 last"),
               "ok 4 skipped=0 refused=0\n0 100 -\n1 100 ?\n0 5050 40\n0 5060 ?");
    fake_deliver(f, 1, 1, TWO, 5110); /* it was told */
    CHECK_TEXT(fake_ask(f, "report 1000 last"), "ok 0 skipped=0 refused=0");
    CHECK_EQ(f->proto.first, f->proto.next);
    fake_free(f);
}

/* One that is lost by the time of the report is told as such, though its end is closed. */
static void what_was_lost_before_an_end_is_told_before_it(void) {
    struct fake *f = two_ends();
    fake_ask(f, "at 100 0");
    fake_ask(f, "at 5000 0");
    fake_until(f, 5100);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 1 skipped=0 refused=0\n0 100 -");
    CHECK_TEXT(fake_ask(f, "close 1"), "ok");
    fake_until(f, 100000);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 1 skipped=0 refused=0\n0 5000 ?");
    CHECK_EQ(f->proto.first, f->proto.next);
    fake_free(f);
}

static void late_ones_are_not_sent(void) {
    struct fake *f = two_ends();
    fake_ask(f, "at 100 0");
    fake_ask(f, "at 200 0");
    f->now_ns = 200 + SKIPPED_AFTER_NS;
    session_due(&f->proto.session);
    CHECK_EQ(f->sent, 1);
    CHECK_TEXT(fake_ask(f, "report 1000"), "ok 0 skipped=1 refused=0");
    fake_free(f);
}

static void rings_are_bounded(void) {
    struct fake *f = two_ends();
    for (uint32_t i = 0; i < WAITING; i++) {
        fake_ask(f, "at 100 1");
    }
    CHECK_TEXT(fake_ask(f, "at 100 1"), "err limit 65536 probes wait already");
    fake_until(f, 100);
    CHECK_EQ(f->sent, FLIGHTS);
    fake_ask(f, "at 100 1");
    fake_until(f, 100); /* nothing has been reported: there is no room for it */
    CHECK_EQ(f->sent, FLIGHTS);
    CHECK_EQ(f->proto.skipped, 1);
    CHECK_TEXT(fake_ask(f, "close 1"), "ok");
    char all[] = "report 1000";
    static const char told[] = "ok 65536 skipped=1 refused=0\n1 100 ?\n";
    session_line(&f->proto.session, all, sizeof all - 1);
    CHECK(!strncmp(f->proto.out.bytes + f->proto.out.begin, told, sizeof told - 1));
    text_take(&f->proto.out, text_left(&f->proto.out));
    CHECK_EQ(f->proto.first, f->proto.next);
    fake_free(f);
}

/* All pages of it are in memory. */
static bool is_there(void *begin, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *first = (char *)begin - (uintptr_t)begin % page;
    size_t count = (bytes + (uintptr_t)begin % page + page - 1) / page;
    unsigned char *found = calloc(count, 1);
    bool whole = found && !mincore(first, count * page, found);
    for (size_t i = 0; whole && i < count; i++) {
        whole = found[i] & 1;
    }
    free(found);
    return whole;
}

static void nothing_grows_while_probes_go_on(void) {
    struct fake *f = fake_new();
    CHECK(is_there(f->proto.flight, FLIGHTS * sizeof *f->proto.flight));
    CHECK(is_there(f->proto.asked, WAITING * sizeof *f->proto.asked));
    fake_free(f);
}

static void a_stepped_wall_clock_is_doubted_for_a_while(void) {
    const uint64_t day = 1700000000 * NS_PER_S, now = 50 * NS_PER_S;
    const int64_t steps[] = {60 * (int64_t)NS_PER_S, -60 * (int64_t)NS_PER_S, 2000000};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct wall wall = {.ahead_ns = (int64_t)day};
        active_look(&wall, now, day + now + 1000000); /* slewed at most */
        CHECK_EQ(active_arrival(&wall, now, day + now + 1000000 - 7), now - 7);
        CHECK_EQ(active_arrival(&wall, now, day + now + 1000000 + 1), now); /* from the future */
        CHECK_EQ(active_arrival(&wall, now, 0), now);
        uint64_t then = day + 1000000 + (uint64_t)steps[i];
        for (uint64_t later = now; later < now + NS_PER_S; later += NS_PER_S / 4) {
            active_look(&wall, later, then + later);
            CHECK_EQ(active_arrival(&wall, later, then + later - 7), later);
        }
        active_look(&wall, now + NS_PER_S, then + now + NS_PER_S);
        CHECK_EQ(active_arrival(&wall, now + NS_PER_S, then + now + NS_PER_S - 7),
                 now + NS_PER_S - 7);
    }
}

void test_active(void) {
    ends_may_have_devices();
    commands_are_strict();
    probes_are_timed();
    large_ones_are_told_apart_by_their_size();
    what_does_not_come_is_lost();
    foreign_packets_are_left_alone();
    ends_come_and_go();
    the_last_report_tells_of_all();
    what_was_lost_before_an_end_is_told_before_it();
    late_ones_are_not_sent();
    rings_are_bounded();
    nothing_grows_while_probes_go_on();
    a_stepped_wall_clock_is_doubted_for_a_while();
}
