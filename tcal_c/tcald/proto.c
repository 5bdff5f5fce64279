/* The table of commands, and what a session asks of tcald. */
#include "proto.h"

#include "common/clock.h"

#include <string.h>

static uint64_t read_clock(struct proto *p) {
    (void)p;
    return clock_now();
}

static void describe(struct proto *p, struct text *out) {
    (void)p;
    text_add(out, "version=%s paths=1", VERSION);
}

static bool ready(struct proto *p, struct refusal *r) {
    return !p->lacks || refuse(r, "system", "%s", p->lacks);
}

static void abort_staged(struct proto *p) {
    stage_abort(p->stage);
}

static bool commit(struct proto *p, uint64_t at_ns, struct refusal *r) {
    const struct batch *batch = stage_commit(p->stage, at_ns, r);
    if (!batch) {
        return false;
    }
    text_add(p->session.out, "ok %llu\n", (unsigned long long)batch->number);
    return true;
}

static bool close_paths(struct proto *p, bool closed, struct refusal *r) {
    struct tcal_error error;
    return tcal_close(p->tcal, closed, &error) || refuse(r, "system", "%s", error.text);
}

static void apply(struct proto *p, const struct batch *batch) {
    struct tcal_error error = {0};
    uint64_t begun = p->session.program->clock(p);
    bool good = tcal_apply(p->tcal, batch->change, batch->changes, &error);
    uint64_t applied = p->session.program->clock(p);
    p->slowest_ns = max_u64(p->slowest_ns, applied - begun);
    text_add(p->session.out, "! %s %llu %llu %llu%s%s\n", good ? "applied" : "failed",
             (unsigned long long)batch->number, (unsigned long long)batch->at_ns,
             (unsigned long long)applied, good ? "" : " ", good ? "" : error.text);
    if (!good) {
        stage_failed(p->stage);
    }
}

static void apply_due(struct proto *p, uint64_t now_ns) {
    for (struct batch *batch; (batch = stage_due(p->stage, now_ns));) {
        apply(p, batch);
        batch_free(batch);
    }
}

static uint64_t next_batch(const struct proto *p) {
    return p->stage->waiting ? p->stage->waiting->at_ns : TIME_NEVER;
}

static const struct command_row commands[] = {
    {"sync", do_sync, 0},     {"hello", do_hello, 0},   {"attach", do_attach, 0},
    {"detach", do_detach, 0}, {"ports", do_ports, 0},   {"node", do_node, 0},
    {"bind", do_bind, 0},     {"unbind", do_unbind, 0}, {"path", do_path, 0},
    {"commit", do_commit, 0}, {"abort", do_abort, 0},   {"usage", do_usage, 0},
    {"stats", do_stats, 0},   {"lease", do_lease, 0},   {"clock", do_clock, 0},
    {"quit", do_quit, 0}};

const struct session_program proto_program = {
    .name = "tcald",
    .commands = commands,
    .command_count = sizeof commands / sizeof *commands,
    .clock = read_clock,
    .describe = describe,
    .abort = abort_staged,
    .commit = commit,
    .close = close_paths,
    .ready = ready,
    .next = next_batch,
    .due = apply_due,
};
