/* For test_traces.py: a queue that follows a trace, told on stdin, as pktd has it.
 *
 * In: the steps of a trace and its period as `steps` has them (docs/pktd.md), the queue's limit, and
 * packets: when they come, and their bytes. Out: when each leaves, `-` where there is no room. */
#include "pktd/core/queue.h"

#include <inttypes.h>
#include <stdio.h>

int main(void) {
    uint64_t period_ms, steps, limit, packets;
    while (scanf("%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64, &period_ms, &steps, &limit,
                 &packets) == 4) {
        struct trace trace = {.period_ns = period_ms * 1000000};
        for (uint64_t i = 0; i < steps; i++) {
            uint64_t after_ms, count;
            if (scanf("%" SCNu64 "x%" SCNu64, &after_ms, &count) != 2 ||
                !trace_add_instant(&trace, after_ms, count)) {
                return 1;
            }
        }
        struct queue queue = {.limit_bytes = limit};
        if (!trace_finish(&trace)) {
            return 1;
        }
        queue_follow(&queue, &trace);
        for (uint64_t i = 0; i < packets; i++) {
            uint64_t at_ns;
            uint32_t bytes;
            struct service service;
            if (scanf("%" SCNu64 "%" SCNu32, &at_ns, &bytes) != 2) {
                return 1;
            }
            if (queue_offer(&queue, at_ns, bytes, &service)) {
                printf("%" PRIu64 "\n", service.end_ns);
            } else {
                printf("-\n");
            }
        }
        fflush(stdout);
        trace_free(&trace);
    }
    return 0;
}
