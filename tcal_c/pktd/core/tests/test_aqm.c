/* What queues drop and mark before they are full, against formulas and against a second CoDel. */
#include "common/tests/check.h"
#include "pktd/core/aqm/aqm.h"
#include "pktd/core/packets/ecn.h"
#include "pktd/tests/frames.h"

#include <math.h>

#define MS 1000000ull
#define US 1000ull
#define FULL 1500u
#define SERVICE (1200 * US) /* of a full packet at 10 Mb/s */

enum { FLOWS = 16 };

/* A queue in front of a sender of 10 Mb/s. */
static struct world {
    struct pool pool;
    struct aqm aqm;
    struct fq_flow flow[1024];
    uint64_t now_ns, free_ns, n;
    uint32_t sent[FLOWS], lost[FLOWS], marked[FLOWS];
    uint64_t sent_bytes[FLOWS], waited_ns[FLOWS], most_ns[FLOWS];
    uint64_t lost_ns[20000]; /* when they were */
    uint32_t losses;
} w;

static struct test_frame frame;

static const struct aqm_config codel = {
    .kind = AQM_CODEL, .target_ns = 5 * MS, .interval_ns = 100 * MS};
static const struct aqm_config fq_codel = {.kind = AQM_FQ_CODEL,
                                           .target_ns = 5 * MS,
                                           .interval_ns = 100 * MS,
                                           .quantum = 1514,
                                           .flows = 1024};
static const struct aqm_config pie = {
    .kind = AQM_PIE, .target_ns = 15 * MS, .tupdate_ns = 15 * MS, .alpha = 2, .beta = 20};
static const struct aqm_config red = {.kind = AQM_RED,
                                      .min_bytes = 30000,
                                      .max_bytes = 90000,
                                      .probability_ppb = 20000000,
                                      .avpkt = 1000};

static void begin(const struct aqm_config *config, uint64_t limit_packets) {
    pool_destroy(&w.pool);
    memset(&w, 0, sizeof w);
    pool_init(&w.pool, 64u << 20);
    w.aqm.seed = w.aqm.salt = 5;
    aqm_limit(&w.aqm, 1u << 30, limit_packets);
    aqm_change(&w.aqm, config, w.flow, 0);
}

static uint32_t flow_of(const struct piece *piece) {
    return piece->frame->dest;
}

static void count_lost(uint64_t at_ns) {
    for (struct piece *piece; (piece = aqm_lost(&w.aqm));) {
        w.lost[flow_of(piece)]++;
        if (w.losses < sizeof w.lost_ns / sizeof *w.lost_ns) {
            w.lost_ns[w.losses++] = at_ns;
        }
        pool_piece_release(&w.pool, piece);
    }
}

/* Sends what begins before `until_ns`. */
static void run(uint64_t until_ns) {
    while (w.aqm.packets && max_u64(w.free_ns, w.aqm.since_ns) < until_ns) {
        uint64_t at_ns = max_u64(w.free_ns, w.aqm.since_ns);
        struct piece *piece = aqm_take(&w.aqm, at_ns);
        count_lost(at_ns);
        if (!piece) {
            continue;
        }
        uint32_t flow = flow_of(piece);
        uint64_t waited_ns = fifo_waited(piece, at_ns);
        w.sent[flow]++;
        w.sent_bytes[flow] += piece_bytes(piece);
        w.waited_ns[flow] += waited_ns;
        w.most_ns[flow] = max_u64(w.most_ns[flow], waited_ns);
        w.marked[flow] += piece->marked;
        w.free_ns = at_ns + SERVICE * piece_bytes(piece) / FULL;
        pool_piece_release(&w.pool, piece);
    }
    w.now_ns = until_ns;
}

/* A packet of a flow at a time that is not before the last. */
static void come(uint32_t flow, uint32_t bytes, bool capable, uint64_t at_ns) {
    run(at_ns);
    make_packet(&frame, 0, 1, bytes);
    frame.data[15] = capable ? 2 : 0;
    frame.data[34] = (uint8_t)flow; /* source port */
    struct frame *made = pool_frame(&w.pool, frame.bytes);
    CHECK(made);
    memcpy(frame_bytes(made), frame.data, frame.bytes);
    CHECK_EQ(packet_parse(&made->info, &frame.vnet, frame.data, frame.bytes), PACKET_OK);
    made->dest = (uint16_t)flow;
    struct piece *piece = pool_piece(&w.pool, made);
    pool_release(&w.pool, made);
    piece->count = 1;
    uint64_t sending = w.free_ns > at_ns ? (w.free_ns - at_ns) * FULL / SERVICE : 0;
    const struct aqm_sending now = {10000000, sending, w.free_ns};
    aqm_put(&w.aqm, piece, w.n++, &now, at_ns);
    count_lost(at_ns);
    run(at_ns + 1);
}

/* --- drop-tail --- */

static void a_limit_of_packets_counts_what_is_being_sent(void) {
    begin(&(struct aqm_config){.kind = AQM_NONE}, 10);
    for (int i = 0; i < 15; i++) {
        come(0, i % 2 ? FULL : 100, false, 0);
    }
    run(1000 * MS);
    CHECK_EQ(w.sent[0], 10);
    CHECK_EQ(w.lost[0], 5);
}

/* --- codel --- */

/* One step of Newton's method for 1 / sqrt(n) from `x`, in whole 65536ths, as Linux does it. */
static double newton(double x, uint32_t n) {
    return floor(x * (1.5 - 0.5 * n * x * x) * 65536) / 65536;
}

/* Twice what can be sent: after an interval of packets that have waited too long one is dropped,
 * the next interval / sqrt(n) later, as exactly as packets are sent and as Newton's method comes
 * to the root: at the third drop it is 3 % off, and then less. */
static void codel_drops_interval_by_root_n_apart(void) {
    begin(&codel, 1000000);
    for (uint64_t at = 0; at < 4000 * MS; at += SERVICE / 2) {
        come(0, FULL, false, at);
    }
    CHECK(w.losses > 100);
    uint64_t first = w.lost_ns[0];
    /* Packet 8 is the first to wait for 5 ms, at 10 ms. */
    CHECK(first >= 110 * MS && first < 110 * MS + 2 * SERVICE);
    double next = (double)first, root = 65535.0 / 65536;
    for (uint32_t k = 0; k < w.losses; k++) {
        double grain = 1600.0 * (k + 1); /* of the root, 2^-16 of the interval a drop */
        CHECK((double)w.lost_ns[k] > next - grain && (double)w.lost_ns[k] < next + SERVICE + grain);
        root = k == 0 ? root : newton(root, k + 1);
        CHECK(k < 2 || fabs(root * sqrt(k + 1) - 1) < 0.03);
        next += 100e6 * root;
    }
}

static void codel_leaves_short_bursts_alone(void) {
    begin(&codel, 1000);
    for (uint64_t burst = 0; burst < 100; burst++) {
        for (int i = 0; i < 80; i++) { /* 96 ms */
            come(0, FULL, false, burst * 200 * MS);
        }
    }
    run(30000 * MS);
    CHECK_EQ(w.lost[0], 0);
    CHECK_EQ(w.sent[0], 8000);
}

static void codel_marks_what_allows_it(void) {
    struct aqm_config marks = codel;
    marks.ecn = 1;
    begin(&marks, 1000000);
    for (uint64_t at = 0; at < 4000 * MS; at += SERVICE / 2) {
        come(0, FULL, true, at);
    }
    CHECK_EQ(w.lost[0], 0);
    CHECK(w.marked[0] > 100);
    uint32_t marked = w.marked[0];
    begin(&codel, 1000000);
    for (uint64_t at = 0; at < 4000 * MS; at += SERVICE / 2) {
        come(0, FULL, true, at);
    }
    CHECK_EQ(w.marked[0], 0);
    CHECK(w.lost[0] >= marked && w.lost[0] < marked + marked / 5);
}

/* The same in floating point, written after the pseudocode of RFC 8289, Section 5, with Linux' way
 * to the root. */
struct model {
    double waiting[4096]; /* times of coming */
    uint32_t head, tail;
    double above, next, root;
    uint32_t count, last;
    bool dropping, late;
};

static double model_next(struct model *m, double now, bool *there) {
    *there = m->head != m->tail;
    m->late = false;
    if (!*there) {
        m->above = 0;
        return 0;
    }
    double came = m->waiting[m->head++ % 4096];
    if (now - came < 5e6 || (m->tail - m->head) * FULL <= FULL) {
        m->above = 0;
    } else if (m->above == 0) {
        m->above = now + 100e6;
    } else {
        m->late = now >= m->above;
    }
    return came;
}

/* How many it drops before one is sent at `now`. */
static uint32_t model_take(struct model *m, double now) {
    uint32_t drops = 0;
    bool there;
    model_next(m, now, &there);
    if (m->dropping) {
        m->dropping = m->late;
        while (m->dropping && now >= m->next) {
            drops++;
            m->count++;
            m->root = newton(m->root, m->count);
            model_next(m, now, &there);
            m->dropping = m->late;
            m->next += m->late ? floor(100e6 * m->root) : 0;
        }
    } else if (m->late) {
        drops++;
        model_next(m, now, &there);
        m->dropping = true;
        uint32_t delta = m->count - m->last;
        bool soon = delta > 1 && now - m->next < 16 * 100e6;
        m->count = soon ? delta : 1;
        m->root = soon ? newton(m->root, m->count) : 65535.0 / 65536;
        m->last = m->count;
        m->next = now + floor(100e6 * m->root);
    }
    return drops;
}

static void codel_is_that_of_the_rfc_and_of_linux(void) {
    static struct model m;
    begin(&codel, 4000);
    uint64_t random = 3, at = 0, free_ns = 0;
    uint32_t drops = 0;
    for (uint32_t i = 0; i < 40000; i++) {
        /* Loads of 0.5 to 1.7, for a second or so each. */
        uint64_t mean = SERVICE * 10 / (5 + i / 1000 * 7 % 13);
        at += next_random(&random) % (2 * mean);
        while (m.head != m.tail) {
            uint64_t now = max_u64(free_ns, (uint64_t)m.waiting[m.head % 4096]);
            if (now >= at) {
                break;
            }
            uint32_t before = m.head, dropped = model_take(&m, (double)now);
            drops += dropped;
            free_ns = m.head - before > dropped ? now + SERVICE : free_ns;
        }
        if (m.tail - m.head < 4000) {
            m.waiting[m.tail++ % 4096] = (double)at;
        }
        come(0, FULL, false, at);
        if (w.aqm.packets == 0) { /* what has just come is being sent */
            uint32_t dropped = model_take(&m, (double)at);
            CHECK_EQ(dropped, 0);
            free_ns = at + SERVICE;
        }
        CHECK_EQ(w.lost[0], drops);
        CHECK_EQ(w.aqm.packets, m.tail - m.head);
    }
    CHECK(drops > 200);
}

/* --- fq_codel --- */

static void fq_codel_keeps_a_sparse_flow_from_waiting(void) {
    begin(&fq_codel, 10240);
    for (uint64_t i = 0; i < 10000; i++) {
        come(1, FULL, false, i * SERVICE / 2);
        if (i % 20 == 7) {
            come(2, 200, false, i * SERVICE / 2 + 1000);
        }
    }
    CHECK_EQ(w.lost[2], 0);
    CHECK(w.most_ns[2] <= SERVICE); /* the packet that is being sent */
    CHECK(w.lost[1] > 500);
    CHECK(w.waited_ns[1] / w.sent[1] > 5 * MS);
}

/* Of bytes, not of packets. */
static void fq_codel_shares_equally(void) {
    begin(&fq_codel, 10240);
    static const uint32_t sizes[4] = {1500, 1500, 700, 1100};
    uint64_t next[4] = {0};
    for (uint64_t at = 0; at < 20000 * MS; at += 10 * US) {
        for (uint32_t k = 0; k < 4; k++) {
            if (at >= next[k]) { /* each wants half of it, or the third all */
                next[k] += SERVICE * sizes[k] / FULL * (k == 2 ? 1 : 2);
                come(k + 1, sizes[k], false, at);
            }
        }
    }
    double each = 20.0 * 10e6 / 8 / 4;
    for (uint32_t k = 1; k <= 4; k++) {
        CHECK(fabs((double)w.sent_bytes[k] - each) < 0.01 * each);
    }
}

/* With a few flows of a thousand places, by chance in places of their own, the longest loses. */
static void fq_codel_drops_of_the_longest_flow(void) {
    begin(&fq_codel, 100);
    for (int i = 0; i < 10; i++) {
        come(3, 1000, false, 0);
    }
    for (int i = 0; i < 200; i++) {
        come(1, FULL, false, 0);
    }
    CHECK_EQ(w.lost[3], 0);
    CHECK(w.aqm.packets <= 100);
    run(10000 * MS);
    CHECK_EQ(w.sent[3], 10);
    CHECK_EQ(w.sent[1] + w.lost[1], 200);
    CHECK_EQ(w.aqm.bytes, 0);
}

/* A flow that comes back when it is empty is behind the others once it has had its turn. */
static void fq_codel_starves_nobody(void) {
    begin(&fq_codel, 10240);
    for (int i = 0; i < 50; i++) {
        come(1, FULL, false, 0);
    }
    for (uint64_t at = 1; at < 100 * SERVICE; at += 100 * US) {
        run(at);
        if (w.aqm.packets && w.sent[2] + w.lost[2] == w.marked[15]) {
            w.marked[15]++; /* packets of flow 2: one at a time, always there */
            come(2, FULL, false, at);
        }
    }
    CHECK(w.sent[1] >= 45 && w.sent[2] >= 40);
}

/* --- pie --- */

/* Ten percent too much: what is dropped is what cannot be sent, and the delay is the target. */
static void pie_keeps_its_target(void) {
    begin(&pie, 1000);
    for (uint64_t i = 0; i < 40000; i++) {
        come(0, FULL, false, i * SERVICE * 10 / 11);
        if (i == 10000) {
            w.waited_ns[0] = w.sent[0] = w.lost[0] = 0;
        }
    }
    double share = (double)w.lost[0] / (w.sent[0] + w.lost[0]);
    double wait = (double)w.waited_ns[0] / w.sent[0];
    CHECK(share > 0.085 && share < 0.097);
    CHECK(wait > 0.8 * 15e6 && wait < 1.2 * 15e6);
}

static void pie_lets_the_first_burst_through(void) {
    begin(&pie, 1000);
    for (int i = 0; i < 110; i++) { /* 132 ms */
        come(0, FULL, false, 0);
    }
    run(1000 * MS);
    CHECK_EQ(w.lost[0], 0);
}

/* Idle for a day, it is as new, and knows that at once. */
static void pie_forgets(void) {
    begin(&pie, 1000);
    for (uint64_t i = 0; i < 5000; i++) {
        come(0, FULL, false, i * SERVICE / 2);
    }
    CHECK(w.aqm.pie.drop > 0);
    uint32_t lost = w.lost[0];
    uint64_t day = 86400 * NS_PER_S;
    run(day);
    for (int i = 0; i < 110; i++) {
        come(0, FULL, false, day);
    }
    run(2 * day);
    CHECK_EQ(w.lost[0], lost);
}

/* --- red --- */

/* A queue that stays between the thresholds: packets from one hit to the next are spread evenly
 * from 1 to 1 / p. */
static void red_hits_as_often_as_the_formula_says(void) {
    static const uint32_t held[] = {33000, 45000, 60000, 89000};
    for (size_t k = 0; k < sizeof held / sizeof *held; k++) {
        begin(&red, 0);
        w.aqm.bytes = held[k];
        w.aqm.packets = 1;
        w.aqm.red.mean = (uint64_t)held[k] << 16;
        make_packet(&frame, 0, 1, FULL);
        struct frame *made = pool_frame(&w.pool, frame.bytes);
        CHECK(made);
        made->info.probe = false;
        const struct piece piece = {.frame = made, .count = 1};
        const struct aqm_sending sending = {10000000, 1, 1};
        double p = 0.02 * (held[k] - 30000.0) / 60000.0;
        uint32_t hits = 0, since = 0, most = 0;
        for (uint64_t n = 0; n < 200000; n++) {
            since++;
            if (red_hits(&w.aqm, &piece, n, &sending, n)) {
                hits++;
                most = since > most ? since : most;
                since = 0;
            }
        }
        double last = floor(1 / p), mean = last / 2; /* of 1 to 1 / p - 1 */
        double deviation = 2e5 / mean / mean * last / sqrt(12) / sqrt(2e5 / mean);
        CHECK(fabs(hits - 2e5 / mean) < 5 * deviation + 0.01 * hits);
        CHECK(most <= 1 / p + 1);
        w.aqm.bytes = w.aqm.packets = 0;
    }
}

static void red_drops_nothing_below_and_all_above(void) {
    begin(&red, 0);
    for (uint64_t i = 0; i < 2000; i++) { /* 19 packets at a time: the mean is below 30,000 */
        for (int k = 0; k < 19; k++) {
            come(0, FULL, false, i * 25 * MS);
        }
    }
    CHECK_EQ(w.lost[0], 0);
    for (uint64_t i = 0; i < 10000; i++) { /* ten times too much */
        come(1, FULL, false, 60000 * MS + i * SERVICE / 10);
    }
    double share = (double)w.lost[1] / 10000;
    CHECK(share > 0.85 && share < 0.91);
    uint64_t mean = w.aqm.red.mean >> 16;
    CHECK(mean > 85000 && mean < 95000);
}

/* As tc(8) does, in floating point. */
static void red_chooses_its_weight_by_the_burst(void) {
    static const struct {
        uint64_t min, burst, avpkt;
    } of[] = {{30000, 55, 1000}, {5000, 20, 1000}, {30000, 35, 1000}, {10000, 100, 1000}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        struct aqm_config config = red;
        config.min_bytes = of[k].min;
        config.burst = of[k].burst;
        config.avpkt = of[k].avpkt;
        begin(&config, 0);
        double share = (double)of[k].burst + 1 - (double)of[k].min / (double)of[k].avpkt;
        uint32_t weight = 1;
        while (share >
               (1 - pow(1 - pow(2, -(double)weight), (double)of[k].burst)) * pow(2, weight)) {
            weight++;
        }
        CHECK_EQ(w.aqm.red.weight, weight);
    }
}

void test_aqm(void) {
    a_limit_of_packets_counts_what_is_being_sent();
    codel_drops_interval_by_root_n_apart();
    codel_leaves_short_bursts_alone();
    codel_marks_what_allows_it();
    codel_is_that_of_the_rfc_and_of_linux();
    fq_codel_keeps_a_sparse_flow_from_waiting();
    fq_codel_shares_equally();
    fq_codel_drops_of_the_longest_flow();
    fq_codel_starves_nobody();
    pie_keeps_its_target();
    pie_lets_the_first_burst_through();
    pie_forgets();
    red_hits_as_often_as_the_formula_says();
    red_drops_nothing_below_and_all_above();
    red_chooses_its_weight_by_the_burst();
    pool_destroy(&w.pool);
}
