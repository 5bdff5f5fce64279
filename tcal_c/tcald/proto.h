/* The path protocol of docs/tcal.md: a line in, one answer out. */
#ifndef TCALD_PROTO_H
#define TCALD_PROTO_H

#include "stage.h"
#include "common/text.h"
#include "common/words.h"

#define PROTO_LINE_LIMIT 65536u
#define PROTO_VERSION 1
#define LEASE_LIMIT_NS (3600ull * NS_PER_S)

/* Of the program, for hello and the clock; tests and fuzzers bring their own. */
struct proto_host {
    void *context;
    uint64_t (*clock)(void *context);
    void (*describe)(void *context, struct text *out); /* KEY=VALUE… of hello */
    /* NULL when this kernel has what is needed, otherwise what it lacks. */
    const char *(*lacks)(void *context);
};

struct proto {
    struct tcal *tcal;
    struct stage *stage;
    const struct proto_host *host;
    struct text *out;
    bool greeted;
    bool quit;
    uint64_t lease_ns;
    bool expired;
    uint64_t heard_ns;   /* when the last line came */
    uint64_t slowest_ns; /* batch to apply */
};

/* Handles one line of `length` bytes without its newline; `line` is overwritten. line[length] is 0.
 */
void proto_line(struct proto *p, char *line, size_t length);

/* A line that was longer than PROTO_LINE_LIMIT. */
void proto_too_long(struct proto *p);

/* Applies the batches that are due by now. */
void proto_due(struct proto *p, uint64_t now_ns);

/* Ends the lease if nothing has been heard for so long. Lines that have come must have been handled
 * before: applying a large batch may take longer than a lease. */
void proto_lease(struct proto *p, uint64_t now_ns);

/* When something is due next; TIME_NEVER. */
uint64_t proto_next(const struct proto *p);

/* commands.c: the line after its first word. */
typedef bool command(struct proto *p, struct words *w, struct refusal *r);
command do_attach, do_detach, do_ports, do_node, do_bind, do_unbind, do_path, do_usage, do_stats;

bool syntax(struct refusal *r, const char *usage);
bool take_index(struct words *w, const char *what, uint64_t limit, uint32_t *index,
                const char *usage, struct refusal *r);
bool take_end(struct words *w, const char *usage, struct refusal *r);
bool done(struct proto *p);

#endif
