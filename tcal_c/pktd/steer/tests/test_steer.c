/* When steering goes on and off, for which ports, to which processors. */
#include "common/tests/check.h"
#include "pktd/steer/steer.h"

#define MANY ((struct steer_window){5000, 100, 100, 960000})

static bool look(struct steer *s, struct steer_window w) {
    return steer_look(s, &w, STEER_WINDOW_NS);
}

static void many_ports_and_a_busy_thread_switch_it_on(void) {
    struct steer s = {0};
    struct steer_window calm = MANY, few = MANY, one = MANY;
    calm.load_ppm = 599999;
    few.active = 7;
    one.most_frames = 2501;
    CHECK(!look(&s, calm));
    CHECK(!look(&s, few));
    CHECK(!look(&s, one));
    CHECK(!look(&s, (struct steer_window){0}));
    CHECK_EQ(counter_get(&s.times), 0);
    CHECK(look(&s, MANY));
    CHECK_EQ(counter_get(&s.times), 1);
    CHECK_EQ(counter_get(&s.on_ns), 0);
}

static void it_stays_on_though_it_makes_the_thread_less_busy(void) {
    struct steer s = {0};
    struct steer_window relieved = MANY;
    relieved.load_ppm = 0;
    relieved.frames = 2500;
    relieved.active = 4;
    relieved.most_frames = 1875;
    CHECK(look(&s, MANY));
    for (int i = 0; i < 100; i++) {
        CHECK(look(&s, relieved));
    }
    CHECK_EQ(counter_get(&s.times), 1);
    CHECK_EQ(counter_get(&s.on_ns), 100ull * STEER_WINDOW_NS);
}

/* After how many windows like this one it is off. */
static int windows_until_off(struct steer_window w) {
    struct steer s = {0};
    int count = 1;
    CHECK(look(&s, MANY));
    while (look(&s, w)) {
        CHECK(++count < 100);
    }
    return count;
}

static void it_goes_off_when_its_reason_has_been_away_for_a_while(void) {
    struct steer_window less = MANY, few = MANY, one = MANY;
    less.frames = 2499;
    few.active = 3;
    one.most_frames = 3751;
    CHECK_EQ(windows_until_off(less), 5);
    CHECK_EQ(windows_until_off(few), 5);
    CHECK_EQ(windows_until_off(one), 5);
    CHECK_EQ(windows_until_off((struct steer_window){0}), 5);
}

static void a_moment_without_its_reason_is_no_end(void) {
    struct steer s = {0};
    struct steer_window silent = {0};
    CHECK(look(&s, MANY));
    for (int i = 0; i < 50; i++) {
        CHECK(look(&s, i % 5 == 4 ? MANY : silent));
    }
    CHECK_EQ(counter_get(&s.times), 1);
    while (look(&s, silent)) {
    }
    CHECK(look(&s, MANY)); /* and on again */
    CHECK_EQ(counter_get(&s.times), 2);
}

static void ports_with_few_packets_keep_their_own(void) {
    struct steer_window w = MANY; /* 50 a port */
    CHECK(!steer_port(&w, 0));
    CHECK(!steer_port(&w, 24));
    CHECK(steer_port(&w, 25));
    CHECK(steer_port(&w, 100));
    struct steer_window slow = {.frames = 100, .most_frames = 10, .active = 10};
    CHECK(!steer_port(&slow, STEER_ACTIVE_FRAMES - 1));
    CHECK(steer_port(&slow, STEER_ACTIVE_FRAMES));
    struct steer_window none = {0};
    CHECK(!steer_port(&none, 0));
}

static void masks_name_another_processor(void) {
    char text[STEER_MASK_BYTES];
    cpu_set_t set;
    CPU_ZERO(&set);
    CHECK(!steer_mask(&set, 0, 0, text));
    CPU_SET(0, &set);
    CHECK(!steer_mask(&set, 0, 0, text));
    CPU_SET(1, &set);
    CHECK(steer_mask(&set, 0, 7, text));
    CHECK_TEXT(text, "2");
    CHECK(steer_mask(&set, 1, 7, text));
    CHECK_TEXT(text, "1");
    CPU_SET(35, &set);
    static const char *const turns[] = {"1", "8,00000000", "1", "8,00000000"};
    for (uint32_t turn = 0; turn < 4; turn++) {
        CHECK(steer_mask(&set, 1, turn, text));
        CHECK_TEXT(text, turns[turn]);
    }
    CPU_SET(CPU_SETSIZE - 1, &set);
    CHECK(steer_mask(&set, 1, 2, text));
    CHECK_EQ(strlen(text), STEER_MASK_BYTES - 2);
    CHECK(strncmp(text, "80000000,00000000", 17) == 0);
}

static void a_backlog_is_seen(void) {
    static const char row[] = "01b2bf9c 00000000 00000029 00000000 00000000 00000000 00000000 "
                              "00000000 00000000 000245b4 00000000 ";
    char text[512];
    snprintf(text, sizeof text, "%s00000000 00000000 00000000 00000000\n%s00000000 00000001\n", row,
             row);
    CHECK(steer_is_drained(text));
    snprintf(text, sizeof text, "%s00000000 00000000\n%s0000000a 00000001\n", row, row);
    CHECK(!steer_is_drained(text));
    snprintf(text, sizeof text, "%s00000001", row);
    CHECK(!steer_is_drained(text));
    snprintf(text, sizeof text, "%s\n%s\n", row, row); /* a kernel that does not say */
    CHECK(steer_is_drained(text));
    CHECK(steer_is_drained("no numbers\n\n"));
    CHECK(steer_is_drained(""));
}

static void it_is_taken_back_where_nothing_has_been_written(void) {
    const uint64_t off = 7 * NS_PER_S, ms = 1000000;
    CHECK(!steer_is_over(off, off, off));
    CHECK(!steer_is_over(off + 5 * ms, off + 4 * ms + 1, off));
    CHECK(steer_is_over(off + 5 * ms, off + 4 * ms, off));
    CHECK(!steer_is_over(off + 5 * ms, off + 6 * ms, off)); /* since it was looked */
    CHECK(steer_is_over(off, 0, off));
    CHECK(!steer_is_over(off + 999 * ms, off + 999 * ms, off));
    CHECK(steer_is_over(off + 1000 * ms, off + 1000 * ms, off)); /* there may be no gap */
}

void test_steer(void) {
    many_ports_and_a_busy_thread_switch_it_on();
    it_stays_on_though_it_makes_the_thread_less_busy();
    it_goes_off_when_its_reason_has_been_away_for_a_while();
    a_moment_without_its_reason_is_no_end();
    ports_with_few_packets_keep_their_own();
    masks_name_another_processor();
    a_backlog_is_seen();
    it_is_taken_back_where_nothing_has_been_written();
}
