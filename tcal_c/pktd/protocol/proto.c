/* The table of commands, and those that belong to no group. */
#include "proto.h"

#include "commands.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_LIMIT 32u
#define STATS_USAGE "stats links|pairs|ports|engine"

bool syntax(struct refusal *r, const char *usage) {
    return refuse(r, "syntax", "usage: %s", usage);
}

bool take_index(struct words *w, const char *what, uint64_t limit, uint32_t *index,
                const char *usage, struct refusal *r) {
    const char *word = words_next(w);
    uint64_t value;
    *index = 0;
    if (!word) {
        return syntax(r, usage);
    }
    if (!word_number(word, limit - 1, &value)) {
        return refuse(r, "range", "%s '%.32s' is not a number from 0 to %llu", what, word,
                      (unsigned long long)limit - 1);
    }
    *index = (uint32_t)value;
    return true;
}

bool take_end(struct words *w, const char *usage, struct refusal *r) {
    return !w->rest || syntax(r, usage);
}

bool done(struct proto *p) {
    text_add(p->out, "ok\n");
    return true;
}

static bool do_hello(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t version;
    if (!take_index(w, "version", UINT32_MAX, &version, "hello 1", r) ||
        !take_end(w, "hello 1", r)) {
        return false;
    }
    if (version != PROTO_VERSION) {
        return refuse(r, "version", "this pktd speaks version %d of the protocol, not %u",
                      PROTO_VERSION, version);
    }
    p->greeted = true;
    text_add(p->out, "ok pktd %d ", PROTO_VERSION);
    p->host->describe(p->host->context, p->out);
    text_add(p->out, "\n");
    return true;
}

static bool do_sync(struct proto *p, struct words *w, struct refusal *r) {
    const char *token = words_next(w);
    if (!token || !take_end(w, "sync TOKEN", r)) {
        return syntax(r, "sync TOKEN");
    }
    size_t length = 0;
    while (isascii((unsigned char)token[length]) && isalnum((unsigned char)token[length])) {
        length++;
    }
    if (token[length] || length > TOKEN_LIMIT) {
        return refuse(r, "range", "token '%.40s' is not 1 to %u letters and digits", token,
                      TOKEN_LIMIT);
    }
    stage_abort(p->stage);
    text_add(p->out, "ok sync %s\n", token);
    return true;
}

static bool do_commit(struct proto *p, struct words *w, struct refusal *r) {
    const char *word = words_next(w);
    uint64_t at;
    struct engine_room room;
    if (!word || !take_end(w, "commit AT", r)) {
        return syntax(r, "commit AT");
    }
    if (!word_number(word, INT64_MAX, &at)) {
        return refuse(r, "range", "time '%.32s' is not a number of ns", word);
    }
    if (!stage_room(p->stage, &room, r)) {
        return false;
    }
    if (room.heap || room.slots) {
        p->host->reserve(p->host->context, &room);
    }
    struct batch *batch = stage_commit(p->stage, at, r);
    if (!batch) {
        return false;
    }
    text_add(p->out, "ok %llu\n", (unsigned long long)batch->number);
    p->host->commit(p->host->context, batch);
    return true;
}

static bool do_abort(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "abort", r)) {
        return false;
    }
    stage_abort(p->stage);
    return done(p);
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

static bool do_clock(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "clock", r)) {
        return false;
    }
    text_add(p->out, "ok %llu\n", (unsigned long long)p->host->clock(p->host->context));
    return true;
}

static bool do_quit(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "quit", r)) {
        return false;
    }
    p->quit = true;
    return done(p);
}

/* What a client uses decides what pktd is for it: hop by hop, or path by path. */
static const struct {
    const char *name;
    command *run;
    enum stage_mode mode;
} commands[] = {{"hello", do_hello, MODE_ANY},     {"sync", do_sync, MODE_ANY},
                {"open", do_open, MODE_LINKS},     {"close", do_close, MODE_LINKS},
                {"attach", do_attach, MODE_PATHS}, {"detach", do_detach, MODE_PATHS},
                {"ports", do_ports, MODE_ANY},     {"node", do_node, MODE_ANY},
                {"bind", do_bind, MODE_ANY},       {"unbind", do_unbind, MODE_ANY},
                {"link", do_link, MODE_LINKS},     {"set", do_set, MODE_LINKS},
                {"route", do_route, MODE_LINKS},   {"routes", do_routes, MODE_LINKS},
                {"path", do_path, MODE_PATHS},     {"usage", do_usage, MODE_ANY},
                {"lease", do_lease, MODE_PATHS},   {"commit", do_commit, MODE_ANY},
                {"abort", do_abort, MODE_ANY},     {"stats", do_stats, MODE_ANY},
                {"clock", do_clock, MODE_ANY},     {"quit", do_quit, MODE_ANY}};

static bool run(struct proto *p, size_t i, struct words *w, struct refusal *r) {
    enum stage_mode *mode = &p->stage->mode;
    if (!p->greeted && commands[i].run != do_hello && commands[i].run != do_sync) {
        return refuse(r, "order", "'%s' before 'hello'", commands[i].name);
    }
    if (commands[i].mode != MODE_ANY && *mode != MODE_ANY && commands[i].mode != *mode) {
        return refuse(r, "conflict", "'%s' after '%s': links and paths cannot be mixed",
                      commands[i].name,
                      *mode == MODE_PATHS ? "attach' or 'path" : "open' or 'link");
    }
    if (!commands[i].run(p, w, r)) {
        return false;
    }
    if (commands[i].mode != MODE_ANY) {
        *mode = commands[i].mode;
    }
    return true;
}

static bool dispatch(struct proto *p, char *line, struct refusal *r) {
    struct words w = {line};
    const char *name = words_next(&w);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return run(p, i, &w, r);
        }
    }
    return refuse(r, "syntax", "unknown command '%.32s'", name);
}

void proto_line(struct proto *p, char *line, size_t length) {
    struct refusal r = {0};
    if (!words_well_formed(line, length)) {
        refuse(&r, "syntax", "a line is printable words separated by one space");
    } else {
        dispatch(p, line, &r);
    }
    if (r.code) {
        text_add(p->out, "err %s %s\n", r.code, r.text);
    }
}

void proto_too_long(struct proto *p) {
    text_add(p->out, "err syntax the line is longer than %u bytes\n", PROTO_LINE_LIMIT);
}

void proto_applied(struct proto *p, const struct batch *batch) {
    stage_applied(p->stage, batch);
    text_add(p->out, "! applied %llu %llu %llu\n", (unsigned long long)batch->number,
             (unsigned long long)batch->at_ns, (unsigned long long)batch->applied_ns);
}

void proto_leased(struct proto *p, bool expired) {
    text_add(p->out, "! lease %s\n", expired ? "expired" : "renewed");
}

void proto_destroy(struct proto *p) {
    free(p->range);
    p->range = NULL;
}
