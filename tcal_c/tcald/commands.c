/* Commands of ports, nodes and paths. Each parses its line completely before it does anything. */
#include "proto.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define ATTACH_USAGE                                                                               \
    "attach PORT netns=PATH if=NAME prefix=CIDR[,CIDR...] [kind=auto|kernel] [remove=close|netns]"

static bool take_prefixes(struct tcal_target *q, char *value, struct refusal *r) {
    for (char *word = value, *next; word; word = next) {
        next = strchr(word, ',');
        if (next) {
            *next++ = '\0';
        }
        if (q->prefixes == TCAL_PREFIX_LIMIT) {
            return refuse(r, "range", "more than %u prefixes", TCAL_PREFIX_LIMIT);
        }
        if (!take_prefix(word, &q->prefix[q->prefixes++], r)) {
            return false;
        }
    }
    return true;
}

static bool take_name(struct tcal_target *q, const char *value, struct refusal *r) {
    size_t length = strlen(value);
    if (length == 0 || length >= IFNAMSIZ || strchr(value, '/') || strchr(value, ':') ||
        strchr(value, '%') || strcmp(value, ".") == 0 || strcmp(value, "..") == 0) {
        return refuse(r, "range", "'%.32s' is no interface name (1-15 characters, no / : %%)",
                      value);
    }
    q->name = value;
    return true;
}

static bool attach_option(struct tcal_target *q, const char *key, char *value, struct refusal *r) {
    if (strcmp(key, "netns") == 0 && *value) {
        q->netns = value;
        return true;
    }
    if (strcmp(key, "if") == 0) {
        return take_name(q, value, r);
    }
    if (strcmp(key, "prefix") == 0) {
        return take_prefixes(q, value, r);
    }
    if (strcmp(key, "kind") == 0) {
        return strcmp(value, "auto") == 0 || strcmp(value, "kernel") == 0 ||
               refuse(r, "range", "kind '%.32s' is not auto or kernel: tcald has no others", value);
    }
    if (strcmp(key, "remove") == 0 && (!strcmp(value, "close") || !strcmp(value, "netns"))) {
        q->leave = *value == 'n';
        return true;
    }
    return syntax(r, ATTACH_USAGE);
}

bool do_attach(struct proto *p, struct words *w, struct refusal *r) {
    struct tcal_target q = {0};
    struct tcal_error error;
    struct tcal_port_info info;
    uint32_t port;
    if (!take_index(w, "port", PORT_LIMIT, &port, ATTACH_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        if (!value) {
            return syntax(r, ATTACH_USAGE);
        }
        if (!attach_option(&q, word, value, r)) {
            return false;
        }
    }
    if (!q.netns || !q.name || q.prefixes == 0) {
        return syntax(r, ATTACH_USAGE);
    }
    if (tcal_is_attached(p->tcal, port)) {
        return refuse(r, "conflict", "port %u is attached already", port);
    }
    if (!tcal_attach(p->tcal, port, &q, &error)) {
        return refuse(r, "system", "%s", error.text);
    }
    tcal_port(p->tcal, port, &info);
    const uint8_t *m = info.mac;
    text_add(p->session.out, "ok kind=kernel mac=%02x:%02x:%02x:%02x:%02x:%02x stamp=none\n", m[0],
             m[1], m[2], m[3], m[4], m[5]);
    return true;
}

bool do_detach(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t port;
    struct tcal_error error;
    if (!take_index(w, "port", PORT_LIMIT, &port, "detach PORT", r) ||
        !take_end(w, "detach PORT", r)) {
        return false;
    }
    if (!tcal_is_attached(p->tcal, port)) {
        return refuse(r, "unknown", "port %u is not attached", port);
    }
    if (!tcal_detach(p->tcal, port, &error)) {
        return refuse(r, "system", "%s", error.text);
    }
    return done(p);
}

static void count_port(void *context, const struct tcal_port_info *info) {
    (void)info;
    ++*(uint32_t *)context;
}

static void list_port(void *context, const struct tcal_port_info *info) {
    struct text *out = context;
    char node[16] = "-";
    if (info->node != TCAL_NONE) {
        snprintf(node, sizeof node, "%u", info->node);
    }
    text_add(out, "%u %s %s %llu %s\n", info->port, node, info->name,
             (unsigned long long)info->netns_inode, info->gone ? "gone" : "kernel");
}

bool do_ports(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t count = 0;
    if (!take_end(w, "ports", r)) {
        return false;
    }
    tcal_ports(p->tcal, count_port, &count);
    text_add(p->session.out, "ok %u\n", count);
    tcal_ports(p->tcal, list_port, p->session.out);
    return true;
}

#define NODE_USAGE "node NODE [ip=A.B.C.D] [ip6=ADDR]"

bool do_node(struct proto *p, struct words *w, struct refusal *r) {
    struct tcal_change c = {.kind = TCAL_CHANGE_NODE};
    if (!take_index(w, "node", NODE_LIMIT, &c.node, NODE_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        bool is4 = value && strcmp(word, "ip") == 0;
        bool is6 = value && strcmp(word, "ip6") == 0;
        if (!is4 && !is6) {
            return syntax(r, NODE_USAGE);
        }
        if (is4 ? !word_ipv4(value, &c.addr[0]) : !word_ipv6(value, &c.addr[1])) {
            return refuse(r, "range", "'%.64s' is no IPv%d address", value, is4 ? 4 : 6);
        }
    }
    return stage_change(p->stage, &c, r) && done(p);
}

bool do_bind(struct proto *p, struct words *w, struct refusal *r) {
    struct tcal_change c = {.kind = TCAL_CHANGE_BIND};
    return take_index(w, "node", NODE_LIMIT, &c.node, "bind NODE PORT", r) &&
           take_index(w, "port", PORT_LIMIT, &c.port, "bind NODE PORT", r) &&
           take_end(w, "bind NODE PORT", r) && stage_change(p->stage, &c, r) && done(p);
}

bool do_unbind(struct proto *p, struct words *w, struct refusal *r) {
    struct tcal_change c = {.kind = TCAL_CHANGE_UNBIND};
    return take_index(w, "node", NODE_LIMIT, &c.node, "unbind NODE", r) &&
           take_end(w, "unbind NODE", r) && stage_change(p->stage, &c, r) && done(p);
}

#define PATH_USAGE "path SRC DST KEY=VALUE... (rate delay jitter loss queue dist seed up)"

/* Numeric properties, their limits and where they go. */
static bool path_number(struct tcal_change *c, const char *key, const char *value, bool *known,
                        struct refusal *r) {
    const struct {
        const char *key;
        uint32_t field;
        uint64_t limit;
        uint64_t *to;
    } numbers[] = {{"rate", TCAL_RATE, RATE_LIMIT_BPS, &c->path.rate_bps},
                   {"delay", TCAL_DELAY, DELAY_LIMIT_NS, &c->path.delay_ns},
                   {"jitter", TCAL_JITTER, JITTER_LIMIT_NS, &c->path.jitter_ns},
                   {"loss", TCAL_LOSS, PPB, &c->path.loss_ppb},
                   {"queue", TCAL_QUEUE, QUEUE_LIMIT_BYTES, &c->path.queue_bytes},
                   {"seed", TCAL_SEED, UINT64_MAX, &c->path.seed}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            *known = true;
            c->fields |= numbers[i].field;
            return take_number(key, value, numbers[i].limit, numbers[i].to, r);
        }
    }
    *known = false;
    return true;
}

static bool path_dist(struct tcal_change *c, const char *value, struct refusal *r) {
    static const char *const names[TCAL_DIST_COUNT] = {"normal", "uniform", "pareto",
                                                       "paretonormal"};
    c->fields |= TCAL_DIST;
    for (int i = 0; i < TCAL_DIST_COUNT; i++) {
        if (strcmp(value, names[i]) == 0) {
            c->path.dist = (enum tcal_dist)i;
            return true;
        }
    }
    return refuse(r, "range", "dist '%.32s' is not normal, uniform, pareto or paretonormal", value);
}

static bool path_option(struct tcal_change *c, const char *key, const char *value,
                        struct refusal *r) {
    bool known;
    if (!path_number(c, key, value, &known, r)) {
        return false;
    }
    if (known) {
        return true;
    }
    if (strcmp(key, "up") == 0) {
        c->fields |= TCAL_UP;
        c->path.up = value[0] == '1';
        return ((value[0] == '0' || value[0] == '1') && !value[1]) ||
               refuse(r, "range", "up '%.32s' is not 0 or 1", value);
    }
    return strcmp(key, "dist") == 0 ? path_dist(c, value, r) : syntax(r, PATH_USAGE);
}

bool do_path(struct proto *p, struct words *w, struct refusal *r) {
    struct tcal_change c = {.kind = TCAL_CHANGE_PATH};
    if (!take_index(w, "node", NODE_LIMIT, &c.node, PATH_USAGE, r) ||
        !take_index(w, "node", NODE_LIMIT, &c.dest, PATH_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        if (!value) {
            return syntax(r, PATH_USAGE);
        }
        if (!path_option(&c, word, value, r)) {
            return false;
        }
    }
    if (c.fields == 0) {
        return syntax(r, PATH_USAGE);
    }
    return stage_change(p->stage, &c, r) && done(p);
}
