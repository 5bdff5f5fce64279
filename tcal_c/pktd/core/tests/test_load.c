/* What the load makes the data thread do, with a clock that is played: the class, the tolerance. */
#include "common/tests/check.h"
#include "pktd/core/load.h"
#include "pktd/tests/sim.h"

#define MS 1000000ull

struct player {
    struct load load;
    uint64_t now_ns;
    uint64_t cpu_ns;
    uint64_t spun_ns;
    enum load_class class;
    bool is_refused; /* the kernel does not give the class back */
};

static void begin(struct player *p, uint32_t sharers, uint32_t cores, bool may_fifo) {
    *p = (struct player){.now_ns = 7 * NS_PER_S};
    load_init(&p->load, p->now_ns, sharers, cores, may_fifo);
    p->class = p->load.wanted;
}

/* A window in which so much of a core was worked and spun. */
static void play(struct player *p, uint32_t work_permille, uint32_t spin_permille) {
    p->now_ns += LOAD_WINDOW_NS;
    p->cpu_ns += (uint64_t)LOAD_WINDOW_NS * (work_permille + spin_permille) / 1000;
    p->spun_ns += (uint64_t)LOAD_WINDOW_NS * spin_permille / 1000;
    CHECK(load_is_due(&p->load, p->now_ns));
    load_look(&p->load, p->now_ns, p->cpu_ns, p->spun_ns, p->class);
    CHECK(!load_is_due(&p->load, p->now_ns));
    p->class = p->is_refused ? CLASS_OTHER : p->load.wanted;
}

/* The same until the class is `wanted`: after how many ms. */
static uint64_t play_until(struct player *p, enum load_class wanted, uint32_t work_permille) {
    uint64_t from = p->now_ns;
    while (p->load.wanted != wanted && p->now_ns - from < 100 * NS_PER_S) {
        play(p, work_permille, 0);
    }
    return (p->now_ns - from) / MS;
}

static void play_ms(struct player *p, uint64_t ms, uint32_t work_permille) {
    for (uint64_t i = 0; i < ms * MS / LOAD_WINDOW_NS; i++) {
        play(p, work_permille, 0);
    }
}

static void the_class_is_left_in_time(void) {
    struct player p;
    begin(&p, 1, 2, true);
    play_ms(&p, 1000, 0);
    CHECK_EQ(p.load.wanted, CLASS_FIFO);
    uint64_t ms = play_until(&p, CLASS_OTHER, 1000);
    CHECK_EQ(counter_get(&p.load.class_left), 1);
    CHECK(ms <= 250); /* of the 950 after which the kernel would take 50 */
    /* At 95 % it takes a little longer, at 85 % the class is kept. */
    begin(&p, 1, 2, true);
    CHECK(play_until(&p, CLASS_OTHER, 950) <= 350);
    begin(&p, 1, 2, true);
    play_ms(&p, 60000, 850);
    CHECK_EQ(p.load.wanted, CLASS_FIFO);
    CHECK_EQ(counter_get(&p.load.class_left), 0);
}

static void spinning_is_no_load(void) {
    struct player p;
    begin(&p, 1, 2, true);
    for (int i = 0; i < 500; i++) {
        play(&p, 50, 900);
    }
    CHECK_EQ(p.load.wanted, CLASS_FIFO);
    CHECK_EQ(load_tolerance(&p.load), 0);
    CHECK_EQ(counter_get(&p.load.busy_ppm), 50000);
}

static void the_class_comes_back_with_hysteresis(void) {
    struct player p;
    begin(&p, 1, 2, true);
    play_until(&p, CLASS_OTHER, 1000);
    play_ms(&p, 20000, 800); /* less than what made it leave is not enough */
    CHECK_EQ(p.load.wanted, CLASS_OTHER);
    uint64_t ms = play_until(&p, CLASS_FIFO, 100);
    CHECK(ms >= 1000 && ms <= 1200);
    CHECK(counter_get(&p.load.class_left_ns) >= 21000 * MS);
    CHECK(counter_get(&p.load.class_left_ns) <= 21500 * MS);
    uint64_t out = counter_get(&p.load.class_left_ns);
    play_ms(&p, 1000, 100);
    CHECK_EQ(counter_get(&p.load.class_left_ns), out);
}

/* The thread is outside for as long as nobody lets it in, whatever it wants. */
static void who_is_relieved_comes_back_with_more_to_do(void) {
    struct player p;
    begin(&p, 1, 2, true);
    play_until(&p, CLASS_OTHER, 1000);
    play_ms(&p, 30000, 800);
    CHECK_EQ(p.load.wanted, CLASS_OTHER);
    load_relieve(&p.load, p.now_ns, true);
    uint64_t ms = play_until(&p, CLASS_FIFO, 800);
    CHECK(ms >= 1000 && ms <= 1300);
    play_until(&p, CLASS_OTHER, 1000);
    play_ms(&p, 30000, 860);
    CHECK_EQ(p.load.wanted, CLASS_OTHER);
}

/* Relief that has just begun takes effect soon: the class is not left for the load before it. */
static void who_is_being_relieved_stays(void) {
    struct player p;
    begin(&p, 1, 2, true);
    play_ms(&p, 200, 1000);
    CHECK_EQ(p.load.wanted, CLASS_FIFO);
    load_relieve(&p.load, p.now_ns, true);
    for (int i = 0; i < 49; i++) {
        play(&p, 1000, 0);
        load_relieve(&p.load, p.now_ns, true); /* no news */
        CHECK_EQ(p.load.wanted, CLASS_FIFO);
        CHECK_EQ(load_rest(&p.load), 550000); /* others are left what is theirs */
    }
    CHECK_EQ(play_until(&p, CLASS_OTHER, 1000), 10); /* it was no relief */
    begin(&p, 1, 2, true);
    play_ms(&p, 200, 1000);
    load_relieve(&p.load, p.now_ns, true);
    play_ms(&p, 60000, 850);
    CHECK_EQ(p.load.wanted, CLASS_FIFO);
    CHECK_EQ(counter_get(&p.load.class_left), 0);
    load_relieve(&p.load, p.now_ns, false);
    CHECK(play_until(&p, CLASS_OTHER, 1000) <= 250);
}

static void who_is_refused_the_class_stays_outside(void) {
    struct player p;
    begin(&p, 1, 2, true);
    play_until(&p, CLASS_OTHER, 1000);
    uint64_t left = p.now_ns;
    p.is_refused = true;
    play_until(&p, CLASS_FIFO, 100);
    play_ms(&p, 5000, 100);
    CHECK_EQ(counter_get(&p.load.class_left_ns), p.now_ns - left);
    play_until(&p, CLASS_OTHER, 1000); /* there is nothing to leave */
    CHECK_EQ(counter_get(&p.load.class_left), 1);
    play_until(&p, CLASS_FIFO, 100);
    p.is_refused = false;
    play(&p, 100, 0); /* it is given back after this one */
    uint64_t out = p.now_ns - left;
    CHECK_EQ(counter_get(&p.load.class_left_ns), out);
    play_ms(&p, 1000, 100);
    CHECK_EQ(counter_get(&p.load.class_left_ns), out);
    play_until(&p, CLASS_OTHER, 1000);
    CHECK_EQ(counter_get(&p.load.class_left), 2);
}

/* A load that comes and goes does not make it change its mind again and again. */
static void who_comes_back_too_early_stays_out_longer(void) {
    struct player p;
    uint64_t before = 0;
    begin(&p, 1, 2, true);
    for (int i = 0; i < 8; i++) {
        play_until(&p, CLASS_OTHER, 1000);
        uint64_t ms = play_until(&p, CLASS_FIFO, 100);
        CHECK(ms <= 16200);
        CHECK(ms + 400 >= 2 * before || ms >= 16000);
        before = ms;
    }
    CHECK(before >= 16000);
    play_ms(&p, 20000, 100); /* that was long ago */
    play_until(&p, CLASS_OTHER, 1000);
    CHECK(play_until(&p, CLASS_FIFO, 100) <= 1200);
}

static void without_the_class_nothing_is_left(void) {
    struct player p;
    begin(&p, 1, 2, false);
    play_ms(&p, 5000, 1000);
    CHECK_EQ(p.load.wanted, CLASS_OTHER);
    CHECK_EQ(counter_get(&p.load.class_left), 0);
    CHECK_EQ(counter_get(&p.load.class_left_ns), 0);
    CHECK_EQ(load_tolerance(&p.load), TOLERANCE_MAX_NS);
}

static void engines_of_one_machine_share_its_cores(void) {
    struct player p;
    begin(&p, 4, 2, true);
    play_ms(&p, 5000, 350);
    CHECK_EQ(p.load.wanted, CLASS_FIFO);
    play_ms(&p, 1000, 480);
    CHECK_EQ(p.load.wanted, CLASS_OTHER);
    begin(&p, 2, 8, true); /* never more than one core */
    play_ms(&p, 5000, 850);
    CHECK_EQ(p.load.wanted, CLASS_FIFO);
}

/* While it has the class, others get their 5 % in every window, before the kernel would take it. */
static void a_real_time_thread_rests(void) {
    struct player p;
    begin(&p, 1, 2, true);
    play(&p, 900, 0);
    CHECK_EQ(load_rest(&p.load), 0);
    play(&p, 970, 0);
    CHECK_EQ(load_rest(&p.load), 250000);
    CHECK_EQ(load_rest(&p.load), 0);
    play(&p, 0, 1000); /* spinning is no rest */
    CHECK_EQ(load_rest(&p.load), 550000);
    play_until(&p, CLASS_OTHER, 1000);
    play(&p, 1000, 0);
    CHECK_EQ(load_rest(&p.load), 0);
}

static void the_tolerance_follows_the_load(void) {
    struct player p;
    uint64_t before = 0;
    begin(&p, 1, 2, true);
    CHECK_EQ(load_tolerance(&p.load), 0);
    for (uint32_t permille = 0; permille <= 1000; permille += 50) {
        play_ms(&p, 2000, permille);
        uint64_t now = load_tolerance(&p.load);
        CHECK(now >= before && now <= TOLERANCE_MAX_NS);
        CHECK((now == 0) == (permille <= 600));
        before = now;
    }
    CHECK_EQ(before, TOLERANCE_MAX_NS);
    play_ms(&p, 2000, 0);
    CHECK_EQ(load_tolerance(&p.load), 0);
}

static void the_last_second_is_told(void) {
    struct player p;
    begin(&p, 1, 2, true);
    play_ms(&p, 990, 500);
    CHECK_EQ(counter_get(&p.load.busy_ppm), 0);
    play_ms(&p, 10, 500);
    CHECK_EQ(counter_get(&p.load.busy_ppm), 500000);
    play_ms(&p, 1000, 250);
    CHECK_EQ(counter_get(&p.load.busy_ppm), 250000);
}

static void what_waited_for_others_is_counted(void) {
    struct player p;
    begin(&p, 1, 2, true);
    uint64_t t = p.now_ns;
    CHECK_EQ(load_gather(&p.load, t, t + 1000, TIME_NEVER), 0); /* idle: no tolerance */
    load_sent(&p.load, t + 2000);
    CHECK_EQ(counter_get(&p.load.coalesced_frames), 0);
    play_ms(&p, 5000, 1000);
    t = p.now_ns;
    /* Rounds begin a tolerance apart, whatever the work between takes. */
    uint64_t until = load_gather(&p.load, t, t + 30000, TIME_NEVER);
    CHECK_EQ(until, t + TOLERANCE_MAX_NS);
    load_sent(&p.load, until); /* is on time */
    CHECK_EQ(counter_get(&p.load.coalesced_frames), 0);
    load_sent(&p.load, until - 1);
    CHECK_EQ(counter_get(&p.load.coalesced_max_ns), 1);
    load_sent(&p.load, t + 30000);
    CHECK_EQ(counter_get(&p.load.coalesced_max_ns), 70000);
    load_sent(&p.load, t + 10000); /* was late before, which is not the rest's doing */
    CHECK_EQ(counter_get(&p.load.coalesced_frames), 3);
    CHECK_EQ(counter_get(&p.load.coalesced_max_ns), 70000);
    /* A round that took longer is not followed by a rest. */
    CHECK_EQ(load_gather(&p.load, t, t + TOLERANCE_MAX_NS, TIME_NEVER), 0);
    CHECK_EQ(load_gather(&p.load, t, t + 95000, TIME_NEVER), 0);
    /* A change is due. */
    CHECK_EQ(load_gather(&p.load, t, t, t + 50000), t + 50000);
    CHECK_EQ(load_gather(&p.load, t + 90000, t + 90000, t + 50000), 0);
}

static void a_burden_is_a_number(void) {
    struct sim *sim = sim_new(1 << 24);
    sim_do(sim, "burden 950");
    CHECK_EQ(sim->burden_permille, 950);
    CHECK_TEXT(sim_ask(sim, "burden 1001"),
               "err range burden '1001' is not a number from 0 to 1000");
    CHECK_TEXT(sim_ask(sim, "burden"), "err syntax usage: burden PERMILLE");
    CHECK_TEXT(sim_ask(sim, "burden 1 2"), "err syntax usage: burden PERMILLE");
    CHECK_EQ(sim->burden_permille, 950);
    sim_free(sim);
}

void test_load(void) {
    the_class_is_left_in_time();
    spinning_is_no_load();
    the_class_comes_back_with_hysteresis();
    who_is_relieved_comes_back_with_more_to_do();
    who_is_being_relieved_stays();
    who_is_refused_the_class_stays_outside();
    who_comes_back_too_early_stays_out_longer();
    without_the_class_nothing_is_left();
    engines_of_one_machine_share_its_cores();
    a_real_time_thread_rests();
    the_tolerance_follows_the_load();
    the_last_second_is_told();
    what_waited_for_others_is_counted();
    a_burden_is_a_number();
}
