/* The table of commands, time, and the commands that belong to no group. */
#include "proto.h"

#include <ctype.h>
#include <string.h>

#define TOKEN_LIMIT 32u

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
        return refuse(r, "version", "this tcald speaks version %d of the protocol, not %u",
                      PROTO_VERSION, version);
    }
    const char *lacks = p->host->lacks(p->host->context);
    if (lacks) {
        return refuse(r, "system", "%s", lacks);
    }
    p->greeted = true;
    text_add(p->out, "ok tcald %d ", PROTO_VERSION);
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
    if (token[length] || length == 0 || length > TOKEN_LIMIT) {
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
    if (!word || !take_end(w, "commit AT", r)) {
        return syntax(r, "commit AT");
    }
    if (!word_number(word, INT64_MAX, &at)) {
        return refuse(r, "range", "time '%.32s' is not a number of ns", word);
    }
    const struct batch *batch = stage_commit(p->stage, at, r);
    if (!batch) {
        return false;
    }
    text_add(p->out, "ok %llu\n", (unsigned long long)batch->number);
    return true;
}

static bool do_abort(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "abort", r)) {
        return false;
    }
    stage_abort(p->stage);
    return done(p);
}

static bool do_lease(struct proto *p, struct words *w, struct refusal *r) {
    const char *word = words_next(w);
    uint64_t ns;
    if (!word || !take_end(w, "lease NS", r)) {
        return syntax(r, "lease NS");
    }
    if (!word_number(word, LEASE_LIMIT_NS, &ns)) {
        return refuse(r, "range", "lease '%.32s' is not a number from 0 to %llu", word,
                      (unsigned long long)LEASE_LIMIT_NS);
    }
    p->lease_ns = ns;
    return done(p);
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

static const struct {
    const char *name;
    command *run;
    bool early; /* before hello, too */
} commands[] = {
    {"sync", do_sync, true},      {"hello", do_hello, true},    {"attach", do_attach, false},
    {"detach", do_detach, false}, {"ports", do_ports, false},   {"node", do_node, false},
    {"bind", do_bind, false},     {"unbind", do_unbind, false}, {"path", do_path, false},
    {"commit", do_commit, false}, {"abort", do_abort, false},   {"usage", do_usage, false},
    {"stats", do_stats, false},   {"lease", do_lease, false},   {"clock", do_clock, false},
    {"quit", do_quit, false}};

static bool dispatch(struct proto *p, char *line, struct refusal *r) {
    struct words w = {line};
    const char *name = words_next(&w);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            if (!p->greeted && !commands[i].early) {
                return refuse(r, "order", "'%s' before 'hello'", name);
            }
            return commands[i].run(p, &w, r);
        }
    }
    return refuse(r, "syntax", "unknown command '%.32s'", name);
}

/* A client that was taken for lost is there again. */
static void renew(struct proto *p) {
    struct tcal_error error;
    p->heard_ns = p->host->clock(p->host->context);
    if (!p->expired) {
        return;
    }
    p->expired = false;
    if (tcal_close(p->tcal, false, &error)) {
        text_add(p->out, "! lease renewed\n");
    } else {
        text_add(p->out, "! lease renewed, but not all paths are open: %s\n", error.text);
    }
}

void proto_line(struct proto *p, char *line, size_t length) {
    struct refusal r = {0};
    renew(p);
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
    renew(p);
    text_add(p->out, "err syntax the line is longer than %u bytes\n", PROTO_LINE_LIMIT);
}

static void apply(struct proto *p, const struct batch *batch) {
    struct tcal_error error = {0};
    uint64_t begun = p->host->clock(p->host->context);
    bool good = tcal_apply(p->tcal, batch->change, batch->changes, &error);
    uint64_t applied = p->host->clock(p->host->context);
    p->slowest_ns = max_u64(p->slowest_ns, applied - begun);
    text_add(p->out, "! %s %llu %llu %llu%s%s\n", good ? "applied" : "failed",
             (unsigned long long)batch->number, (unsigned long long)batch->at_ns,
             (unsigned long long)applied, good ? "" : " ", good ? "" : error.text);
    if (!good) {
        stage_failed(p->stage);
    }
}

void proto_due(struct proto *p, uint64_t now_ns) {
    for (struct batch *batch; (batch = stage_due(p->stage, now_ns));) {
        apply(p, batch);
        batch_free(batch);
    }
}

void proto_lease(struct proto *p, uint64_t now_ns) {
    struct tcal_error error;
    if (p->lease_ns && !p->expired && now_ns - p->heard_ns >= p->lease_ns) {
        p->expired = true;
        if (tcal_close(p->tcal, true, &error)) {
            text_add(p->out, "! lease expired\n");
        } else {
            text_add(p->out, "! lease expired, but not all paths are closed: %s\n", error.text);
        }
    }
}

uint64_t proto_next(const struct proto *p) {
    uint64_t next = p->stage->waiting ? p->stage->waiting->at_ns : TIME_NEVER;
    return p->lease_ns && !p->expired ? min_u64(next, p->heard_ns + p->lease_ns) : next;
}
