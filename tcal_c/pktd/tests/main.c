/* Every test of pktd's core, under the sanitizers; ends with the first failure. */
#include "common/tests/check.h"
#include "pktd/core/draws/draw.h"

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } suites[] = {{"structures", test_structures},
                  {"draws", test_draws},
                  {"measured", test_measured},
                  {"queues", test_queues},
                  {"aqm", test_aqm},
                  {"holding", test_holding},
                  {"packets", test_packets},
                  {"links", test_links},
                  {"flows", test_flows},
                  {"necks", test_necks},
                  {"traces", test_traces},
                  {"impairments", test_impairments},
                  {"only", test_only},
                  {"hops", test_hops},
                  {"many", test_many},
                  {"switching", test_switching},
                  {"engine", test_engine},
                  {"spread", test_spread},
                  {"protocol", test_protocol},
                  {"stages", test_stages},
                  {"paths", test_paths},
                  {"ports", test_ports},
                  {"digests", test_digests},
                  {"captures", test_captures},
                  {"arrivals", test_arrivals},
                  {"io_threads", test_io_threads},
                  {"load", test_load},
                  {"waiting", test_waiting},
                  {"steer", test_steer},
                  {"steering", test_steering}};
    draw_init();
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        suites[i].run();
        printf("pktd: %s: ok\n", suites[i].name);
        fflush(stdout);
    }
    return 0;
}
