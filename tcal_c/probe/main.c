/* tprobe: small measuring programs for two ends of an emulated network.
 *
 * Input: a command and options. Output: JSON lines on stdout, errors on stderr, exit code 0 done,
 * 1 failed (nothing came back, cannot connect), 2 usage. Every command ends by itself.
 */
#include <stdio.h>
#include <string.h>

#include "probe.h"

static const char USAGE[] =
    "usage: tprobe COMMAND …\n"
    "  serve  [--port P] [--bind ADDR] [--seconds S]     answer the other commands (no access\n"
    "                                                    control: only inside a test network)\n"
    "  rtt    HOST [--count N] [--interval D] [--mode auto|icmp|udp] [--size B] [--timeout D]\n"
    "              [--each] [--port P] [-4|-6]           round-trip times\n"
    "              [--probe]                             lost apart from programs' packets (ICMP)\n"
    "  stream HOST [--seconds S] [--interval D] [--cc NAME] [--reverse] [--skip D] [--wait D]\n"
    "              [--stall D] [--udp RATE [--size B]] [--port P] [-4|-6]   goodput\n"
    "  blast  HOST [--seconds S] [--pps N] [--size B] [--port P] [-4|-6]    small packets\n"
    "  owd    HOST [--count N] [--interval D] [--delay D] [--tx-netns F] [--rx-netns F]\n"
    "              [--port P] [-4|-6]                    one-way delay, both ends here\n"
    "  active                                            probes between namespaces, as told on "
    "stdin\n"
    "Durations: 250ms 1.5s 2m (no unit: seconds). Rates: 128kb 10Mb 1Gb, in bits of IP packets.\n"
    "Defaults: port 7477, 10 s, 10 probes a 100 ms.\n";

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int, char **);
    } commands[] = {
        {"serve", cmd_serve}, {"rtt", cmd_rtt},     {"stream", cmd_stream},
        {"owd", cmd_owd},     {"blast", cmd_blast}, {"active", cmd_active},
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc >= 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(USAGE, stdout);
        return EXIT_OK;
    }
    for (size_t i = 0; argc >= 2 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    if (argc >= 2) {
        fprintf(stderr, "tprobe: no command '%s'\n", argv[1]);
    }
    fputs(USAGE, stderr);
    return EXIT_USAGE;
}
