/* The path protocol of docs/tcal.md: a line in, one answer out. */
#ifndef TCALD_PROTO_H
#define TCALD_PROTO_H

#include "common/session.h"
#include "stage.h"

struct proto {
    struct session session;
    struct tcal *tcal;
    struct stage *stage;
    const char *lacks;   /* what this kernel lacks, or NULL */
    uint64_t slowest_ns; /* batch to apply */
};

/* For the session. A test has its own clock. */
extern const struct session_program proto_program;

/* commands.c, report.c: the line after its first word. */
command do_attach, do_detach, do_ports, do_node, do_bind, do_unbind, do_path, do_usage, do_stats;

#endif
