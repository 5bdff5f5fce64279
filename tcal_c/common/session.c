/* The commands that every datapath has, and the lease. */
#include "session.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

#define TOKEN_LIMIT 32u
#define LEASE_LIMIT_NS (3600ull * NS_PER_S)

static struct session *session_of(struct proto *p) {
    return (struct session *)(void *)p;
}

static struct proto *proto_of(const struct session *s) {
    return (struct proto *)(uintptr_t)s;
}

bool refuse(struct refusal *r, const char *code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(r->text, sizeof r->text, format, args);
    va_end(args);
    r->code = code;
    return false;
}

bool syntax(struct refusal *r, const char *usage) {
    return refuse(r, "syntax", "usage: %s", usage);
}

bool take_number(const char *what, const char *word, uint64_t limit, uint64_t *to,
                 struct refusal *r) {
    return word_number(word, limit, to) ||
           refuse(r, "range", "%s '%.32s' is not a number from 0 to %llu", what, word,
                  (unsigned long long)limit);
}

bool take_index(struct words *w, const char *what, uint64_t limit, uint32_t *index,
                const char *usage, struct refusal *r) {
    const char *word = words_next(w);
    uint64_t value;
    *index = 0;
    if (!word) {
        return syntax(r, usage);
    }
    if (!take_number(what, word, limit - 1, &value, r)) {
        return false;
    }
    *index = (uint32_t)value;
    return true;
}

bool take_prefix(char *word, struct prefix *prefix, struct refusal *r) {
    bool strayed;
    char text[INET6_ADDRSTRLEN];
    char given[65];
    size_t length = strnlen(word, sizeof given - 1);
    memcpy(given, word, length);
    given[length] = '\0';
    if (word_prefix(word, prefix, &strayed)) {
        return true;
    }
    if (!strayed) {
        return refuse(r, "range", "prefix '%s' is not ADDRESS/LENGTH", given);
    }
    inet_ntop(prefix->addr.version == 4 ? AF_INET : AF_INET6, prefix->addr.bytes, text,
              sizeof text);
    return refuse(r, "range", "prefix '%s' has bits beyond its length; %s/%u has none", given, text,
                  prefix->bits);
}

bool take_end(struct words *w, const char *usage, struct refusal *r) {
    return !w->rest || syntax(r, usage);
}

bool done(struct proto *p) {
    text_add(session_of(p)->out, "ok\n");
    return true;
}

/* -- commands ---------------------------------------------------------------------------------- */

bool do_hello(struct proto *p, struct words *w, struct refusal *r) {
    struct session *s = session_of(p);
    uint32_t version;
    if (!take_index(w, "version", UINT32_MAX, &version, "hello 1", r) ||
        !take_end(w, "hello 1", r)) {
        return false;
    }
    if (version != PROTO_VERSION) {
        return refuse(r, "version", "this %s speaks version %d of the protocol, not %u",
                      s->program->name, PROTO_VERSION, version);
    }
    if (s->program->ready && !s->program->ready(p, r)) {
        return false;
    }
    s->greeted = true;
    text_add(s->out, "ok %s %d ", s->program->name, PROTO_VERSION);
    s->program->describe(p, s->out);
    text_add(s->out, "\n");
    return true;
}

bool do_sync(struct proto *p, struct words *w, struct refusal *r) {
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
    session_of(p)->program->abort(p);
    text_add(session_of(p)->out, "ok sync %s\n", token);
    return true;
}

bool do_commit(struct proto *p, struct words *w, struct refusal *r) {
    const char *word = words_next(w);
    uint64_t at;
    if (!word || !take_end(w, "commit AT", r)) {
        return syntax(r, "commit AT");
    }
    if (!word_number(word, INT64_MAX, &at)) {
        return refuse(r, "range", "time '%.32s' is not a number of ns", word);
    }
    return session_of(p)->program->commit(p, at, r);
}

bool do_abort(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "abort", r)) {
        return false;
    }
    session_of(p)->program->abort(p);
    return done(p);
}

bool do_lease(struct proto *p, struct words *w, struct refusal *r) {
    const char *word = words_next(w);
    uint64_t ns;
    if (!word || !take_end(w, "lease NS", r)) {
        return syntax(r, "lease NS");
    }
    if (!take_number("lease", word, LEASE_LIMIT_NS, &ns, r)) {
        return false;
    }
    session_of(p)->lease_ns = ns;
    return done(p);
}

bool do_clock(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "clock", r)) {
        return false;
    }
    text_add(session_of(p)->out, "ok %llu\n", (unsigned long long)session_of(p)->program->clock(p));
    return true;
}

bool do_quit(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "quit", r)) {
        return false;
    }
    session_of(p)->quit = true;
    return done(p);
}

static bool dispatch(struct session *s, char *line, struct refusal *r) {
    struct words w = {line};
    const char *name = words_next(&w);
    for (size_t i = 0; i < s->program->command_count; i++) {
        const struct command_row *row = &s->program->commands[i];
        if (strcmp(name, row->name) != 0) {
            continue;
        }
        if (!s->greeted && row->run != do_hello && row->run != do_sync) {
            return refuse(r, "order", "'%s' before 'hello'", name);
        }
        return s->program->run ? s->program->run(proto_of(s), row, &w, r)
                               : row->run(proto_of(s), &w, r);
    }
    return refuse(r, "syntax", "unknown command '%.32s'", name);
}

/* -- the lease --------------------------------------------------------------------------------- */

static void set_expired(struct session *s, bool expired) {
    struct refusal r = {0};
    s->expired = expired;
    bool good = s->program->close(proto_of(s), expired, &r);
    text_add(s->out, "! lease %s", expired ? "expired" : "renewed");
    if (!good) {
        text_add(s->out, ", but not all paths are %s: %s", expired ? "closed" : "open", r.text);
    }
    text_add(s->out, "\n");
}

/* A client that was taken for lost is there again. */
static void hear(struct session *s) {
    s->heard_ns = s->program->clock(proto_of(s));
    if (s->expired) {
        set_expired(s, false);
    }
}

static uint64_t lease_end(const struct session *s) {
    return s->lease_ns == 0 || s->expired ? TIME_NEVER : s->heard_ns + s->lease_ns;
}

void session_judge(struct session *s, uint64_t now_ns) {
    if (lease_end(s) <= now_ns) {
        set_expired(s, true);
    }
}

/* -- lines and time ---------------------------------------------------------------------------- */

void session_line(struct session *s, char *line, size_t length) {
    struct refusal r = {0};
    hear(s);
    if (!words_well_formed(line, length)) {
        refuse(&r, "syntax", "a line is printable words separated by one space");
    } else {
        dispatch(s, line, &r);
    }
    if (r.code) {
        text_add(s->out, "err %s %s\n", r.code, r.text);
    }
}

void session_too_long(struct session *s) {
    hear(s);
    text_add(s->out, "err syntax the line is longer than %u bytes\n", PROTO_LINE_LIMIT);
}

uint64_t session_next(const struct session *s) {
    uint64_t next = s->program->next && !s->quit ? s->program->next(proto_of(s)) : TIME_NEVER;
    return min_u64(next, lease_end(s));
}

void session_due(struct session *s) {
    if (s->program->due && !s->quit) {
        s->program->due(proto_of(s), s->program->clock(proto_of(s)));
    }
}
