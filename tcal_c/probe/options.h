/* The options of all commands in one structure; each command says which it takes. */
#ifndef TPROBE_OPTIONS_H
#define TPROBE_OPTIONS_H

#include "probe.h"

struct options {
    const char *host, *mode, *cc, *bind, *tx_netns, *rx_netns;
    int64_t port, count, size, pps, rate_bps;
    int64_t interval_ns, seconds_ns, timeout_ns, skip_ns, wait_ns, stall_ns, delay_ns;
    bool each, probe, reverse;
    int family;
};

/* Reads argv[1…] into *o, which holds the defaults. `allowed` names the options of this command,
 * separated by spaces; `needs_host` whether one plain argument is due. 0, or -1 after saying why.
 */
int options_parse(int argc, char **argv, const char *allowed, bool needs_host, struct options *o);

#endif
