/* Reads back what the kernel has for one interface and compares it with what a tree says of it.
 *
 * Three dumps: qdiscs, classes, filters. Every object of the kernel's must be one of ours and have
 * the values that were sent; then every object of ours must have been seen. What the kernel does
 * not tell cannot be compared: delay tables, and the sizes of tbf's bursts.
 */
#include "verify.h"

#include "common/tests/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

void verify_differs(struct check *c, const char *format, ...) {
    va_list args;
    if (*c->why) {
        return;
    }
    va_start(args, format);
    vsnprintf(c->why, VERIFY_TEXT, format, args);
    va_end(args);
}

static void compare(struct check *c, const char *what, uint32_t number, const char *value,
                    uint64_t is, uint64_t shall) {
    if (is != shall) {
        verify_differs(c, "%s of node %u has %s %llu instead of %llu", what, number, value,
                       (unsigned long long)is, (unsigned long long)shall);
    }
}

static void hear_failure(void *context, uint32_t sequence, int error, const char *text) {
    (void)sequence;
    verify_differs(context, "the kernel refuses to tell: %s%s%s", strerror(-error),
                   *text ? ": " : "", text);
}

/* A rate of 32 bits, and the attribute that there is when those are too few. */
static uint64_t rate_of(const struct tc_ratespec *spec, const struct nl_attr *wide) {
    return wide->bytes ? nl_get_u64(wide) : spec->rate;
}

/* -- classes ----------------------------------------------------------------------------------- */

static void check_class(struct check *c, struct tcal_peer *peer, const struct nl_attr *options) {
    struct tc_htb_opt opt;
    struct nl_attr attr = nl_find(options->bytes, options->length, TCA_HTB_PARMS);
    nl_get(&attr, &opt, sizeof opt);
    attr = nl_find(options->bytes, options->length, TCA_HTB_RATE64);
    compare(c, "the class", peer->node, "rate", rate_of(&opt.rate, &attr), peer->now.rate_bytes_ps);
    attr = nl_find(options->bytes, options->length, TCA_HTB_CEIL64);
    compare(c, "the class", peer->node, "ceil", rate_of(&opt.ceil, &attr), peer->now.rate_bytes_ps);
    compare(c, "the class", peer->node, "burst", opt.buffer, peer->now.burst_ticks);
    compare(c, "the class", peer->node, "cburst", opt.cbuffer, peer->now.burst_ticks);
    compare(c, "the class", peer->node, "quantum", opt.quantum, c->tree->mtu + TCAL_ETHERNET_BYTES);
}

static void hear_class(void *context, uint16_t type, const char *body, size_t length) {
    struct check *c = context;
    struct tcal_tree *tree = c->tree;
    struct tcmsg tc;
    if (type != RTM_NEWTCLASS || length < sizeof tc) {
        return;
    }
    memcpy(&tc, body, sizeof tc);
    uint32_t slot = TC_H_MIN(tc.tcm_handle) - 0x10u;
    if (TC_H_MAJ(tc.tcm_handle) != TCAL_HTB || slot >= tree->slots) {
        verify_differs(c, "class %x:%x is not ours", tc.tcm_handle >> 16, tc.tcm_handle & 0xffff);
        return;
    }
    struct tcal_peer *peer = &tree->peer[tree->slot[slot]];
    struct nl_attr options = nl_find(body + sizeof tc, length - sizeof tc, TCA_OPTIONS);
    if (!peer->has_class) {
        verify_differs(c, "the class of node %u is there", peer->node);
    }
    c->seen[tree->slot[slot]].class = true;
    c->objects++;
    check_class(c, peer, &options);
}

/* -- queueing disciplines ---------------------------------------------------------------------- */

static void check_netem(struct check *c, const struct tcal_peer *peer,
                        const struct nl_attr *options) {
    struct tc_netem_qopt opt;
    struct tc_netem_rate rate;
    nl_get(options, &opt, sizeof opt);
    if (options->length < sizeof opt) {
        verify_differs(c, "netem of node %u does not tell its options", peer->node);
        return;
    }
    const char *run = options->bytes + sizeof opt;
    size_t length = options->length - sizeof opt;
    compare(c, "netem", peer->node, "limit", opt.limit, peer->now.netem.limit);
    compare(c, "netem", peer->node, "loss", opt.loss, peer->now.netem.loss);
    compare(c, "netem", peer->node, "gap", opt.gap, 0);
    compare(c, "netem", peer->node, "duplicate", opt.duplicate, 0);
    struct nl_attr attr = nl_find(run, length, TCA_NETEM_LATENCY64);
    compare(c, "netem", peer->node, "latency", nl_get_u64(&attr), peer->now.netem.latency_ns);
    attr = nl_find(run, length, TCA_NETEM_JITTER64);
    compare(c, "netem", peer->node, "jitter", nl_get_u64(&attr), peer->now.netem.jitter_ns);
    attr = nl_find(run, length, TCA_NETEM_RATE);
    nl_get(&attr, &rate, sizeof rate);
    attr = nl_find(run, length, TCA_NETEM_RATE64);
    compare(c, "netem", peer->node, "rate", attr.bytes ? nl_get_u64(&attr) : rate.rate,
            TCAL_NETEM_RATE_BYTES_PS);
}

static void check_part(struct check *c, const struct tcal_peer *peer, uint32_t part,
                       const char *kind, const struct nl_attr *options) {
    static const char *const kinds[] = {"tbf", "netem", "bfifo", "blackhole"};
    bool open = peer->leaf == TCAL_LEAF_OPEN;
    bool there = part == TCAL_HOLE    ? peer->leaf == TCAL_LEAF_HOLE
                 : part == TCAL_NETEM ? peer->has_netem
                 : part == TCAL_FIFO  ? peer->has_fifo
                                      : open && c->tree->options.deep;
    if (!there || strcmp(kind, kinds[part]) != 0) {
        verify_differs(c, "a %s of node %u is there", kind, peer->node);
    } else if (part == TCAL_NETEM) {
        check_netem(c, peer, options);
    } else if (part == TCAL_FIFO) {
        struct tc_fifo_qopt opt;
        nl_get(options, &opt, sizeof opt);
        compare(c, "bfifo", peer->node, "limit", opt.limit, peer->now.queue_bytes);
    }
}

static uint32_t parent_of(const struct check *c, const struct tcal_peer *peer, uint32_t part) {
    if (part == TCAL_FIFO) {
        return tcal_handle_of(peer->slot, TCAL_NETEM) | 1;
    }
    return part == TCAL_NETEM && c->tree->options.deep ? tcal_handle_of(peer->slot, TCAL_SPLIT) | 1
                                                       : tcal_class_of(peer->slot);
}

static void check_qdisc(struct check *c, const struct tcmsg *tc, const char *kind,
                        const struct nl_attr *options) {
    struct tcal_tree *tree = c->tree;
    uint32_t number = (tc->tcm_handle >> 16) - 0x10u;
    c->objects++;
    if (tc->tcm_handle == TCAL_ROOT || tc->tcm_handle == TCAL_HTB) {
        bool root = tc->tcm_handle == TCAL_ROOT;
        *(root ? &c->root : &c->htb) = true;
        if (strcmp(kind, root ? "tbf" : "htb") != 0 ||
            tc->tcm_parent != (root ? TC_H_ROOT : (TCAL_ROOT | 1))) {
            verify_differs(c, "%s %x: stands in another place", kind, tc->tcm_handle >> 16);
        }
        return;
    }
    if (number / 4 >= tree->slots) {
        verify_differs(c, "qdisc %s %x: is not ours", kind, tc->tcm_handle >> 16);
        return;
    }
    uint32_t index = tree->slot[number / 4];
    const struct tcal_peer *peer = &tree->peer[index];
    c->seen[index].part[number % 4] = true;
    if (tc->tcm_parent != parent_of(c, peer, number % 4)) {
        verify_differs(c, "the %s of node %u stands in another place", kind, peer->node);
    }
    check_part(c, peer, number % 4, kind, options);
}

static void hear_qdisc(void *context, uint16_t type, const char *body, size_t length) {
    struct check *c = context;
    struct tcmsg tc;
    char kind[16];
    if (type != RTM_NEWQDISC || length < sizeof tc) {
        return;
    }
    memcpy(&tc, body, sizeof tc);
    if ((uint32_t)tc.tcm_ifindex != c->tree->ifindex || tc.tcm_parent == TC_H_CLSACT) {
        return;
    }
    struct nl_attr attr = nl_find(body + sizeof tc, length - sizeof tc, TCA_KIND);
    nl_get(&attr, kind, sizeof kind - 1);
    kind[sizeof kind - 1] = '\0';
    attr = nl_find(body + sizeof tc, length - sizeof tc, TCA_OPTIONS);
    check_qdisc(c, &tc, kind, &attr);
}

/* -- what was not seen ------------------------------------------------------------------------- */

static void miss_peer(struct check *c, const struct tcal_peer *peer, const struct seen *seen) {
    const struct {
        bool shall;
        bool is;
        const char *what;
    } parts[] = {
        {peer->has_class, seen->class, "class"},
        {peer->leaf == TCAL_LEAF_HOLE, seen->part[TCAL_HOLE], "blackhole"},
        {peer->leaf == TCAL_LEAF_OPEN && c->tree->options.deep, seen->part[TCAL_SPLIT], "tbf"},
        {peer->has_netem, seen->part[TCAL_NETEM], "netem"},
        {peer->has_fifo, seen->part[TCAL_FIFO], "bfifo"},
        {peer->filter[0].addr.version, seen->filter[0], "IPv4 filter"},
        {peer->filter[1].addr.version, seen->filter[1], "IPv6 filter"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].shall && !parts[i].is) {
            verify_differs(c, "the %s of node %u is missing", parts[i].what, peer->node);
        }
    }
}

static void miss_tables(struct check *c) {
    bool used[TCAL_FAMILIES] = {false, false};
    for (uint32_t i = 0; i < c->tree->prefixes; i++) {
        used[tcal_family_of(&c->tree->prefix[i].addr)] = true;
        if (!c->prefix[i]) {
            verify_differs(c, "the filter of prefix %u is missing", i);
        }
    }
    for (uint32_t i = 0; i < TCAL_ND_FILTERS; i++) {
        if (used[1] && !c->nd[i]) {
            verify_differs(c, "a filter of neighbour discovery is missing");
        }
    }
    for (uint32_t family = 0; family < TCAL_FAMILIES; family++) {
        if (used[family] && !c->table[family]) {
            verify_differs(c, "a hash table is missing");
        }
        for (uint32_t octet = 0; octet < 256; octet++) {
            if ((c->tree->has_table[family][octet] && !c->subtable[family][octet]) ||
                (c->tree->has_link[family][octet] && !c->link[family][octet])) {
                verify_differs(c, "the hash table of octet %u is missing or nothing leads there",
                               octet);
            }
        }
    }
}

static void run_dumps(struct check *c) {
    const struct nl_listener qdiscs = {c, hear_failure, hear_qdisc};
    const struct nl_listener classes = {c, hear_failure, hear_class};
    const struct nl_listener filters = {c, hear_failure, verify_filter};
    int error = tcal_tree_dump(c->tree, RTM_GETQDISC, 0, &qdiscs);
    error = error ? error : tcal_tree_dump(c->tree, RTM_GETTCLASS, TCAL_HTB, &classes);
    error = error ? error : tcal_tree_dump(c->tree, RTM_GETTFILTER, TCAL_HTB, &filters);
    if (error) {
        verify_differs(c, "the kernel cannot be asked: %s", strerror(-error));
    }
}

bool verify(const struct tcal *t, uint32_t port, uint64_t *objects, char why[VERIFY_TEXT]) {
    struct check c = {.tree = &tcal_find_port(t, port)->tree, .why = why};
    c.seen = calloc(c.tree->peers + 1, sizeof *c.seen);
    CHECK(c.seen);
    *why = '\0';
    run_dumps(&c);
    if (!c.root || !c.htb) {
        verify_differs(&c, "%s is missing", c.root ? "htb" : "the root of the tree");
    }
    for (uint32_t i = 0; i < c.tree->peers; i++) {
        miss_peer(&c, &c.tree->peer[i], &c.seen[i]);
    }
    miss_tables(&c);
    *objects = c.objects;
    free(c.seen);
    return !*why;
}
