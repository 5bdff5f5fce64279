/* Traces: deliveries as mahimahi makes them, rows as a link changed step by step, and links. */
#include "common/tests/check.h"
#include "pktd/core/queue.h"
#include "pktd/tests/sim.h"

#include <stdlib.h>

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define POOL (64u << 20)
#define PACKETS 300
#define LINES 40

static struct test_frame frame;

struct packet {
    uint64_t at_ns;
    uint32_t bytes;
    bool accepted;
    uint64_t left_ns;
};

/* mahimahi's loop: each delivery of the trace in turn, with what has arrived before it. */
static void deliver_all(const uint32_t *lines, size_t count, struct packet *packet, size_t packets,
                        uint32_t limit) {
    size_t in = 0, head = 0;
    uint32_t waiting = 0, left[PACKETS];
    for (uint64_t n = 0; head < packets; n++) {
        uint64_t at = (n / count * lines[count - 1] + lines[n % count]) * MS;
        for (; in < packets && packet[in].at_ns < at; in++) {
            uint32_t cost = packet[in].bytes + 4;
            packet[in].accepted = waiting == 0 || waiting + cost <= limit;
            left[in] = packet[in].accepted ? cost : 0;
            waiting += left[in];
        }
        for (uint32_t room = 1504; head < in && (room || !packet[head].accepted);) {
            if (!packet[head].accepted) {
                head++;
                continue;
            }
            uint32_t part = room < left[head] ? room : left[head];
            room -= part;
            left[head] -= part;
            waiting -= part;
            if (left[head] == 0) {
                packet[head++].left_ns = at;
            }
        }
    }
}

static void make_trace(struct trace *trace, const uint32_t *lines, size_t count) {
    trace->period_ns = lines[count - 1] * MS;
    for (size_t i = 0; i < count;) {
        size_t same = i;
        while (same < count && lines[same] == lines[i]) {
            same++;
        }
        CHECK(trace_add_instant(trace, lines[i] - (i ? lines[i - 1] : 0), same - i));
        i = same;
    }
    CHECK(trace_finish(trace));
}

static void deliveries_are_those_of_mahimahi(void) {
    uint64_t random = 7;
    for (int round = 0; round < 3000; round++) {
        uint32_t lines[LINES], at = 0;
        size_t count = 1 + next_random(&random) % LINES;
        for (size_t i = 0; i < count; i++) {
            at += next_random(&random) % 3 ? 0u : (uint32_t)(next_random(&random) % 20);
            lines[i] = at;
        }
        lines[count - 1] += lines[count - 1] == 0;
        struct packet packet[PACKETS] = {0};
        uint64_t now = 0, scale = 1 + next_random(&random) % 3000000;
        for (size_t i = 0; i < PACKETS; i++) {
            now += next_random(&random) % 4 ? next_random(&random) % scale : 0;
            now = next_random(&random) % 5 ? now : (now + MS - 1) / MS * MS; /* at a delivery */
            packet[i].at_ns = now;
            packet[i].bytes = (uint32_t)(28 + next_random(&random) % 1473);
        }
        uint32_t limit = (uint32_t)(next_random(&random) % 30000);
        deliver_all(lines, count, packet, PACKETS, limit);
        struct trace trace = {0};
        make_trace(&trace, lines, count);
        struct queue q = {.limit_bytes = limit};
        queue_follow(&q, &trace);
        for (size_t i = 0; i < PACKETS; i++) {
            struct service s;
            CHECK_EQ(queue_offer(&q, packet[i].at_ns, packet[i].bytes, &s), packet[i].accepted);
            CHECK_EQ(packet[i].accepted ? s.end_ns : 0, packet[i].left_ns);
        }
        trace_free(&trace);
    }
}

/* Against the same queue whose rate is set at each row; a rate of 0 serves nothing for so long. */
static void rows_are_rates_that_change(void) {
    uint64_t random = 3;
    for (int round = 0; round < 300; round++) {
        struct trace trace = {.fields = TRACE_RATE, .holds = round % 2};
        uint64_t starts[20], rates[20], at = 0;
        size_t count = 1 + next_random(&random) % 20;
        for (size_t i = 0; i < count; i++) {
            starts[i] = at;
            rates[i] =
                i && next_random(&random) % 4 == 0 ? 0 : 1000000 + next_random(&random) % 9000000;
            at += 1 + next_random(&random) % 5000000;
        }
        rates[count - 1] += rates[count - 1] == 0 ? 1000000 : 0;
        trace.period_ns = at;
        for (size_t i = 0; i < count; i++) {
            const struct trace_row row = {.rate_bps = rates[i]};
            CHECK(trace_add_row(&trace, i ? starts[i] - starts[i - 1] : 0, &row));
        }
        CHECK(trace_finish(&trace));
        struct queue q = {.limit_bytes = 1 << 30};
        queue_follow(&q, &trace);
        /* Work of the fluid by hand: from piece to piece of the rows. */
        uint64_t now = 0, done_ns = 0, last = 0;
        for (int i = 0; i < 200; i++) {
            now += next_random(&random) % 4000000;
            uint32_t bytes = (uint32_t)(40 + next_random(&random) % 1461);
            double left = bytes * 8e9, t = (double)(now > done_ns ? now : done_ns);
            for (;;) {
                uint64_t in = (uint64_t)t, rest = in % at;
                bool beyond = trace.holds && in >= at;
                size_t row = count - 1;
                while (!beyond && starts[row] > rest) {
                    row--;
                }
                double until = beyond || (trace.holds && row == count - 1)
                                   ? 1e18
                                   : (double)(in - rest + (row + 1 < count ? starts[row + 1] : at));
                if ((until - t) * (double)rates[row] >= left) {
                    t += left / (double)rates[row];
                    break;
                }
                left -= (until - t) * (double)rates[row];
                t = until;
            }
            struct service s;
            CHECK(queue_offer(&q, now, bytes, &s));
            double off = (double)s.end_ns - t;
            CHECK(off > -300 && off < 300); /* the hand's own doubles carry 1 ns a packet */
            CHECK(s.end_ns >= last);
            last = s.end_ns;
            done_ns = s.end_ns;
        }
        trace_free(&trace);
    }
}

static void follow_lines(struct sim *sim) {
    sim_do(sim, "trace 1 begin=%llu period=10000000", T0);
    sim_do(sim, "steps 1 2 1x2"); /* at 2, 3, 3 and 10 ms of each 10 */
    sim_do(sim, "steps 1 7 end");
}

static void a_link_follows_in_time(void) {
    struct sim *sim = sim_new(POOL);
    follow_lines(sim);
    sim_pair(sim, "rate=0 delay=1000000 jitter=0 loss=0 queue=100000 dist=normal up=1");
    sim_do(sim, "set 0 rate=4800000 trace=1");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 1500);
    for (int i = 0; i < 6; i++) {
        sim_send(sim, 0, &frame);
    }
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 8), 6 * 1504);
    sim_run(sim, T0 + 3 * MS); /* the first has left the link, two more the queue */
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 8), 3 * 1504);
    sim_run(sim, T0 + 100 * MS);
    static const uint64_t at[] = {2, 3, 3, 10, 12, 13};
    CHECK_EQ(sim->count, 6);
    for (size_t i = 0; i < 6; i++) {
        CHECK_EQ(sim->delivery[i].at_ns, T0 + (at[i] + 2) * MS);
    }
    /* What comes at the time of a delivery waits for the next one; one that is down is lost. */
    sim_run(sim, T0 + 120 * MS);
    sim_forget(sim);
    sim_send(sim, 0, &frame);
    sim_do(sim, "set 0 up=0");
    sim_commit(sim);
    sim_do(sim, "set 0 up=1");
    sim_commit(sim);
    sim_run(sim, T0 + 122 * MS);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 200 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 125 * MS);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 8), 0);
    sim_free(sim);
}

static void segments_leave_one_by_one(void) {
    struct sim *sim = sim_new(POOL);
    follow_lines(sim);
    sim_pair(sim, "rate=0 delay=0 jitter=0 loss=0 queue=100000 dist=normal up=1");
    sim_do(sim, "set 0 rate=4800000 trace=1");
    sim_commit(sim);
    make_frame(&frame, 4, TEST_TCP, 0, 1, 5 * 1448, 1448); /* each 1,500 bytes with its headers */
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    static const uint64_t at[] = {2, 3, 3, 10, 12};
    CHECK_EQ(sim->count, 5);
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(sim->delivery[i].segments, 1);
        CHECK_EQ(sim->delivery[i].at_ns, T0 + at[i] * MS);
    }
    sim_free(sim);
}

static void what_waits_goes_on_with_another(void) {
    struct sim *sim = sim_new(POOL);
    follow_lines(sim);
    sim_do(sim, "trace 2 begin=%llu like=1", T0 + 15 * MS);
    sim_pair(sim, "rate=8000000 delay=0 jitter=0 loss=0 queue=100000 dist=normal up=1");
    make_packet(&frame, 0, 1, 1500);
    for (int i = 0; i < 8; i++) {
        sim_send(sim, 0, &frame); /* one each 1.5 ms */
    }
    sim_run(sim, T0 + 2 * MS); /* of the second 500 bytes have left */
    sim_do(sim, "set 0 trace=1 rate=4800000");
    sim_commit(sim);
    sim_run(sim, T0 + 15 * MS); /* at 3, 3, 10, 12, 13 and 13 */
    sim_do(sim, "set 0 trace=2");
    sim_do(sim, "set 2 trace=2"); /* of which nobody sees anything */
    sim_commit(sim);
    sim_run(sim, T0 + 17500000);
    sim_do(sim, "set 0 trace=0 rate=8000000");
    sim_commit(sim);
    sim_run(sim, T0 + 100 * MS);
    /* On link 1 each takes 1.5 ms, the second behind the one of the same instant. */
    static const uint64_t left[] = {1500, 3000, 3000, 10000, 12000, 13000, 13000, 17000};
    CHECK_EQ(sim->count, 8);
    uint64_t free_us = 0;
    for (size_t i = 0; i < 8; i++) {
        free_us = (free_us > left[i] ? free_us : left[i]) + 1500;
        CHECK_EQ(sim->delivery[i].at_ns, T0 + free_us * 1000);
    }
    sim_free(sim);
}

/* A run's time 0 is told after its first packets: from then on the trace counts from there. */
static void the_epoch_may_come_late(void) {
    struct sim *sim = sim_new(POOL);
    sim_do(sim, "trace 1 begin=0 period=10000000");
    sim_do(sim, "steps 1 10 end");
    sim_pair(sim, "rate=0 delay=0 jitter=0 loss=0 queue=100000 dist=normal up=1");
    sim_do(sim, "set 0 rate=1200000 trace=1");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 1500);
    sim_send(sim, 0, &frame);
    sim_send(sim, 0, &frame);
    sim_do(sim, "epoch %llu", T0 + 5 * MS);
    sim_run(sim, T0 + 6 * MS);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 3);
    CHECK_EQ(sim->delivery[1].at_ns, T0 + 20 * MS);
    CHECK_EQ(sim->delivery[2].at_ns, T0 + 35 * MS);
    sim_free(sim);
}

static void rows_have_delay_and_loss(void) {
    struct sim *sim = sim_new(POOL);
    sim_do(sim, "trace 1 begin=%llu period=20000000 fields=delay,loss hold=1", T0);
    sim_do(sim, "steps 1 0:5000000:0 10000000:1000000:1000000000 end");
    sim_pair(sim, "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1");
    sim_do(sim, "set 0 trace=1");
    sim_commit(sim);
    make_packet(&frame, 0, 1, 1500);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 50 * MS);
    sim_send(sim, 0, &frame); /* lost */
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 5 * MS);
    CHECK_EQ(sim_stat(sim, "stats links", "0 ", 6), 1);
    sim_free(sim);
}

static void refused(struct sim *sim, const char *line, const char *why) {
    const char *answer = sim_ask(sim, "%s", line);
    CHECK(strncmp(answer, "err ", 4) == 0 && strstr(answer, why));
}

static void refusals(void) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1");
    refused(sim, "trace 0 begin=0 period=1000000", "numbered from 1");
    refused(sim, "trace 1 begin=0", "has a period");
    refused(sim, "trace 1 begin=0 period=1000000 hold=1", "only rows");
    refused(sim, "trace 1 period=1 fields=delay,rate", "in this order");
    refused(sim, "trace 1 like=2", "trace 2 is not whole");
    refused(sim, "steps 1 1", "not being made");
    refused(sim, "set 0 trace=1", "not whole");
    sim_do(sim, "trace 1 begin=0 period=3000000");
    refused(sim, "steps 1 4", "cannot have the step '4'");
    refused(sim, "steps 1 2x0", "cannot have the step");
    sim_do(sim, "steps 1 2x3");
    refused(sim, "steps 1 0", "cannot have the step");
    refused(sim, "steps 1 end", "does not end with its period");
    refused(sim, "set 0 trace=1", "not whole");
    sim_do(sim, "steps 1 1 end");
    refused(sim, "steps 1 1", "not being made");
    refused(sim, "trace 1 begin=0 period=1000000", "whole already");
    sim_do(sim, "set 0 trace=1");
    sim_do(sim, "trace 2 begin=0 period=10 fields=rate");
    refused(sim, "steps 2 1:5", "cannot have the step");
    refused(sim, "steps 2 0:5:6", "cannot have the step");
    refused(sim, "steps 2 0", "cannot have the step");
    sim_do(sim, "steps 2 0:0 5:0");
    refused(sim, "steps 2 end", "serves nothing");
    sim_free(sim);
}

void test_traces(void) {
    deliveries_are_those_of_mahimahi();
    rows_are_rates_that_change();
    a_link_follows_in_time();
    segments_leave_one_by_one();
    what_waits_goes_on_with_another();
    the_epoch_may_come_late();
    rows_have_delay_and_loss();
    refusals();
}
