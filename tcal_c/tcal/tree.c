/* One interface: what the kernel has, and the messages for what it shall have (tree.h). */
#include "tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A send of more than this is worked on before more is built: its answers must fit in the socket's
 * buffer even if every message fails. */
#define SEND_MESSAGES 256u
#define SEND_BYTES (96u << 10)
#define FILTER_IDS 0xffeu

bool tcal_tree_covers(const struct tcal_tree *tree, const struct tcal_addr *addr) {
    for (uint32_t i = 0; i < tree->prefixes; i++) {
        if (tcal_inside(&tree->prefix[i], addr)) {
            return true;
        }
    }
    return false;
}

static bool has_family(const struct tcal_tree *tree, uint32_t family) {
    for (uint32_t i = 0; i < tree->prefixes; i++) {
        if (tcal_family_of(&tree->prefix[i].addr) == family) {
            return true;
        }
    }
    return false;
}

/* -- sending ----------------------------------------------------------------------------------- */

static void hear_failure(void *context, uint32_t sequence, int error, const char *text) {
    struct tcal_tree *tree = context;
    uint32_t step = sequence - tree->sequence;
    if (step >= tree->steps) {
        return;
    }
    if (tree->step[step].kind == TCAL_STEP_UNFILTER && error == -ENOENT) {
        return; /* gone is gone */
    }
    tree->step[step].failed = true;
    if (tree->error == 0) {
        tree->error = error;
        tree->failed = tree->step[step];
        memcpy(tree->text, text, strnlen(text, sizeof tree->text - 1) + 1);
        tree->text[sizeof tree->text - 1] = '\0';
    }
}

static void note_netem(struct tcal_peer *peer, const struct tcal_step *step) {
    const struct tcal_params *p = &step->params;
    peer->has_table = peer->has_table || step->table;
    peer->lossy = peer->lossy || p->loss;
    peer->now.latency_ns = p->latency_ns;
    peer->now.jitter_ns = p->jitter_ns;
    peer->now.loss = p->loss;
    peer->now.limit = p->limit;
    if (step->table) {
        peer->now.dist = p->dist;
    }
}

/* The inner qdiscs went with the leaf they were in. */
static void note_leaf(struct tcal_peer *peer, enum tcal_leaf leaf) {
    peer->leaf = leaf;
    peer->has_netem = peer->has_fifo = peer->has_table = peer->lossy = false;
    peer->now.limit = 0;
    /* Counters of new qdiscs begin at nothing; without loss netem's were not read. */
    peer->raw.drop_queue = peer->raw.drop_netem = peer->raw.drop_hole = 0;
    peer->queue_ahead = 0;
    peer->backlog_bytes = 0;
}

static void note_unfilter(struct tcal_filter *filter, const struct tcal_step *step) {
    if (filter->handle == step->filter.handle) {
        *filter = (struct tcal_filter){0};
    }
}

static void note(struct tcal_tree *tree, const struct tcal_step *step) {
    struct tcal_peer *peer = step->peer < tree->peers ? &tree->peer[step->peer] : NULL;
    switch (step->kind) {
    case TCAL_STEP_CLASS:
        peer->has_class = true;
        peer->now.rate_bytes_ps = step->params.rate_bytes_ps;
        peer->now.burst_ticks = step->params.burst_ticks;
        break;
    case TCAL_STEP_SPLIT:
        note_leaf(peer, TCAL_LEAF_OPEN);
        break;
    case TCAL_STEP_HOLE:
        note_leaf(peer, TCAL_LEAF_HOLE);
        break;
    case TCAL_STEP_NETEM:
        if (peer->leaf != TCAL_LEAF_OPEN) {
            note_leaf(peer, TCAL_LEAF_OPEN);
        }
        peer->has_netem = true;
        note_netem(peer, step);
        break;
    case TCAL_STEP_FIFO:
        peer->has_fifo = true;
        peer->now.queue_bytes = step->params.queue_bytes;
        break;
    case TCAL_STEP_FILTER:
        if (peer->filter[step->family].addr.version) {
            peer->stray[step->family] = peer->filter[step->family];
        }
        peer->filter[step->family] = step->filter;
        break;
    case TCAL_STEP_UNFILTER:
        note_unfilter(&peer->filter[step->family], step);
        note_unfilter(&peer->stray[step->family], step);
        break;
    default:
        break;
    }
}

/* A table that could not be made is to be made the next time. */
static void note_failure(struct tcal_tree *tree, const struct tcal_step *step) {
    if (step->kind == TCAL_STEP_TABLE) {
        tree->has_table[step->family][step->octet] = false;
    } else if (step->kind == TCAL_STEP_LINK) {
        tree->has_link[step->family][step->octet] = false;
    }
}

static void flush(struct tcal_tree *tree) {
    if (tree->steps == 0) {
        return;
    }
    struct tcal_listener listener = {.context = tree, .failed = hear_failure};
    int error = tcal_talk(&tree->channel, &tree->out, tree->sequence + tree->steps - 1, &listener);
    tree->lost = tree->lost || error;
    if (error && tree->error == 0) {
        tree->error = error;
        tree->failed = tree->step[0];
        strcpy(tree->text, "no answer from the kernel");
    }
    for (uint32_t i = 0; i < tree->steps; i++) {
        if (error || tree->step[i].failed) {
            note_failure(tree, &tree->step[i]);
        } else {
            note(tree, &tree->step[i]);
        }
    }
    tree->messages += tree->steps;
    tree->sends++;
    tree->sequence += tree->steps;
    tree->steps = 0;
    tree->out.used = 0;
}

/* What is not even tried ends the round like a failure of the kernel's. */
static void give_up(struct tcal_tree *tree, enum tcal_step_kind kind, const struct tcal_peer *peer,
                    int error, const char *text) {
    if (tree->error == 0) {
        tree->error = error;
        tree->failed = (struct tcal_step){.kind = kind,
                                          .peer = peer ? (uint32_t)(peer - tree->peer) : TCAL_NONE};
        strcpy(tree->text, text);
    }
}

/* Room for one more step; NULL when there is none, or when this round has failed already. */
static struct tcal_step *step(struct tcal_tree *tree, enum tcal_step_kind kind,
                              const struct tcal_peer *peer) {
    if (tree->steps >= SEND_MESSAGES || tree->out.used >= SEND_BYTES) {
        flush(tree);
    }
    if (tree->error || tree->gone) {
        return NULL;
    }
    if (tree->steps == tree->step_room) {
        struct tcal_step *memory = realloc(tree->step, SEND_MESSAGES * sizeof *memory);
        if (!memory) {
            give_up(tree, kind, peer, -ENOMEM, "");
            return NULL;
        }
        tree->step = memory;
        tree->step_room = SEND_MESSAGES;
    }
    struct tcal_step *s = &tree->step[tree->steps++];
    *s = (struct tcal_step){.kind = kind, .peer = TCAL_NONE};
    if (peer) {
        s->peer = (uint32_t)(peer - tree->peer);
    }
    return s;
}

/* Where the message of the last step goes. */
static struct tcal_mail mail(struct tcal_tree *tree) {
    return (struct tcal_mail){&tree->out, tree->sequence + tree->steps - 1, tree->ifindex};
}

int tcal_tree_settle(struct tcal_tree *tree) {
    flush(tree);
    int error = tree->error;
    tree->error = 0;
    tree->failure = error;
    if (tree->out.failed) {
        tcal_buffer_free(&tree->out);
        error = error ? error : -ENOMEM;
    }
    return error;
}

int tcal_tree_dump(struct tcal_tree *tree, uint16_t type, uint32_t parent,
                   const struct tcal_listener *listener) {
    struct tcal_buffer b = {0};
    struct tcal_mail m = {&b, tree->sequence++, tree->ifindex};
    tcal_mail_dump(&m, type, parent);
    int error = tcal_dump(&tree->channel, &b, m.sequence, listener);
    tcal_buffer_free(&b);
    tree->dumps++;
    return error;
}

/* -- the base ---------------------------------------------------------------------------------- */

static void build_family(struct tcal_tree *tree, uint32_t family) {
    if (step(tree, TCAL_STEP_BASE, NULL)) {
        struct tcal_mail m = mail(tree);
        tcal_mail_table(&m, family, TCAL_TABLE(family));
    }
    for (uint32_t i = 0; i < tree->prefixes; i++) {
        if (tcal_family_of(&tree->prefix[i].addr) == family && step(tree, TCAL_STEP_BASE, NULL)) {
            struct tcal_mail m = mail(tree);
            tcal_mail_prefix(&m, &tree->prefix[i]);
        }
    }
}

static void build_nd(struct tcal_tree *tree) {
    for (uint32_t i = 0; i < TCAL_ND_FILTERS; i++) {
        if (step(tree, TCAL_STEP_BASE, NULL)) {
            struct tcal_mail m = mail(tree);
            tcal_mail_nd(&m, i);
        }
    }
}

/* The kernel has nothing of ours any more. */
static void forget(struct tcal_tree *tree) {
    for (uint32_t i = 0; i < tree->peers; i++) {
        struct tcal_peer *peer = &tree->peer[i];
        note_leaf(peer, TCAL_LEAF_NONE);
        peer->has_class = false;
        memset(peer->filter, 0, sizeof peer->filter);
        memset(peer->stray, 0, sizeof peer->stray);
        peer->raw = (struct tcal_raw){0};
    }
    for (uint32_t family = 0; family < TCAL_FAMILIES; family++) {
        for (uint32_t octet = 0; octet < 256; octet++) {
            /* What was never used is not even touched: most of it has no memory yet. */
            if (tree->has_table[family][octet]) {
                memset(tree->next_id[family][octet], 0, sizeof tree->next_id[family][octet]);
            }
        }
    }
    memset(tree->has_table, 0, sizeof tree->has_table);
    memset(tree->has_link, 0, sizeof tree->has_link);
}

bool tcal_tree_build(struct tcal_tree *tree) {
    forget(tree);
    if (step(tree, TCAL_STEP_BASE, NULL)) {
        struct tcal_mail m = mail(tree);
        tcal_mail_root(&m, tree->mtu);
    }
    if (step(tree, TCAL_STEP_BASE, NULL)) {
        struct tcal_mail m = mail(tree);
        tcal_mail_htb(&m);
    }
    if (step(tree, TCAL_STEP_BASE, NULL)) {
        struct tcal_mail m = mail(tree);
        tcal_mail_segments(&m, 1);
    }
    if (has_family(tree, 1)) {
        build_nd(tree);
    }
    for (uint32_t family = 0; family < TCAL_FAMILIES; family++) {
        if (has_family(tree, family)) {
            build_family(tree, family);
        }
    }
    tree->lost = false;
    tree->lost = tcal_tree_settle(tree) != 0;
    return !tree->lost;
}

int tcal_tree_remove(struct tcal_tree *tree) {
    if (step(tree, TCAL_STEP_BASE, NULL)) {
        struct tcal_mail m = mail(tree);
        tcal_mail_unroot(&m);
    }
    if (step(tree, TCAL_STEP_BASE, NULL)) {
        struct tcal_mail m = mail(tree);
        tcal_mail_segments(&m, tree->segments);
    }
    int error = tcal_tree_settle(tree);
    forget(tree);
    return error;
}

bool tcal_tree_rebuild(struct tcal_tree *tree) {
    tcal_tree_settle(tree);
    tcal_tree_remove(tree);
    return tcal_tree_build(tree);
}

void tcal_tree_free(struct tcal_tree *tree) {
    if (tree->channel.close) {
        tree->channel.close(tree->channel.context);
    }
    tcal_buffer_free(&tree->out);
    free(tree->step);
    free(tree->peer);
    free(tree->peer_of);
    free(tree->slot);
    free(tree->dirty);
}

/* -- peers ------------------------------------------------------------------------------------- */

static bool room_for_node(struct tcal_tree *tree, uint32_t node) {
    if (node < tree->nodes) {
        return true;
    }
    uint32_t room = tree->nodes ? tree->nodes : 64;
    while (room <= node) {
        room *= 2;
    }
    uint32_t *memory = realloc(tree->peer_of, room * sizeof *memory);
    if (!memory) {
        return false;
    }
    memset(memory + tree->nodes, 0, (room - tree->nodes) * sizeof *memory);
    tree->peer_of = memory;
    tree->nodes = room;
    return true;
}

struct tcal_peer *tcal_tree_peer(struct tcal_tree *tree, uint32_t node) {
    if (!room_for_node(tree, node)) {
        return NULL;
    }
    if (tree->peer_of[node]) {
        return &tree->peer[tree->peer_of[node] - 1];
    }
    if (tree->peers == tree->peer_room) {
        uint32_t room = tree->peer_room ? tree->peer_room * 2 : 64;
        struct tcal_peer *memory = realloc(tree->peer, room * sizeof *memory);
        if (!memory) {
            return NULL;
        }
        tree->peer = memory;
        uint32_t *slot = realloc(tree->slot, room * sizeof *slot);
        if (!slot) {
            return NULL;
        }
        tree->slot = slot;
        tree->peer_room = room;
    }
    struct tcal_peer *peer = &tree->peer[tree->peers++];
    *peer = (struct tcal_peer){.node = node, .slot = TCAL_NONE};
    tree->peer_of[node] = tree->peers;
    return peer;
}

bool tcal_tree_mark(struct tcal_tree *tree, uint32_t node) {
    struct tcal_peer *peer = tcal_tree_peer(tree, node);
    if (!peer) {
        return false;
    }
    if (peer->dirty) {
        return true;
    }
    if (tree->dirties == tree->dirty_room) {
        uint32_t room = tree->dirty_room ? tree->dirty_room * 2 : 64;
        uint32_t *memory = realloc(tree->dirty, room * sizeof *memory);
        if (!memory) {
            return false;
        }
        tree->dirty = memory;
        tree->dirty_room = room;
    }
    tree->dirty[tree->dirties++] = (uint32_t)(peer - tree->peer);
    peer->dirty = true;
    return true;
}

static void wish_class(struct tcal_tree *tree, struct tcal_peer *peer,
                       const struct tcal_params *p) {
    /* A class that only drops keeps the rate it has. */
    if (peer->has_class && (!p->open || (peer->now.rate_bytes_ps == p->rate_bytes_ps &&
                                         peer->now.burst_ticks == p->burst_ticks))) {
        return;
    }
    struct tcal_step *s = step(tree, TCAL_STEP_CLASS, peer);
    if (s) {
        s->params = *p;
        struct tcal_mail m = mail(tree);
        tcal_mail_class(&m, peer->slot, p->rate_bytes_ps, p->burst_ticks, tree->mtu);
    }
}

/* `parent` 0: it is there. */
static void wish_netem(struct tcal_tree *tree, struct tcal_peer *peer, uint32_t parent,
                       const struct tcal_params *p, uint64_t seed) {
    const struct tcal_params *now = &peer->now;
    /* Without jitter the table is not looked at, so it need not be sent until there is some. */
    bool table = p->jitter_ns && (parent || !peer->has_table || now->dist != p->dist);
    if (!parent && !table && now->latency_ns == p->latency_ns && now->jitter_ns == p->jitter_ns &&
        now->loss == p->loss && now->limit == p->limit) {
        return;
    }
    struct tcal_step *s = step(tree, TCAL_STEP_NETEM, peer);
    if (s) {
        s->params = *p;
        s->table = table;
        struct tcal_mail m = mail(tree);
        tcal_mail_netem(&m, peer->slot, p, tcal_seed(seed, peer->generation++), parent, table);
    }
}

static void wish_fifo(struct tcal_tree *tree, struct tcal_peer *peer, bool make,
                      const struct tcal_params *p) {
    if (tree->options.queue != TCAL_QUEUE_INNER ||
        (!make && peer->now.queue_bytes == p->queue_bytes)) {
        return;
    }
    struct tcal_step *s = step(tree, TCAL_STEP_FIFO, peer);
    if (s) {
        s->params = *p;
        struct tcal_mail m = mail(tree);
        tcal_mail_fifo(&m, peer->slot, p->queue_bytes, make);
    }
}

static void wish_open(struct tcal_tree *tree, struct tcal_peer *peer, const struct tcal_params *p,
                      uint64_t seed) {
    bool fresh = peer->leaf != TCAL_LEAF_OPEN || !peer->has_netem;
    uint32_t parent = tcal_class_of(peer->slot);
    if (tree->options.deep) {
        parent = tcal_handle_of(peer->slot, TCAL_SPLIT) | 1;
        if (fresh && step(tree, TCAL_STEP_SPLIT, peer)) {
            struct tcal_mail m = mail(tree);
            tcal_mail_split(&m, peer->slot, tree->mtu);
        }
    }
    wish_netem(tree, peer, fresh ? parent : 0, p, seed);
    wish_fifo(tree, peer, fresh || !peer->has_fifo, p);
}

static void wish_closed(struct tcal_tree *tree, struct tcal_peer *peer) {
    if (peer->leaf == TCAL_LEAF_HOLE) {
        return;
    }
    if (step(tree, TCAL_STEP_HOLE, peer)) {
        struct tcal_mail m = mail(tree);
        tcal_mail_hole(&m, peer->slot);
    }
}

/* The tables an address needs. They are noted at once, so that the next address of the same round
 * does not ask for them again; a failure takes that back. */
static void wish_tables(struct tcal_tree *tree, uint32_t family, uint32_t octet) {
    if (!tree->has_table[family][octet]) {
        struct tcal_step *s = step(tree, TCAL_STEP_TABLE, NULL);
        if (s) {
            s->family = family;
            s->octet = octet;
            tree->has_table[family][octet] = true;
            struct tcal_mail m = mail(tree);
            tcal_mail_table(&m, family, TCAL_SUBTABLE(family, octet));
        }
    }
    if (!tree->has_link[family][octet]) {
        struct tcal_step *s = step(tree, TCAL_STEP_LINK, NULL);
        if (s) {
            s->family = family;
            s->octet = octet;
            tree->has_link[family][octet] = true;
            struct tcal_mail m = mail(tree);
            tcal_mail_link(&m, family, octet);
        }
    }
}

static bool same_addr(const struct tcal_addr *a, const struct tcal_addr *b) {
    return a->version == b->version && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static void new_filter(struct tcal_tree *tree, struct tcal_peer *peer, uint32_t family,
                       const struct tcal_addr *addr) {
    wish_tables(tree, family, tcal_octet(addr, 2));
    uint16_t *next = &tree->next_id[family][tcal_octet(addr, 2)][tcal_octet(addr, 1)];
    if (*next >= FILTER_IDS) {
        give_up(tree, TCAL_STEP_FILTER, peer, -ENOSPC, "too many addresses with these two octets");
        return;
    }
    struct tcal_step *s = step(tree, TCAL_STEP_FILTER, peer);
    if (s) {
        s->family = family;
        s->filter = (struct tcal_filter){*addr, tcal_filter_handle(addr, ++*next)};
        struct tcal_mail m = mail(tree);
        tcal_mail_filter(&m, addr, s->filter.handle, tcal_class_of(peer->slot));
    }
}

static void old_filter(struct tcal_tree *tree, struct tcal_peer *peer, uint32_t family,
                       const struct tcal_filter *filter) {
    struct tcal_step *s = step(tree, TCAL_STEP_UNFILTER, peer);
    if (s) {
        s->family = family;
        s->filter = *filter;
        struct tcal_mail m = mail(tree);
        tcal_mail_unfilter(&m, family, filter->handle);
    }
}

static bool wants_filter(const struct tcal_tree *tree, const struct tcal_peer *peer,
                         const struct tcal_addr *addr) {
    return addr->version && peer->node != tree->self && tcal_tree_covers(tree, addr);
}

static void wish_filter(struct tcal_tree *tree, struct tcal_peer *peer, uint32_t family,
                        const struct tcal_addr *addr) {
    const struct tcal_filter now = peer->filter[family];
    bool wanted = wants_filter(tree, peer, addr);
    bool same = wanted && now.addr.version && same_addr(addr, &now.addr);
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
            give_up(tree, TCAL_STEP_CLASS, peer, -ENOSPC, "too many destinations");
            return;
        }
        tree->slot[tree->slots] = (uint32_t)(peer - tree->peer);
        peer->slot = tree->slots++;
    }
    struct tcal_params p = tcal_derive(&wish->path, &tree->options, tree->mtu, peer->now.limit);
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
