/* What a packet costs the engine alone: no clock, no port, no kernel (packet_cost.py).
 *
 *   packet_cost N PAIRS PAYLOAD SEGMENT PROPERTIES
 *
 * N frames of PAYLOAD bytes go through two links each, in turn between PAIRS pairs of nodes at one
 * bridge; SEGMENT 0: UDP, else TCP super-packets with segments of that size. PROPERTIES are those
 * of each link, as the end of a link command. Prints the ns of a processor that a frame took.
 * Compiled with the sources of any version that has these sims.
 */
#include "pktd/tests/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ENDS_LIMIT = 200, APART_NS = 10000, SUPER_APART_NS = 1000000 };

static struct test_frame frame[ENDS_LIMIT];

static int swallow(void *context, uint32_t port, uint64_t at_ns, const struct iovec *io,
                   int count) {
    (void)context, (void)port, (void)at_ns, (void)io, (void)count;
    return 0;
}

static double processor_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct sim *new_world(int ends, const char *properties) {
    struct sim *sim = sim_new(256u << 20);
    for (int i = 0; i < ends; i++) {
        sim_do(sim, "open %d netns=/x if=eth0", i);
        sim_do(sim, "node %d ip=10.77.0.%d", i, i + 1);
        sim_do(sim, "bind %d %d", i, i);
    }
    sim_do(sim, "node %d", ends);
    for (int i = 0; i < ends; i++) {
        sim_do(sim, "link %d %d %d seed=%d %s", 2 * i, i, ends, 2 * i + 1, properties);
        sim_do(sim, "link %d %d %d seed=%d %s", 2 * i + 1, ends, i, 2 * i + 2, properties);
        sim_do(sim, "route %d %d %d", i, 2 * i, i ^ 1);
        sim_do(sim, "route %d %d %d", ends, 2 * i + 1, i);
    }
    sim_commit(sim);
    sim->engine->deliver = swallow;
    return sim;
}

int main(int argc, char **argv) {
    int ends = argc == 6 ? 2 * atoi(argv[2]) : 0;
    if (ends < 2 || ends > ENDS_LIMIT) {
        fprintf(stderr, "usage: packet_cost N PAIRS PAYLOAD SEGMENT PROPERTIES\n");
        return 2;
    }
    long frames = atol(argv[1]);
    unsigned segment = (unsigned)atoi(argv[4]);
    struct sim *sim = new_world(ends, argv[5]);
    for (int i = 0; i < ends; i++) {
        int protocol = segment ? TEST_TCP : TEST_UDP;
        make_frame(&frame[i], 4, protocol, (unsigned)i, (unsigned)(i ^ 1), (size_t)atol(argv[3]),
                   segment);
    }
    double began = processor_ns();
    for (long n = 0; n < frames; n++) {
        uint32_t from = (uint32_t)(n % ends);
        sim_send(sim, from, &frame[from]);
        sim_run(sim, sim->now_ns + (segment ? SUPER_APART_NS : APART_NS));
    }
    sim_run(sim, sim->now_ns + 10 * NS_PER_S);
    printf("%.1f\n", (processor_ns() - began) / (double)frames);
    return counter_get(&sim->engine->transit.in_flight) == 0 ? 0 : 1;
}
