/* One command per function behind a table; each parses its line completely before it stages
 * anything. */
#include "proto.h"

#include "words.h"

#include <stdlib.h>
#include <string.h>

typedef bool command(struct proto *p, struct words *w, struct refusal *r);

static bool syntax(struct refusal *r, const char *usage) {
    return refuse(r, "syntax", "usage: %s", usage);
}

/* A number of a node, port or link as the next word. */
static bool take_index(struct words *w, const char *what, uint64_t limit, uint32_t *index,
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

static bool take_end(struct words *w, const char *usage, struct refusal *r) {
    return !w->rest || syntax(r, usage);
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

#define OPEN_USAGE                                                                                 \
    "open PORT netns=PATH if=NAME [kind=auto|tap|packet] [mtu=BYTES] [remove=close|netns]"

static bool open_kind(struct port_request *q, const char *value, struct refusal *r) {
    for (int kind = PORT_AUTO; kind <= PORT_PACKET; kind++) {
        if (strcmp(value, port_kind_name((enum port_kind)kind)) == 0) {
            q->kind = (enum port_kind)kind;
            return true;
        }
    }
    return refuse(r, "range", "kind '%.32s' is not auto, tap or packet", value);
}

static bool open_name(struct port_request *q, const char *value, struct refusal *r) {
    size_t length = strlen(value);
    if (length == 0 || length >= IFNAMSIZ || strchr(value, '/') || strchr(value, ':') ||
        strchr(value, '%') || strcmp(value, ".") == 0 || strcmp(value, "..") == 0) {
        return refuse(r, "range", "'%.32s' is no interface name (1-15 characters, no / : %%)",
                      value);
    }
    memcpy(q->name, value, length + 1);
    return true;
}

static bool open_option(struct port_request *q, const char *key, char *value, struct refusal *r) {
    uint64_t number;
    if (strcmp(key, "netns") == 0 && *value) {
        q->netns = value;
        return true;
    }
    if (strcmp(key, "if") == 0) {
        return open_name(q, value, r);
    }
    if (strcmp(key, "kind") == 0) {
        return open_kind(q, value, r);
    }
    if (strcmp(key, "mtu") == 0) {
        if (!word_number(value, 65520, &number) || number < 68) {
            return refuse(r, "range", "mtu '%.32s' is not a number from 68 to 65520", value);
        }
        q->mtu = (uint32_t)number;
        return true;
    }
    if (strcmp(key, "remove") == 0 && (!strcmp(value, "close") || !strcmp(value, "netns"))) {
        q->leave = *value == 'n';
        return true;
    }
    return syntax(r, OPEN_USAGE);
}

static bool do_open(struct proto *p, struct words *w, struct refusal *r) {
    struct port_request q = {.kind = PORT_AUTO, .mtu = 1500};
    if (!take_index(w, "port", PORT_LIMIT, &q.number, OPEN_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        if (!value) {
            return syntax(r, OPEN_USAGE);
        }
        if (!open_option(&q, word, value, r)) {
            return false;
        }
    }
    if (!q.netns || !q.name[0]) {
        return syntax(r, OPEN_USAGE);
    }
    if (stage_port_is_open(p->stage, q.number)) {
        return refuse(r, "conflict", "port %u is open already", q.number);
    }
    if (!p->host->open(p->host->context, &q, p->out, r)) {
        return false;
    }
    stage_port(p->stage, q.number, true);
    return true;
}

static bool done(struct proto *p) {
    text_add(p->out, "ok\n");
    return true;
}

static bool do_close(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t port;
    if (!take_index(w, "port", PORT_LIMIT, &port, "close PORT", r) ||
        !take_end(w, "close PORT", r)) {
        return false;
    }
    if (!stage_port_is_open(p->stage, port)) {
        return refuse(r, "unknown", "port %u is not open", port);
    }
    p->host->close(p->host->context, port);
    stage_port(p->stage, port, false);
    return done(p);
}

#define NODE_USAGE "node NODE [ip=A.B.C.D] [ip6=ADDR]"

static bool do_node(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t node;
    struct addr addr4 = {0};
    struct addr addr6 = {0};
    if (!take_index(w, "node", NODE_LIMIT, &node, NODE_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        bool is4 = value && strcmp(word, "ip") == 0;
        bool is6 = value && strcmp(word, "ip6") == 0;
        if (!is4 && !is6) {
            return syntax(r, NODE_USAGE);
        }
        if (is4 ? !word_ipv4(value, &addr4) : !word_ipv6(value, &addr6)) {
            return refuse(r, "range", "'%.64s' is no IPv%d address", value, is4 ? 4 : 6);
        }
    }
    return stage_node(p->stage, node, &addr4, &addr6, r) && done(p);
}

static bool do_bind(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t node;
    uint32_t port;
    return take_index(w, "node", NODE_LIMIT, &node, "bind NODE PORT", r) &&
           take_index(w, "port", PORT_LIMIT, &port, "bind NODE PORT", r) &&
           take_end(w, "bind NODE PORT", r) && stage_bind(p->stage, node, port, r) && done(p);
}

static bool do_unbind(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t node;
    return take_index(w, "node", NODE_LIMIT, &node, "unbind NODE", r) &&
           take_end(w, "unbind NODE", r) && stage_unbind(p->stage, node, r) && done(p);
}

#define SET_USAGE "set LINK KEY=VALUE... (rate delay jitter loss queue dist up)"
#define LINK_USAGE                                                                                 \
    "link LINK SRC DST rate=BPS delay=NS jitter=NS loss=PPB queue=BYTES dist=NAME seed=N up=0|1"

/* Numeric link properties, their limits and where they go. */
static bool link_number(struct link_config *c, const char *key, const char *value, bool *known,
                        struct refusal *r) {
    const struct {
        const char *key;
        uint32_t field;
        uint64_t limit;
        uint64_t *to;
    } numbers[] = {{"rate", LINK_RATE, RATE_LIMIT_BPS, &c->rate_bps},
                   {"delay", LINK_DELAY, DELAY_LIMIT_NS, &c->delay_ns},
                   {"jitter", LINK_JITTER, DELAY_LIMIT_NS, &c->jitter_ns},
                   {"queue", LINK_QUEUE, QUEUE_LIMIT_BYTES, &c->queue_bytes}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            *known = true;
            c->fields |= numbers[i].field;
            return word_number(value, numbers[i].limit, numbers[i].to) ||
                   refuse(r, "range", "%s '%.32s' is not a number from 0 to %llu", key, value,
                          (unsigned long long)numbers[i].limit);
        }
    }
    *known = false;
    return true;
}

static bool link_option(struct link_config *c, const char *key, const char *value,
                        const char *usage, struct refusal *r) {
    bool known;
    uint64_t number;
    if (!link_number(c, key, value, &known, r)) {
        return false;
    }
    if (known) {
        return true;
    }
    if (strcmp(key, "loss") == 0) {
        c->fields |= LINK_LOSS;
        if (!word_number(value, PPB, &number)) {
            return refuse(r, "range", "loss '%.32s' is not a number from 0 to %u", value, PPB);
        }
        c->loss_ppb = (uint32_t)number;
        return true;
    }
    if (strcmp(key, "up") == 0) {
        c->fields |= LINK_UP;
        c->up = value[0] == '1';
        return ((value[0] == '0' || value[0] == '1') && !value[1]) ||
               refuse(r, "range", "up '%.32s' is not 0 or 1", value);
    }
    if (strcmp(key, "dist") == 0) {
        c->fields |= LINK_DIST;
        c->dist = dist_find(value);
        return c->dist != DIST_COUNT ||
               refuse(r, "range", "dist '%.32s' is not normal, uniform, pareto or paretonormal",
                      value);
    }
    return syntax(r, usage);
}

static bool do_set(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t link;
    struct link_config config = {0};
    if (!take_index(w, "link", LINK_LIMIT, &link, SET_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        if (!value) {
            return syntax(r, SET_USAGE);
        }
        if (!link_option(&config, word, value, SET_USAGE, r)) {
            return false;
        }
    }
    if (config.fields == 0) {
        return syntax(r, SET_USAGE);
    }
    return stage_set(p->stage, link, &config, r) && done(p);
}

static bool link_options(struct words *w, struct op_link *op, struct refusal *r) {
    bool seeded = false;
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        if (!value) {
            return syntax(r, LINK_USAGE);
        }
        if (strcmp(word, "seed") == 0) {
            seeded = true;
            if (!word_number(value, UINT64_MAX, &op->seed)) {
                return refuse(r, "range", "seed '%.32s' is not a 64-bit number", value);
            }
        } else if (!link_option(&op->config, word, value, LINK_USAGE, r)) {
            return false;
        }
    }
    return (seeded && op->config.fields == LINK_ALL) || syntax(r, LINK_USAGE);
}

static bool do_link(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t link;
    uint32_t source;
    uint32_t dest;
    struct op_link op = {0};
    if (!take_index(w, "link", LINK_LIMIT, &link, LINK_USAGE, r) ||
        !take_index(w, "node", NODE_LIMIT, &source, LINK_USAGE, r) ||
        !take_index(w, "node", NODE_LIMIT, &dest, LINK_USAGE, r) || !link_options(w, &op, r)) {
        return false;
    }
    op.source = (uint16_t)source;
    op.dest = (uint16_t)dest;
    return stage_link(p->stage, link, &op, r) && done(p);
}

static bool add_range(struct proto *p, size_t count, struct dest_range range, struct refusal *r) {
    if (count == p->range_room) {
        size_t room = count ? count * 2 : 256;
        struct dest_range *memory = realloc(p->range, room * sizeof *memory);
        if (!memory) {
            return refuse(r, "limit", "out of memory");
        }
        p->range = memory;
        p->range_room = room;
    }
    p->range[count] = range;
    return true;
}

/* NODE LINK and then destinations, single ones or ranges. */
static bool routes(struct proto *p, struct words *w, bool ranges, const char *usage,
                   struct refusal *r) {
    uint32_t node;
    uint32_t link = LINK_NONE;
    if (!take_index(w, "node", NODE_LIMIT, &node, usage, r)) {
        return false;
    }
    if (w->rest && strncmp(w->rest, "- ", 2) == 0) {
        words_next(w);
    } else if (!take_index(w, "link", LINK_LIMIT, &link, usage, r)) {
        return false;
    }
    size_t count = 0;
    for (char *word; (word = words_next(w)); count++) {
        struct dest_range range;
        uint64_t dest = 0;
        bool good = ranges ? word_range(word, NODE_LIMIT - 1, &range.first, &range.last)
                           : word_number(word, NODE_LIMIT - 1, &dest);
        if (!good) {
            return refuse(r, "range", "destination '%.32s' is not %s from 0 to %u", word,
                          ranges ? "FIRST-LAST" : "a number", NODE_LIMIT - 1);
        }
        if (!ranges) {
            range = (struct dest_range){(uint32_t)dest, (uint32_t)dest};
        }
        if (!add_range(p, count, range, r)) {
            return false;
        }
    }
    if (count == 0) {
        return syntax(r, usage);
    }
    return stage_routes(p->stage, node, link, p->range, count, r) && done(p);
}

static bool do_route(struct proto *p, struct words *w, struct refusal *r) {
    return routes(p, w, false, "route NODE LINK|- DEST...", r);
}

static bool do_routes(struct proto *p, struct words *w, struct refusal *r) {
    return routes(p, w, true, "routes NODE LINK|- FIRST-LAST...", r);
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
    if (!what || !take_end(w, "stats links|pairs|engine", r)) {
        return syntax(r, "stats links|pairs|engine");
    }
    if (strcmp(what, "links") == 0) {
        stats_links(p);
    } else if (strcmp(what, "pairs") == 0) {
        stats_pairs(p);
    } else if (strcmp(what, "engine") == 0) {
        stats_engine(p);
    } else {
        return syntax(r, "stats links|pairs|engine");
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

static const struct {
    const char *name;
    command *run;
} commands[] = {{"hello", do_hello},   {"open", do_open},     {"close", do_close},
                {"node", do_node},     {"bind", do_bind},     {"unbind", do_unbind},
                {"link", do_link},     {"set", do_set},       {"route", do_route},
                {"routes", do_routes}, {"commit", do_commit}, {"abort", do_abort},
                {"stats", do_stats},   {"clock", do_clock},   {"quit", do_quit}};

static bool dispatch(struct proto *p, char *line, struct refusal *r) {
    struct words w = {line};
    const char *name = words_next(&w);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            if (!p->greeted && commands[i].run != do_hello) {
                return refuse(r, "order", "'%s' before 'hello'", name);
            }
            return commands[i].run(p, &w, r);
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
    text_add(p->out, "! applied %llu %llu %llu\n", (unsigned long long)batch->number,
             (unsigned long long)batch->at_ns, (unsigned long long)batch->applied_ns);
}

void proto_destroy(struct proto *p) {
    free(p->range);
    p->range = NULL;
}
