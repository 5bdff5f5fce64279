/* The path protocol of docs/tcal.md: a line in, one answer out. */
#ifndef TCALD_PROTO_H
#define TCALD_PROTO_H

#include "common/session.h"
#include "stage.h"

/* Of the program, for hello and the clock; tests and fuzzers bring their own. */
struct proto_host {
    void *context;
    uint64_t (*clock)(void *context);
    void (*describe)(void *context, struct text *out); /* KEY=VALUE… of hello */
    /* NULL when this kernel has what is needed, otherwise what it lacks. */
    const char *(*lacks)(void *context);
};

struct proto {
    struct session session;
    struct tcal *tcal;
    struct stage *stage;
    const struct proto_host *host;
    uint64_t slowest_ns; /* batch to apply */
};

/* For the session. */
extern const struct session_program proto_program;

/* commands.c, report.c: the line after its first word. */
command do_attach, do_detach, do_ports, do_node, do_bind, do_unbind, do_path, do_usage, do_stats;

#endif
