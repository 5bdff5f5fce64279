/* Flows that share a measured path: who counts, until when, and what the queue becomes. */
#include "common/tests/check.h"
#include "pktd/core/flows.h"
#include "pktd/tests/sim.h"

#include <string.h>

enum { FLOWS = 40, STEPS = 20000 };

#define MS 1000000ull

static struct frame *framed(struct pool *pool, const struct test_frame *from) {
    struct frame *frame = pool_frame(pool, from->bytes);
    memcpy(frame_bytes(frame), from->data, from->bytes);
    CHECK_EQ(packet_parse(&frame->info, &from->vnet, frame_bytes(frame), from->bytes), PACKET_OK);
    return frame;
}

static struct flows *new_flows(void) {
    struct flows *flows = calloc(1, sizeof *flows);
    struct flow_share *share = calloc(1, sizeof *share);
    share->one = (struct flow_rate){1, 2000000, 50000};
    CHECK(flow_rates_parse("2:3000000:60000;10:7000000:20000", &share->more));
    flows_join(flows, share);
    return flows;
}

static void free_flows(struct flows *flows) {
    for (struct flow_share *share; (share = flows->shares);) {
        flows->shares = share->next;
        free(share);
    }
    free(flows);
}

/* The same, from lists that are searched: the moments at which the number changes. */
struct model {
    uint64_t first[FLOWS]; /* of the present run of packets; 0: none */
    uint64_t last[FLOWS];
    bool counts[FLOWS];
};

static uint64_t rate_of(unsigned active) {
    unsigned n = active < 2 ? 1 : active > 10 ? 10 : active;
    return n == 1 ? 2000000 : 3000000 + (4000000ull * (n - 2) * 2 + 8) / 16;
}

static uint64_t queue_of(unsigned active) {
    unsigned n = active < 2 ? 1 : active > 10 ? 10 : active;
    return n == 1 ? 50000 : 60000 - (40000ull * (n - 2) * 2 + 7) / 16;
}

static unsigned active_of(const struct model *m) {
    unsigned active = 0;
    for (int i = 0; i < FLOWS; i++) {
        active += m->counts[i];
    }
    return active;
}

static void change(const struct model *m, struct queue *q, uint64_t at_ns) {
    uint64_t rate_bps = rate_of(active_of(m));
    if (rate_bps != q->rate_bps) {
        queue_set_rate(q, at_ns, rate_bps);
    }
}

/* Ends what is due by `at_ns`, in order. */
static void expire(struct model *m, struct queue *q, uint64_t at_ns) {
    for (;;) {
        int next = -1;
        for (int i = 0; i < FLOWS; i++) {
            if (m->first[i] && m->last[i] + FLOW_WINDOW_NS <= at_ns &&
                (next < 0 || m->last[i] < m->last[next])) {
                next = i;
            }
        }
        if (next < 0) {
            return;
        }
        m->first[next] = 0;
        if (m->counts[next]) {
            m->counts[next] = false;
            change(m, q, m->last[next] + FLOW_WINDOW_NS);
        }
    }
}

static void see(struct model *m, struct queue *q, int who, bool ends, uint64_t at_ns) {
    bool counted = m->counts[who];
    m->counts[who] = !ends && m->first[who];
    m->first[who] = ends ? 0 : m->first[who] ? m->first[who] : at_ns;
    m->last[who] = at_ns;
    if (counted != m->counts[who]) {
        change(m, q, at_ns);
    }
}

/* Random flows that come, pause and end: the number, the rate and the backlog are those of a model
 * that hears of every change at its moment. */
static void as_a_model_that_searches(void) {
    struct pool pool;
    pool_init(&pool, 64u << 20);
    struct frame *frame[FLOWS][2];
    static struct test_frame made;
    for (unsigned i = 0; i < FLOWS; i++) {
        for (unsigned ends = 0; ends < 2; ends++) {
            make_frame(&made, i % 2 ? 4 : 6, TEST_TCP, i, 60, 100, 0);
            frame[i][ends] = framed(&pool, &made);
            uint8_t *flags = frame_bytes(frame[i][ends]) + frame[i][ends]->info.l4 + 13;
            *flags = (uint8_t)((*flags & 0xFE) | ends); /* FIN */
        }
    }
    struct flows *flows = new_flows();
    struct queue q = {.rate_bps = 2000000, .capacity_bps = 10000000, .limit_bytes = 50000};
    struct queue want = q;
    struct model model = {0};
    uint64_t random = 7, at_ns = 5 * MS, most = 0;
    for (int step = 0; step < STEPS; step++) {
        bool pauses = next_random(&random) % 400 == 0;
        at_ns += next_random(&random) % (pauses ? 3000 * MS : 40 * MS);
        int who = (int)(next_random(&random) % (1 + next_random(&random) % FLOWS));
        bool ends = next_random(&random) % 50 == 0;
        expire(&model, &want, at_ns);
        see(&model, &want, who, ends, at_ns);
        flows_see(flows, flows->shares, &q, frame[who][ends], at_ns);
        CHECK_EQ(flows->active, active_of(&model));
        CHECK_EQ(q.rate_bps, rate_of(flows->active));
        CHECK_EQ(q.limit_bytes, queue_of(flows->active));
        struct service service, wanted;
        want.limit_bytes = q.limit_bytes;
        CHECK_EQ(queue_offer(&q, at_ns, 1500, &service), queue_offer(&want, at_ns, 1500, &wanted));
        CHECK_EQ(q.free_ns, want.free_ns);
        most = flows->active > most ? flows->active : most;
    }
    CHECK(most > 10);
    free_flows(flows);
    pool_destroy(&pool);
}

static void only_payload_of_programs_counts(void) {
    struct pool pool;
    pool_init(&pool, 64u << 20);
    static struct test_frame made;
    struct flows *flows = new_flows();
    struct queue q = {.rate_bps = 2000000, .limit_bytes = 50000};
    make_frame(&made, 4, TEST_TCP, 0, 1, 0, 0); /* an acknowledgement */
    made.data[ETH_BYTES + 20 + 13] &= 0xFE;
    struct frame *bare = framed(&pool, &made);
    make_frame(&made, 4, TEST_UDP, 0, 1, 0, 0);
    struct frame *empty = framed(&pool, &made);
    make_frame(&made, 4, TEST_UDP, 0, 1, 10, 0);
    struct frame *datagram = framed(&pool, &made);
    struct frame *probe = framed(&pool, &made);
    probe->info.probe = true;
    struct frame *cut_short = framed(&pool, &made);
    cut_short->info.length = cut_short->info.l4 + 4u;
    struct frame *fragment = framed(&pool, &made);
    fragment->info.protocol = 59;
    struct frame *none[] = {bare, empty, probe, cut_short, fragment};
    for (uint64_t at_ns = 1; at_ns < 20; at_ns++) {
        flows_see(flows, flows->shares, &q, none[at_ns % 5], at_ns);
        CHECK_EQ(flows->active, 0);
        CHECK_EQ(flows->used, 0);
    }
    flows_see(flows, flows->shares, &q, datagram, 30);
    CHECK_EQ(flows->active, 0);
    flows_see(flows, flows->shares, &q, datagram,
              30 + FLOW_WINDOW_NS); /* too late: it is the first again */
    CHECK_EQ(flows->active, 0);
    flows_see(flows, flows->shares, &q, datagram, 29 + 2 * FLOW_WINDOW_NS);
    CHECK_EQ(flows->active, 1);
    free_flows(flows);
    pool_destroy(&pool);
}

/* More than can be told apart count as so many, and room comes back. */
static void there_is_an_end_of_room(void) {
    struct pool pool;
    pool_init(&pool, 64u << 20);
    static struct test_frame made;
    make_frame(&made, 4, TEST_UDP, 0, 1, 10, 0);
    struct frame *frame = framed(&pool, &made);
    struct flows *flows = new_flows();
    struct queue q = {.rate_bps = 2000000, .limit_bytes = 50000};
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2 * FLOW_LIMIT; i++) {
            frame->info.source[12] = (uint8_t)(i / 2 >> 8);
            frame->info.source[13] = (uint8_t)(i / 2);
            flows_see(flows, flows->shares, &q, frame, 1 + round * 2 * FLOW_WINDOW_NS);
        }
        CHECK_EQ(flows->active, FLOW_LIMIT);
        CHECK_EQ(q.rate_bps, 7000000);
        frame->info.source[12] = 255;
        flows_see(flows, flows->shares, &q, frame, 2 + round * 2 * FLOW_WINDOW_NS);
        flows_see(flows, flows->shares, &q, frame, 3 + round * 2 * FLOW_WINDOW_NS);
        CHECK_EQ(flows->active, FLOW_LIMIT);
    }
    free_flows(flows);
    pool_destroy(&pool);
}

/* One flow gets what the link has, two get what the table has for two. */
static void a_link_counts_its_flows(void) {
    struct sim *sim = sim_new(64u << 20);
    sim_pair(sim, "rate=8000000 delay=0 jitter=0 loss=0 queue=100000 dist=normal seed=1 up=1");
    sim_do(sim, "set 0 cap=16000000 flows=2:16000000:100000");
    for (int link = 1; link < 4; link++) {
        sim_do(sim, "set %d rate=0", link);
    }
    sim_commit(sim);
    static struct test_frame one, two;
    make_frame(&one, 4, TEST_UDP, 0, 1, 972, 0); /* 1,000 bytes: 1 ms at 8 Mb/s */
    make_frame(&two, 4, TEST_TCP, 0, 1, 948, 0);
    two.data[ETH_BYTES + 20 + 13] &= 0xFE; /* no FIN */
    uint64_t t0 = sim->now_ns;
    for (uint64_t i = 0; i < 4000; i++) {
        sim_run(sim, t0 + i * MS / 2);
        sim_send(sim, 0, &one);
    }
    sim_run(sim, t0 + 2000 * MS);
    CHECK(sim->count >= 2000 && sim->count <= 2105); /* 2 s, and a queue more */
    sim_run(sim, t0 + 4000 * MS);
    sim_forget(sim);
    for (uint64_t i = 0; i < 4000; i++) {
        sim_run(sim, t0 + 4000 * MS + i * MS / 2);
        sim_send(sim, 0, i % 2 ? &one : &two);
    }
    sim_run(sim, t0 + 8000 * MS);
    CHECK_EQ(sim->count, 4000);
    CHECK(strncmp(sim_ask(sim, "set 0 flows=1:2:3"), "err range", 9) == 0);
    CHECK(strncmp(sim_ask(sim, "link 0 0 2 flows=7"), "err range", 9) == 0);
    sim_do(sim, "set 0 flows=0");
    sim_commit(sim);
    sim_free(sim);
}

void test_flows(void) {
    as_a_model_that_searches();
    only_payload_of_programs_counts();
    there_is_an_end_of_room();
    a_link_counts_its_flows();
}
