/* The words of the protocol for kinds of ports and of stamps. */
#include "port.h"

const char *port_kind_name(enum port_kind kind) {
    static const char *const names[] = {"auto", "tap", "packet", "line"};
    return names[kind];
}

const char *port_stamp_name(enum port_stamp stamp) {
    return stamp == STAMP_BPF ? "bpf" : stamp == STAMP_SOCKET ? "socket" : "read";
}
