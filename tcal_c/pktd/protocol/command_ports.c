/* Devices: those that pktd makes, and those of others that it attaches to. */
#include "commands.h"

#include <string.h>

#define OPEN_USAGE                                                                                 \
    "open PORT netns=PATH if=NAME [kind=auto|tap|packet] [mtu=BYTES] [mac=MAC "                    \
    "[arp=no]] [remove=close|netns], or "                                                          \
    "open PORT line=PATH delay=NS"

static bool open_kind(struct port_request *q, const char *value, struct refusal *r) {
    for (int kind = PORT_AUTO; kind <= PORT_PACKET; kind++) {
        if (strcmp(value, port_kind_name((enum port_kind)kind)) == 0) {
            q->kind = (enum port_kind)kind;
            return true;
        }
    }
    return refuse(r, "range", "kind '%.32s' is not auto, tap or packet", value);
}

/* An interface name of `IFNAMSIZ` bytes. */
static bool take_name(char *name, const char *value, struct refusal *r) {
    size_t length = strlen(value);
    if (length == 0 || length >= IFNAMSIZ || strchr(value, '/') || strchr(value, ':') ||
        strchr(value, '%') || strcmp(value, ".") == 0 || strcmp(value, "..") == 0) {
        return refuse(r, "range", "'%.32s' is no interface name (1-15 characters, no / : %%)",
                      value);
    }
    memcpy(name, value, length + 1);
    return true;
}

static bool open_option(struct port_request *q, const char *key, char *value, const char *usage,
                        struct refusal *r) {
    uint64_t number;
    if (strcmp(key, "netns") == 0 && *value) {
        q->netns = value;
        return true;
    }
    if (strcmp(key, "if") == 0) {
        return take_name(q->name, value, r);
    }
    if (strcmp(key, "kind") == 0) {
        return open_kind(q, value, r);
    }
    if (strcmp(key, "line") == 0 && *value) {
        q->line = value;
        return true;
    }
    if (strcmp(key, "delay") == 0) {
        return word_number(value, DELAY_LIMIT_NS, &q->delay_ns) ||
               refuse(r, "range", "delay '%.32s' is not a number of ns up to 65535 days", value);
    }
    if (strcmp(key, "mtu") == 0) {
        if (!word_number(value, 65520, &number) || number < 68) {
            return refuse(r, "range", "mtu '%.32s' is not a number from 68 to 65520", value);
        }
        q->mtu = (uint32_t)number;
        return true;
    }
    if (strcmp(key, "mac") == 0) {
        q->has_mac = q->frames = true;
        return word_mac(value, q->mac) ||
               refuse(r, "range", "mac '%.32s' is no address of a device", value);
    }
    if (strcmp(key, "arp") == 0 && strcmp(value, "no") == 0 && q->has_mac) {
        q->frames = false;
        return true;
    }
    if (strcmp(key, "remove") == 0 && (!strcmp(value, "close") || !strcmp(value, "netns"))) {
        q->leave = *value == 'n';
        return true;
    }
    return syntax(r, usage);
}

bool do_open(struct proto *p, struct words *w, struct refusal *r) {
    struct port_request q = {.kind = PORT_AUTO, .mtu = 1500};
    if (!take_index(w, "port", PORT_LIMIT, &q.number, OPEN_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        if (!value) {
            return syntax(r, OPEN_USAGE);
        }
        if (!open_option(&q, word, value, OPEN_USAGE, r)) {
            return false;
        }
    }
    /* A line has a delay and is in no namespace; a device is, and has none. */
    bool is_line = q.line && q.delay_ns && !q.netns && !q.name[0];
    bool is_device = !q.line && !q.delay_ns && q.netns && q.name[0];
    if (!is_line && !is_device) {
        return syntax(r, OPEN_USAGE);
    }
    if (stage_port_is_open(p->stage, q.number)) {
        return refuse(r, "conflict", "port %u is open already", q.number);
    }
    if (!p->host->open(p->host->context, &q, p->session.out, r)) {
        return false;
    }
    stage_port(p->stage, q.number, true);
    return true;
}

bool do_close(struct proto *p, struct words *w, struct refusal *r) {
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

#define ATTACH_USAGE                                                                               \
    "attach PORT netns=PATH if=NAME prefix=CIDR[,CIDR...] [kind=auto|tap|packet] "                 \
    "[remove=close|netns]"

static bool attach_prefixes(struct attach_request *q, char *value, struct refusal *r) {
    for (char *word = value, *next; word; word = next) {
        next = strchr(word, ',');
        if (next) {
            *next++ = '\0';
        }
        if (q->prefix_count == PREFIX_LIMIT) {
            return refuse(r, "range", "more than %u prefixes", PREFIX_LIMIT);
        }
        if (!take_prefix(word, &q->prefix[q->prefix_count++], r)) {
            return false;
        }
    }
    return true;
}

static bool attach_option(struct attach_request *q, const char *key, char *value,
                          struct refusal *r) {
    if (strcmp(key, "if") == 0) {
        return take_name(q->target, value, r);
    }
    if (strcmp(key, "prefix") == 0) {
        return attach_prefixes(q, value, r);
    }
    if (strcmp(key, "mtu") == 0 || strcmp(key, "line") == 0 || strcmp(key, "delay") == 0) {
        return syntax(r, ATTACH_USAGE);
    }
    return open_option(&q->port, key, value, ATTACH_USAGE, r);
}

bool do_attach(struct proto *p, struct words *w, struct refusal *r) {
    struct attach_request q = {.port = {.kind = PORT_AUTO}};
    if (!take_index(w, "port", PORT_LIMIT, &q.port.number, ATTACH_USAGE, r)) {
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
    if (!q.port.netns || !q.target[0] || q.prefix_count == 0) {
        return syntax(r, ATTACH_USAGE);
    }
    if (stage_port_is_open(p->stage, q.port.number)) {
        return refuse(r, "conflict", "port %u is attached already", q.port.number);
    }
    if (!p->host->attach(p->host->context, &q, p->session.out, r)) {
        return false;
    }
    stage_port(p->stage, q.port.number, true);
    return true;
}

bool do_detach(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t port;
    if (!take_index(w, "port", PORT_LIMIT, &port, "detach PORT", r) ||
        !take_end(w, "detach PORT", r)) {
        return false;
    }
    if (!stage_port_is_open(p->stage, port)) {
        return refuse(r, "unknown", "port %u is not attached", port);
    }
    bool good = p->host->detach(p->host->context, port, r);
    stage_port(p->stage, port, false);
    return good && done(p);
}

bool do_ports(struct proto *p, struct words *w, struct refusal *r) {
    struct stage *s = p->stage;
    uint32_t count = 0;
    if (!take_end(w, "ports", r)) {
        return false;
    }
    for (uint32_t port = 0; s->mode == MODE_PATHS && port < s->port_end; port++) {
        count += stage_port_is_open(s, port);
    }
    text_add(p->session.out, "ok %u\n", count);
    for (uint32_t port = 0; count && port < s->port_end; port++) {
        if (!stage_port_is_open(s, port)) {
            continue;
        }
        uint32_t node = stage_port_node(s, port);
        text_add(p->session.out, node == NODE_NONE ? "%u - " : "%u %u ", port, node);
        p->host->describe_port(p->host->context, port, p->session.out);
        text_add(p->session.out, "\n");
    }
    return true;
}
