/* Links that share one queue: what there is for them, and whose packets are lost. */
#include "common/tests/check.h"
#include "pktd/core/flows.h"
#include "pktd/tests/sim.h"

#include <math.h>
#include <string.h>

enum { PATHS = 4, FLOWS = 24, STEPS = 20000 };

#define MS 1000000ull
#define CAPACITY 100000000.0

/* What was measured of the paths: at 1 and at 10 flows, b/s; and the queue that each would have by
 * itself, with its round trip. */
static const struct known {
    double rate[2];
    double queue[2];
    double rtt_s;
    const char *table;
} known[PATHS] = {{{2e6, 8e6}, {400e3, 700e3}, 0.02, "10:8000000:700000"},
                  {{9e6, 9e6}, {300e3, 300e3}, 0.05, "0"},
                  {{20e6, 11e6}, {90e3, 250e3}, 0.12, "10:11000000:250000"},
                  {{1e6, 4e6}, {900e3, 1000e3}, 0.001, "10:4000000:1000000"}};

static double between(const double *pair, unsigned flows, bool constant) {
    double n = flows < 1 || constant ? 1 : flows > 10 ? 10 : flows;
    return pair[0] + (pair[1] - pair[0]) * (n - 1) / 9;
}

struct expected {
    double rate;
    double queue;
};

/* From the formulas, in reals: rates by their flows; the time that flows tolerate, less the longest
 * round trip, half of it at the capacity; at least what is on its way in a round trip. */
static struct expected of(const unsigned *count) {
    unsigned all = 0, flows = 0;
    for (int i = 0; i < PATHS; i++) {
        flows += count[i];
    }
    double rate = 0, slowness = 0, longest = 0;
    for (int i = 0; i < PATHS; i++) {
        unsigned weight = flows ? count[i] : 1;
        bool constant = known[i].table[0] == '0';
        if (weight) {
            double queue = between(known[i].queue, flows, constant);
            all += weight;
            rate += weight * round(between(known[i].rate, flows, constant));
            slowness += weight / (known[i].rtt_s + 16 * queue / CAPACITY);
            longest = fmax(longest, known[i].rtt_s);
        }
    }
    double queue = (all / slowness - longest) * CAPACITY / 16;
    return (struct expected){rate / all, fmax(queue, fmax(rate / all * longest / 8, 3000))};
}

static struct frame *framed(struct pool *pool, unsigned who) {
    static struct test_frame made;
    make_frame(&made, 4, TEST_UDP, who, 60, 100, 0);
    struct frame *frame = pool_frame(pool, made.bytes);
    memcpy(frame_bytes(frame), made.data, made.bytes);
    CHECK_EQ(packet_parse(&frame->info, &made.vnet, frame_bytes(frame), made.bytes), PACKET_OK);
    return frame;
}

/* Who counts, found by searching. */
struct model {
    uint64_t first[FLOWS];
    uint64_t last[FLOWS];
};

static void count(const struct model *m, uint64_t at_ns, unsigned *found) {
    memset(found, 0, PATHS * sizeof *found);
    for (unsigned i = 0; i < FLOWS; i++) {
        found[i % PATHS] +=
            m->first[i] && m->last[i] + FLOW_WINDOW_NS > at_ns && m->last[i] > m->first[i];
    }
}

static void see(struct model *m, unsigned who, uint64_t at_ns) {
    if (!m->first[who] || m->last[who] + FLOW_WINDOW_NS <= at_ns) {
        m->first[who] = at_ns;
    }
    m->last[who] = at_ns;
}

static void what_is_available_follows_from_the_flows_of_all(void) {
    struct pool pool;
    pool_init(&pool, 64u << 20);
    struct flows *flows = calloc(1, sizeof *flows);
    struct flow_share share[PATHS] = {0};
    struct frame *frame[FLOWS];
    flows->is_neck = true;
    for (unsigned i = 0; i < FLOWS; i++) {
        frame[i] = framed(&pool, i);
    }
    for (unsigned i = 0; i < PATHS; i++) {
        share[i].one =
            (struct flow_rate){1, (uint64_t)known[i].rate[0], (uint64_t)known[i].queue[0]};
        share[i].rtt_ns = (uint64_t)llround(known[i].rtt_s * 1e9);
        share[i].salt = i;
        CHECK(flow_rates_parse(known[i].table, &share[i].more));
        flows_join(flows, &share[i]);
    }
    struct queue q = {.rate_bps = 1, .capacity_bps = (uint64_t)CAPACITY};
    struct model model = {0};
    uint64_t random = 11, at_ns = 5 * MS;
    unsigned most = 0;
    flows_apply(flows, &q, at_ns);
    for (int step = 0; step < STEPS; step++) {
        unsigned active[PATHS], all = 0;
        count(&model, at_ns, active);
        struct expected want = of(active);
        CHECK(fabs((double)q.rate_bps - want.rate) <= 1.01);
        CHECK(fabs((double)q.limit_bytes - want.queue) <= 3 + want.queue / 1e6);
        for (unsigned i = 0; i < PATHS; i++) {
            CHECK_EQ(share[i].active, active[i]);
            all += active[i];
        }
        CHECK_EQ(flows->active, all);
        most = all > most ? all : most;
        bool pauses = next_random(&random) % 300 == 0;
        at_ns += 1 + next_random(&random) % (pauses ? 3000 * MS : 60 * MS);
        unsigned who = (unsigned)(next_random(&random) % (1 + next_random(&random) % FLOWS));
        see(&model, who, at_ns);
        flows_see(flows, &share[who % PATHS], &q, frame[who], at_ns);
    }
    CHECK(most > 12);
    free(flows);
    pool_destroy(&pool);
}

/* With one path in use a neck is what that path would be by itself, to the byte. */
static void one_path_in_use_is_a_path(void) {
    struct flows *flows = calloc(1, sizeof *flows);
    struct flow_share share[2] = {0};
    flows->is_neck = true;
    uint64_t random = 3;
    for (int i = 0; i < 2; i++) {
        flows_join(flows, &share[i]);
    }
    for (int round = 0; round < 5000; round++) {
        uint64_t capacity = 1000000 + next_random(&random) % 1000000000;
        for (int i = 0; i < 2; i++) {
            share[i].rtt_ns = 1 + next_random(&random) % 400000000;
            uint64_t rate = 1 + next_random(&random) % capacity;
            uint64_t least = (uint64_t)((u128)rate * share[i].rtt_ns / 8000000000ull);
            uint64_t queue = max_u64(least, 3000) + next_random(&random) % 2000000;
            share[i].one = (struct flow_rate){1, rate, queue};
        }
        struct queue q = {.capacity_bps = capacity};
        share[0].active = flows->active = 1 + (uint32_t)(next_random(&random) % 4096);
        flows_apply(flows, &q, 1);
        CHECK_EQ(q.rate_bps, share[0].one.rate_bps);
        CHECK_EQ(q.limit_bytes, share[0].one.queue_bytes);
    }
    free(flows);
}

#define LINK "delay=%s jitter=0 loss=0 dist=normal cap=16000000 neck=west"

/* Links 0 and 2, of nodes 0 and 1, to the bridge are one neck; 1 and 3 carry anything. */
static struct sim *new_neck(void) {
    struct sim *sim = sim_new(64u << 20);
    for (int i = 0; i < 2; i++) {
        sim_do(sim, "open %d netns=/x if=eth0", i);
        sim_do(sim, "node %d ip=10.77.0.%d", i, i + 1);
        sim_do(sim, "bind %d %d", i, i);
    }
    sim_do(sim, "node 2");
    sim_do(sim, "link 0 0 2 rate=8000000 queue=40000 up=1 seed=1 " LINK, "0");
    sim_do(sim, "link 2 1 2 rate=4000000 queue=40000 up=1 seed=3 " LINK, "5000000");
    for (int i = 0; i < 2; i++) {
        sim_do(sim, "link %d 2 %d rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal seed=2 up=1",
               1 + 2 * i, 1 - i);
    }
    sim_do(sim, "route 0 0 1");
    sim_do(sim, "route 2 1 1");
    sim_do(sim, "route 1 2 0");
    sim_do(sim, "route 2 3 0");
    sim_commit(sim);
    return sim;
}

/* 1,000 bytes each way at 4,000 packets a second, which is more than there is. */
static void offer(struct sim *sim, uint64_t from_ns, unsigned both, unsigned packets) {
    static struct test_frame one, two;
    make_frame(&one, 4, TEST_UDP, 0, 1, 972, 0);
    make_frame(&two, 4, TEST_UDP, 1, 0, 972, 0);
    for (unsigned i = 0; i < packets; i++) {
        sim_run(sim, from_ns + i * MS / 4);
        for (unsigned k = i; k < i + 2; k++) { /* either comes first as often */
            if (both & (1u << k % 2)) {
                sim_send(sim, k % 2, k % 2 ? &two : &one);
            }
        }
    }
    sim_run(sim, from_ns + packets * MS / 4);
}

/* Against what comes later: a packet of link 0 when it leaves the queue, one of link 2 5 ms after.
 */
static void check_own(struct sim *sim, const uint64_t *own) {
    uint64_t now_ns = sim->now_ns, bytes[2] = {0, 0};
    sim_forget(sim);
    sim_run(sim, now_ns + 1000 * MS);
    for (size_t k = 0; k < sim->count; k++) {
        unsigned link = sim->delivery[k].port == 0;
        bytes[link] += sim->delivery[k].at_ns > now_ns + link * 5 * MS ? 1000 : 0;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(bytes[i] > 2000);
        CHECK(own[i] >= bytes[i] && own[i] <= bytes[i] + 40000 / OWN_PARTS + 1000);
    }
}

/* By itself either gets what it has; together they get half of the sum, a flow each. */
static void links_share_a_queue(void) {
    struct sim *sim = new_neck();
    uint64_t t0 = sim->now_ns;
    const struct {
        unsigned both;
        double bps;
    } turns[] = {{1, 8e6}, {2, 4e6}, {3, 6e6}};
    for (unsigned turn = 0; turn < 3; turn++) {
        uint64_t begin = t0 + turn * 10000 * MS;
        offer(sim, begin, turns[turn].both, 8000); /* the queue is full when one second is over */
        sim_forget(sim);
        offer(sim, begin + 2000 * MS, turns[turn].both, 16000);
        CHECK(fabs((double)sim->count * 8000 / 4 / turns[turn].bps - 1) < 0.002);
        sim_run(sim, begin + 9000 * MS);
    }
    uint64_t waits[2], own[2];
    offer(sim, sim->now_ns, 3, 400);
    sim_do(sim, "stats links");
    const char *answer = sim_ask(sim, "stats links");
    CHECK(strncmp(answer, "ok 2", 4) == 0); /* though nothing has moved */
    offer(sim, sim->now_ns, 3, 8);
    char told[8192];
    snprintf(told, sizeof told, "%s", sim_ask(sim, "stats links"));
    for (int i = 0; i < 2; i++) {
        char start[8];
        snprintf(start, sizeof start, "\n%d ", 2 * i);
        const char *line = strstr(told, start);
        CHECK(line);
        unsigned long long field[11];
        CHECK_EQ(sscanf(line, "%llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", &field[0],
                        &field[1], &field[2], &field[3], &field[4], &field[5], &field[6], &field[7],
                        &field[8], &field[9], &field[10]),
                 11);
        waits[i] = field[8];
        own[i] = field[10];
    }
    check_own(sim, own);
    CHECK_EQ(waits[0], waits[1]); /* of the neck */
    CHECK(waits[0] > 30000 && waits[0] <= 40000);
    sim_free(sim);
}

/* What one of them loses when it goes down leaves its place to nobody: the other's packets come
 * when they would have. */
static void a_link_that_goes_down_loses_its_own(void) {
    struct sim *sim[2] = {new_neck(), new_neck()};
    size_t kept[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        uint64_t t0 = sim[i]->now_ns;
        offer(sim[i], t0, 3, 200);
        sim_forget(sim[i]);
        if (i == 1) {
            sim_do(sim[i], "set 0 up=0");
            sim_commit(sim[i]);
            CHECK(sim_stat(sim[i], "stats links", "0 ", 8) > 0);
        }
        sim_run(sim[i], t0 + 1000 * MS);
        if (i == 1) { /* nothing of it has moved, and what was told of the queue is over */
            const char *told = sim_ask(sim[i], "stats links");
            CHECK(strncmp(told, "ok 3\n0 ", 7) == 0 && strstr(told, " 0 0 0\n2 "));
            CHECK_TEXT(sim_ask(sim[i], "stats links"), "ok 0");
        }
        for (size_t k = 0; k < sim[i]->count; k++) {
            kept[i] += sim[i]->delivery[k].port == 0; /* from node 1 */
        }
    }
    CHECK(kept[0] > 5 && kept[0] < sim[0]->count);
    CHECK_EQ(kept[1], kept[0]);
    CHECK_EQ(sim[1]->count, kept[1]);
    size_t at = 0;
    for (size_t k = 0; k < sim[0]->count; k++) {
        if (sim[0]->delivery[k].port == 0) {
            CHECK_EQ(sim[0]->delivery[k].at_ns, sim[1]->delivery[at++].at_ns);
        }
    }
    sim_free(sim[0]);
    sim_free(sim[1]);
}

/* When the capacity doubles, what waits of all of them leaves in half the time. */
static void capacities_are_of_all(void) {
    struct sim *sim = new_neck();
    uint64_t t0 = sim->now_ns, last[2];
    for (int i = 0; i < 2; i++) {
        offer(sim, t0 + i * 5000 * MS, 3, 400);
        uint64_t at_ns = sim->now_ns;
        if (i == 1) {
            uint64_t own = sim_stat(sim, "stats links", "0 ", 10);
            sim_do(sim, "set 0 cap=32000000");
            sim_do(sim, "set 2 cap=32000000");
            sim_commit(sim);
            CHECK(own > 2000);
            CHECK_EQ(flows_own_bytes(engine_link(sim->engine, 0)->share, at_ns), own);
        }
        sim_run(sim, at_ns + 1000 * MS);
        last[i] = 0;
        for (size_t k = 0; k < sim->count; k++) {
            uint64_t late = sim->delivery[k].port == 1 ? sim->delivery[k].at_ns : at_ns;
            last[i] = max_u64(last[i], max_u64(late, at_ns) - at_ns);
        }
        sim_forget(sim);
    }
    CHECK(last[0] > 14 * MS && last[0] <= 20 * MS); /* 40,000 bytes at 16 Mb/s */
    CHECK(2 * last[1] <= last[0] + 100 && 2 * last[1] + 100 >= last[0]);
    sim_free(sim);
}

static void what_no_neck_is(void) {
    struct sim *sim = new_neck();
    CHECK(strncmp(sim_ask(sim, "set 0 neck=east"), "err conflict", 12) == 0);
    CHECK(strncmp(sim_ask(sim, "set 0 neck=0"), "err conflict", 12) == 0);
    CHECK(strncmp(sim_ask(sim, "set 1 neck=west"), "err conflict", 12) == 0);
    CHECK(strncmp(sim_ask(sim, "set 0 rate=0"), "err range", 9) == 0);
    CHECK(strncmp(sim_ask(sim, "set 0 pkts=3"), "err conflict", 12) == 0);
    CHECK(strncmp(sim_ask(sim, "link 4 0 2 rate=0 queue=1 up=1 seed=1 " LINK, "0"), "err range",
                  9) == 0);
    CHECK(strncmp(sim_ask(sim, "set 0 rtt=86400000000001"), "err range", 9) == 0);
    sim_do(sim, "link 4 0 2 rate=9 queue=1 up=1 seed=1 " LINK, "0");
    sim_do(sim, "abort");
    sim_do(sim, "link 4 0 2 rate=9 queue=1 up=1 seed=1 delay=0 jitter=0 loss=0 dist=normal "
                "neck=east flows=2:10:20");
    sim_do(sim, "abort");
    sim_do(sim, "link 4 0 2 rate=9 queue=1 up=1 seed=1 delay=0 jitter=0 loss=0 dist=normal "
                "neck=0 flows=2:10:20");
    sim_do(sim, "set 0 neck=west");
    sim_commit(sim);
    sim_free(sim);
}

void test_necks(void) {
    what_is_available_follows_from_the_flows_of_all();
    one_path_in_use_is_a_path();
    links_share_a_queue();
    a_link_that_goes_down_loses_its_own();
    capacities_are_of_all();
    what_no_neck_is();
}
