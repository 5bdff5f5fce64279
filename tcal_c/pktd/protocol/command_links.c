/* Nodes, and the links and routes between them. */
#include "commands.h"

#include "pktd/core/structures/array.h"

#include <string.h>

#define NODE_USAGE                                                                                 \
    "node NODE [ip=A.B.C.D] [ip6=ADDR] [hop=0|1] [behind=CIDR] [mac=MAC], or "                     \
    "node NODE frames=end|lan|air"

static bool take_node_kind(const char *value, struct op_node *op) {
    op->kind = strcmp(value, "end") == 0   ? NODE_END
               : strcmp(value, "lan") == 0 ? NODE_LAN
               : strcmp(value, "air") == 0 ? NODE_AIR
                                           : NODE_PLAIN;
    return op->kind != NODE_PLAIN;
}

bool do_node(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t node;
    struct op_node op = {0};
    if (!take_index(w, "node", NODE_LIMIT, &node, NODE_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        bool is4 = value && strcmp(word, "ip") == 0;
        bool is6 = value && strcmp(word, "ip6") == 0;
        if (value && strcmp(word, "hop") == 0 && (*value == '0' || *value == '1') && !value[1]) {
            op.hop = *value == '1';
            continue;
        }
        if (value && strcmp(word, "frames") == 0 && take_node_kind(value, &op)) {
            continue;
        }
        if (value && strcmp(word, "behind") == 0) {
            if (!take_prefix(value, &op.behind, r)) {
                return false;
            }
            continue;
        }
        if (value && strcmp(word, "mac") == 0) {
            op.has_mac = true;
            if (!word_mac(value, op.mac)) {
                return refuse(r, "range", "mac '%.32s' is no address of a device", value);
            }
            continue;
        }
        if (!is4 && !is6) {
            return syntax(r, NODE_USAGE);
        }
        if (is4 ? !word_ipv4(value, &op.addr4) : !word_ipv6(value, &op.addr6)) {
            return refuse(r, "range", "'%.64s' is no IPv%d address", value, is4 ? 4 : 6);
        }
    }
    bool leads = op.behind.addr.version;
    bool ends = leads || op.has_mac;
    if ((op.kind && (op.hop || op.addr4.version || op.addr6.version || ends)) || (op.hop && ends)) {
        return syntax(r, NODE_USAGE);
    }
    return stage_node(p->stage, node, &op, r) && done(p);
}

bool do_bind(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t node;
    uint32_t port;
    return take_index(w, "node", NODE_LIMIT, &node, "bind NODE PORT", r) &&
           take_index(w, "port", PORT_LIMIT, &port, "bind NODE PORT", r) &&
           take_end(w, "bind NODE PORT", r) && stage_bind(p->stage, node, port, r) && done(p);
}

bool do_unbind(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t node;
    return take_index(w, "node", NODE_LIMIT, &node, "unbind NODE", r) &&
           take_end(w, "unbind NODE", r) && stage_unbind(p->stage, node, r) && done(p);
}

#define SET_USAGE "set LINK KEY=VALUE... (" LINK_KEYS " up)"
#define LINK_USAGE                                                                                 \
    "link LINK SRC DST rate=BPS delay=NS jitter=NS loss=PPB queue=BYTES dist=NAME seed=N up=0|1 "  \
    "[burst=MILLI] [burst-pass=PPB] [gap-loss=PPB] [duplicate=PPB] [corrupt=PPB] [reorder=PPB] "   \
    "[by=NS] [reject=PPB] [cap=BPS] [mtu=BYTES] [flows=FLOWS:BPS:BYTES;...] [trace=TRACE] "        \
    "[pkts=N] [aqm=KIND;KEY:N;...] [only=MATCH;...;KEY:N;...] [neck=NAME] [rtt=NS]"

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
                   {"jitter", LINK_JITTER, JITTER_LIMIT_NS, &c->jitter_ns},
                   {"loss", LINK_LOSS, PPB, &c->loss_ppb},
                   {"queue", LINK_QUEUE, QUEUE_LIMIT_BYTES, &c->queue_bytes},
                   {"burst", LINK_BURST, BURST_LIMIT, &c->impairments.burst_milli},
                   {"burst-pass", LINK_BURST_PASS, PPB, &c->impairments.burst_pass},
                   {"gap-loss", LINK_GAP_LOSS, PPB, &c->impairments.gap_loss},
                   {"duplicate", LINK_DUPLICATE, PPB, &c->impairments.duplicate},
                   {"corrupt", LINK_CORRUPT, PPB, &c->impairments.corrupt},
                   {"reorder", LINK_REORDER, PPB, &c->impairments.reorder},
                   {"by", LINK_BY, DAY_NS, &c->impairments.reorder_ns},
                   {"reject", LINK_REJECT, PPB, &c->impairments.reject},
                   {"cap", LINK_CAP, RATE_LIMIT_BPS, &c->capacity_bps},
                   {"mtu", LINK_MTU, MTU_LIMIT, &c->mtu},
                   {"pkts", LINK_PKTS, QUEUE_LIMIT_PACKETS, &c->packets},
                   {"rtt", LINK_RTT, DAY_NS, &c->rtt_ns}};
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

/* The number of a trace, 0 for none. */
static bool link_trace(const struct proto *p, struct link_config *c, const char *value,
                       struct refusal *r) {
    uint64_t number;
    if (!take_number("trace", value, TRACE_LIMIT - 1, &number, r)) {
        return false;
    }
    c->fields |= LINK_TRACE;
    c->trace = number ? stage_trace(p->stage, number) : NULL;
    return !number || c->trace ||
           refuse(r, "unknown", "trace %llu is not whole", (unsigned long long)number);
}

/* A name of one that is known, or of measured delays. */
static bool link_dist(const struct proto *p, struct link_config *c, const char *value,
                      struct refusal *r) {
    c->fields |= LINK_DIST;
    c->dist = dist_find(value);
    c->measured = c->dist == DIST_COUNT ? stage_measured(p->stage, value) : NULL;
    if (c->measured) {
        c->dist = DIST_NORMAL;
    }
    return c->dist != DIST_COUNT ||
           refuse(r, "range",
                  "dist '%.64s' is not normal, uniform, pareto or paretonormal, nor the name of "
                  "whole delays",
                  value);
}

bool link_option(struct proto *p, struct link_config *c, const char *key, const char *value,
                 const char *usage, struct refusal *r) {
    bool known;
    if (!link_number(c, key, value, &known, r)) {
        return false;
    }
    if (known) {
        return true;
    }
    if (strcmp(key, "up") == 0) {
        c->fields |= LINK_UP;
        c->up = value[0] == '1';
        return ((value[0] == '0' || value[0] == '1') && !value[1]) ||
               refuse(r, "range", "up '%.32s' is not 0 or 1", value);
    }
    if (strcmp(key, "aqm") == 0) {
        c->fields |= LINK_AQM;
        return take_aqm(&c->aqm, value, r);
    }
    if (strcmp(key, "dist") == 0) {
        return link_dist(p, c, value, r);
    }
    return strcmp(key, "trace") == 0 ? link_trace(p, c, value, r) : syntax(r, usage);
}

/* Of links only: paths have no flows to share, one class of packets, and no
 * queues. */
static bool own_option(struct proto *p, struct link_config *c, const char *key, const char *value,
                       const char *usage, struct refusal *r) {
    if (strcmp(key, "only") == 0) {
        return stage_class(p->stage, value, c, r);
    }
    if (strcmp(key, "neck") == 0) {
        return stage_name_neck(p->stage, value, c, r);
    }
    return strcmp(key, "flows") == 0 ? stage_flow_rates(p->stage, value, c, r)
                                     : link_option(p, c, key, value, usage, r);
}

bool do_set(struct proto *p, struct words *w, struct refusal *r) {
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
        if (!own_option(p, &config, word, value, SET_USAGE, r)) {
            return false;
        }
    }
    if (config.fields == 0) {
        return syntax(r, SET_USAGE);
    }
    return stage_set(p->stage, link, &config, r) && done(p);
}

static bool link_options(struct proto *p, struct words *w, struct op_link *op, struct refusal *r) {
    bool seeded = false;
    op->config.fields = LINK_OPTIONAL;
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
        } else if (!own_option(p, &op->config, word, value, LINK_USAGE, r)) {
            return false;
        }
    }
    return (seeded && (op->config.fields & LINK_ALL) == LINK_ALL) || syntax(r, LINK_USAGE);
}

bool do_link(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t link;
    uint32_t source;
    uint32_t dest;
    struct op_link op = {0};
    if (!take_index(w, "link", LINK_LIMIT, &link, LINK_USAGE, r) ||
        !take_index(w, "node", NODE_LIMIT, &source, LINK_USAGE, r) ||
        !take_index(w, "node", NODE_LIMIT, &dest, LINK_USAGE, r) || !link_options(p, w, &op, r)) {
        return false;
    }
    op.source = (uint16_t)source;
    op.dest = (uint16_t)dest;
    return stage_link(p->stage, link, &op, r) && done(p);
}

#define GROUP_USAGE "group GROUP NODE LINK LINK..."

bool do_group(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t group;
    uint32_t node;
    uint32_t links[SPREAD_MOST];
    uint32_t count = 0;
    if (!take_index(w, "group", SPREAD_LIMIT, &group, GROUP_USAGE, r) ||
        !take_index(w, "node", NODE_LIMIT, &node, GROUP_USAGE, r)) {
        return false;
    }
    for (; w->rest; count++) {
        uint32_t link;
        if (!take_index(w, "link", LINK_LIMIT, &link, GROUP_USAGE, r)) {
            return false;
        }
        if (count == SPREAD_MOST) {
            return refuse(r, "range", "a group has %u links at most", SPREAD_MOST);
        }
        links[count] = link;
    }
    if (count < 2) {
        return syntax(r, GROUP_USAGE);
    }
    return stage_group(p->stage, group, node, links, count, r) && done(p);
}

/* A link, `gN` for group N, or `-` for none. */
static bool take_next(struct words *w, uint32_t *next, const char *usage, struct refusal *r) {
    if (w->rest && strncmp(w->rest, "- ", 2) == 0) {
        words_next(w);
        *next = LINK_NONE;
        return true;
    }
    if (!w->rest || w->rest[0] != 'g') {
        return take_index(w, "link", LINK_LIMIT, next, usage, r);
    }
    w->rest++;
    bool good = take_index(w, "group", SPREAD_LIMIT, next, usage, r);
    *next += SPREAD_FIRST;
    return good;
}

static bool add_range(struct proto *p, size_t count, struct dest_range range, struct refusal *r) {
    if (!array_room((void **)&p->range, &p->range_room, count, sizeof *p->range)) {
        return stage_no_memory(r);
    }
    p->range[count] = range;
    return true;
}

/* NODE, LINK and then destinations, single ones or ranges. */
static bool routes(struct proto *p, struct words *w, bool ranges, const char *usage,
                   struct refusal *r) {
    uint32_t node;
    uint32_t link = LINK_NONE;
    if (!take_index(w, "node", NODE_LIMIT, &node, usage, r)) {
        return false;
    }
    if (!take_next(w, &link, usage, r)) {
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

bool do_route(struct proto *p, struct words *w, struct refusal *r) {
    return routes(p, w, false, "route NODE LINK|gGROUP|- DEST...", r);
}

bool do_routes(struct proto *p, struct words *w, struct refusal *r) {
    return routes(p, w, true, "routes NODE LINK|gGROUP|- FIRST-LAST...", r);
}
