/* From what a peer has to what it shall have: the messages for the difference. */
#include "steps.h"

#include <errno.h>

#define FILTER_IDS 0xffeu /* in one bucket */

static void wish_class(struct tcal_tree *tree, struct tcal_peer *peer,
                       const struct tcal_params *p) {
    /* A class that only drops keeps the rate it has. */
    if (peer->has_class && (!p->open || (peer->now.rate_bytes_ps == p->rate_bytes_ps &&
                                         peer->now.burst_ticks == p->burst_ticks))) {
        return;
    }
    struct tcal_step *s = tcal_step(tree, TCAL_STEP_CLASS, peer);
    s->params = *p;
    tcal_mail_class(&s->mail, peer->slot, p->rate_bytes_ps, p->burst_ticks, tree->mtu);
}

/* `parent` 0: it is there. */
static void wish_netem(struct tcal_tree *tree, struct tcal_peer *peer, uint32_t parent,
                       const struct tcal_params *p, uint64_t seed) {
    const struct tcal_params *now = &peer->now;
    /* Without jitter the table is not looked at, so it need not be sent until there is some. */
    bool table = p->netem.jitter_ns && (parent || !peer->has_table || now->dist != p->dist);
    if (!parent && !table && tcal_same_netem(&now->netem, &p->netem)) {
        return;
    }
    struct tcal_step *s = tcal_step(tree, TCAL_STEP_NETEM, peer);
    s->params = *p;
    s->table = table;
    tcal_mail_netem(&s->mail, peer->slot, p, tcal_seed(seed, peer->generation++), parent, table);
}

static void wish_fifo(struct tcal_tree *tree, struct tcal_peer *peer, bool make,
                      const struct tcal_params *p) {
    if (!make && peer->now.queue_bytes == p->queue_bytes) {
        return;
    }
    struct tcal_step *s = tcal_step(tree, TCAL_STEP_FIFO, peer);
    s->params = *p;
    tcal_mail_fifo(&s->mail, peer->slot, p->queue_bytes, make);
}

static void wish_open(struct tcal_tree *tree, struct tcal_peer *peer, const struct tcal_params *p,
                      uint64_t seed) {
    bool fresh = peer->leaf != TCAL_LEAF_OPEN || !peer->has_netem;
    uint32_t parent = tcal_class_of(peer->slot);
    if (tree->options.deep) {
        parent = tcal_handle_of(peer->slot, TCAL_SPLIT) | 1;
        if (fresh) {
            struct tcal_step *s = tcal_step(tree, TCAL_STEP_SPLIT, peer);
            tcal_mail_split(&s->mail, peer->slot, tree->mtu);
        }
    }
    wish_netem(tree, peer, fresh ? parent : 0, p, seed);
    wish_fifo(tree, peer, fresh || !peer->has_fifo, p);
}

static void wish_closed(struct tcal_tree *tree, struct tcal_peer *peer) {
    if (peer->leaf != TCAL_LEAF_HOLE) {
        struct tcal_step *s = tcal_step(tree, TCAL_STEP_HOLE, peer);
        tcal_mail_hole(&s->mail, peer->slot);
    }
}

/* The tables an address needs. They are noted at once, so that the next address of the same round
 * does not ask for them again; a failure takes that back. */
static void wish_tables(struct tcal_tree *tree, uint32_t family, uint32_t octet) {
    if (!tree->has_table[family][octet]) {
        struct tcal_step *s = tcal_step(tree, TCAL_STEP_TABLE, NULL);
        s->family = family;
        s->octet = octet;
        tree->has_table[family][octet] = true;
        tcal_mail_table(&s->mail, family, TCAL_SUBTABLE(family, octet));
    }
    if (!tree->has_link[family][octet]) {
        struct tcal_step *s = tcal_step(tree, TCAL_STEP_LINK, NULL);
        s->family = family;
        s->octet = octet;
        tree->has_link[family][octet] = true;
        tcal_mail_link(&s->mail, family, octet);
    }
}

static void new_filter(struct tcal_tree *tree, struct tcal_peer *peer, uint32_t family,
                       const struct addr *addr) {
    wish_tables(tree, family, tcal_octet(addr, 2));
    uint16_t *next = &tree->next_id[family][tcal_octet(addr, 2)][tcal_octet(addr, 1)];
    if (*next >= FILTER_IDS) {
        tcal_give_up(tree, TCAL_STEP_FILTER, peer, -ENOSPC,
                     "too many addresses with these two octets");
        return;
    }
    struct tcal_step *s = tcal_step(tree, TCAL_STEP_FILTER, peer);
    s->family = family;
    s->filter = (struct tcal_filter){*addr, tcal_filter_handle(addr, ++*next)};
    tcal_mail_filter(&s->mail, addr, s->filter.handle, tcal_class_of(peer->slot));
}

static void old_filter(struct tcal_tree *tree, struct tcal_peer *peer, uint32_t family,
                       const struct tcal_filter *filter) {
    struct tcal_step *s = tcal_step(tree, TCAL_STEP_UNFILTER, peer);
    s->family = family;
    s->filter = *filter;
    tcal_mail_unfilter(&s->mail, family, filter->handle);
}

static bool wants_filter(const struct tcal_tree *tree, const struct tcal_peer *peer,
                         const struct addr *addr) {
    return addr->version && peer->node != tree->self && tcal_tree_covers(tree, addr);
}

static void wish_filter(struct tcal_tree *tree, struct tcal_peer *peer, uint32_t family,
                        const struct addr *addr) {
    const struct tcal_filter now = peer->filter[family];
    bool wanted = wants_filter(tree, peer, addr);
    bool same = wanted && now.addr.version && addr_equal(addr, &now.addr);
    if (peer->stray[family].addr.version) {
        old_filter(tree, peer, family, &peer->stray[family]);
    }
    if (now.addr.version && !same) {
        old_filter(tree, peer, family, &now);
    }
    if (wanted && !same) {
        new_filter(tree, peer, family, addr);
    }
}

void tcal_tree_wish(struct tcal_tree *tree, struct tcal_peer *peer, const struct tcal_wish *wish) {
    if (peer->slot == TCAL_NONE) {
        /* A node does not send to itself this way, and nobody to one without an address here. */
        if (peer->node == tree->self || (!wants_filter(tree, peer, &wish->addr[0]) &&
                                         !wants_filter(tree, peer, &wish->addr[1]))) {
            return;
        }
        if (tree->slots == TCAL_SLOT_LIMIT) {
            tcal_give_up(tree, TCAL_STEP_CLASS, peer, -ENOSPC, "too many destinations");
            return;
        }
        tree->slot[tree->slots] = (uint32_t)(peer - tree->peer);
        peer->slot = tree->slots++;
    }
    struct tcal_params p =
        tcal_derive(&wish->path, &tree->options, tree->mtu, peer->now.netem.limit);
    wish_class(tree, peer, &p);
    if (p.open) {
        wish_open(tree, peer, &p, wish->path.seed);
    } else {
        wish_closed(tree, peer);
    }
    for (uint32_t family = 0; family < TCAL_FAMILIES; family++) {
        wish_filter(tree, peer, family, &wish->addr[family]);
    }
}
