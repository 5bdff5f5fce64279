/* The table of commands, and what a session asks of pktd. */
#include "proto.h"

#include "commands.h"

#include <stdlib.h>
#include <string.h>

#define STATS_USAGE "stats links|pairs|ports|engine"

static uint64_t read_clock(struct proto *p) {
    return p->host->clock(p->host->context);
}

static void describe(struct proto *p, struct text *out) {
    p->host->describe(p->host->context, out);
}

static void abort_staged(struct proto *p) {
    stage_abort(p->stage);
}

static bool commit(struct proto *p, uint64_t at_ns, struct refusal *r) {
    struct engine_room room;
    if (!stage_room(p->stage, &room, r)) {
        return false;
    }
    if (room.heap || room.slots) {
        p->host->reserve(p->host->context, &room);
    }
    struct batch *batch = stage_commit(p->stage, at_ns, r);
    if (!batch) {
        return false;
    }
    text_add(p->session.out, "ok %llu\n", (unsigned long long)batch->number);
    p->host->commit(p->host->context, batch);
    return true;
}

static bool close_paths(struct proto *p, bool closed, struct refusal *r) {
    (void)r;
    p->host->close_paths(p->host->context, closed);
    return true;
}

static bool do_stats(struct proto *p, struct words *w, struct refusal *r) {
    const char *what = words_next(w);
    if (!what || !take_end(w, STATS_USAGE, r)) {
        return syntax(r, STATS_USAGE);
    }
    if (strcmp(what, "links") == 0) {
        stats_links(p);
    } else if (strcmp(what, "pairs") == 0) {
        stats_pairs(p);
    } else if (strcmp(what, "ports") == 0) {
        stats_ports(p);
    } else if (strcmp(what, "engine") == 0) {
        stats_engine(p);
    } else {
        return syntax(r, STATS_USAGE);
    }
    return true;
}

/* What a client uses decides what pktd is for it: hop by hop, or path by path. */
static const struct command_row commands[] = {
    {"hello", do_hello, MODE_ANY},       {"sync", do_sync, MODE_ANY},
    {"open", do_open, MODE_LINKS},       {"close", do_close, MODE_LINKS},
    {"attach", do_attach, MODE_PATHS},   {"detach", do_detach, MODE_PATHS},
    {"ports", do_ports, MODE_ANY},       {"node", do_node, MODE_ANY},
    {"bind", do_bind, MODE_ANY},         {"unbind", do_unbind, MODE_ANY},
    {"link", do_link, MODE_LINKS},       {"set", do_set, MODE_LINKS},
    {"route", do_route, MODE_LINKS},     {"routes", do_routes, MODE_LINKS},
    {"trace", do_trace, MODE_LINKS},     {"steps", do_steps, MODE_LINKS},
    {"path", do_path, MODE_PATHS},       {"usage", do_usage, MODE_ANY},
    {"lease", do_lease, MODE_PATHS},     {"commit", do_commit, MODE_ANY},
    {"abort", do_abort, MODE_ANY},       {"stats", do_stats, MODE_ANY},
    {"epoch", do_epoch, MODE_ANY},       {"digests", do_digests, MODE_ANY},
    {"await", do_await, MODE_ANY},       {"capture", do_capture, MODE_ANY},
    {"captures", do_captures, MODE_ANY}, {"burden", do_burden, MODE_ANY},
    {"clock", do_clock, MODE_ANY},       {"quit", do_quit, MODE_ANY},
    {"group", do_group, MODE_LINKS},     {"delays", do_delays, MODE_LINKS}};

static bool run(struct proto *p, const struct command_row *row, struct words *w,
                struct refusal *r) {
    enum stage_mode *mode = &p->stage->mode;
    if (row->mode != MODE_ANY && *mode != MODE_ANY && row->mode != (int)*mode) {
        return refuse(r, "conflict", "'%s' after '%s': links and paths cannot be mixed", row->name,
                      *mode == MODE_PATHS ? "attach' or 'path" : "open' or 'link");
    }
    if (!row->run(p, w, r)) {
        return false;
    }
    if (row->mode != MODE_ANY) {
        *mode = (enum stage_mode)row->mode;
    }
    return true;
}

const struct session_program proto_program = {
    .name = "pktd",
    .commands = commands,
    .command_count = sizeof commands / sizeof *commands,
    .clock = read_clock,
    .describe = describe,
    .abort = abort_staged,
    .commit = commit,
    .close = close_paths,
    .run = run,
};

void proto_applied(struct proto *p, const struct batch *batch) {
    stage_applied(p->stage, batch);
    text_add(p->session.out, "! applied %llu %llu %llu\n", (unsigned long long)batch->number,
             (unsigned long long)batch->at_ns, (unsigned long long)batch->applied_ns);
}

void proto_moved(struct proto *p) {
    text_add(p->session.out, "! moved\n");
}

void proto_destroy(struct proto *p) {
    free(p->range);
    p->range = NULL;
}
