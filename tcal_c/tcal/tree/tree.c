/* One interface: the base of its tree, and the peers that it has (tree.h). */
#include "steps.h"

#include <stdlib.h>
#include <string.h>

bool tcal_tree_covers(const struct tcal_tree *tree, const struct addr *addr) {
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

/* -- the base ---------------------------------------------------------------------------------- */

static const struct tcal_mail *base(struct tcal_tree *tree) {
    return &tcal_step(tree, TCAL_STEP_BASE, NULL)->mail;
}

static void build_family(struct tcal_tree *tree, uint32_t family) {
    tcal_mail_table(base(tree), family, TCAL_TABLE(family));
    for (uint32_t i = 0; i < tree->prefixes; i++) {
        if (tcal_family_of(&tree->prefix[i].addr) == family) {
            tcal_mail_prefix(base(tree), &tree->prefix[i]);
        }
    }
}

/* The kernel has nothing of ours any more. */
static void forget(struct tcal_tree *tree) {
    for (uint32_t i = 0; i < tree->peers; i++) {
        struct tcal_peer *peer = &tree->peer[i];
        tcal_note_leaf(peer, TCAL_LEAF_NONE);
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
    tcal_mail_root(base(tree), tree->mtu);
    tcal_mail_htb(base(tree));
    tcal_mail_segments(base(tree), 1);
    if (has_family(tree, 1)) {
        for (uint32_t i = 0; i < TCAL_ND_FILTERS; i++) {
            tcal_mail_nd(base(tree), i);
        }
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
    tcal_mail_unroot(base(tree));
    tcal_mail_segments(base(tree), tree->segments);
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
    nl_close(&tree->channel);
    nl_buffer_free(&tree->out);
    free(tree->peer);
    free(tree->peer_of);
    free(tree->slot);
    free(tree->dirty);
}

/* -- peers ------------------------------------------------------------------------------------- */

/* `pointer` is the address of one to memory, which moves; false: out of memory, and nothing did. */
static bool resize(void *pointer, size_t bytes) {
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    memory = realloc(memory, bytes);
    if (memory) {
        memcpy(pointer, &memory, sizeof memory);
    }
    return memory;
}

static bool room_for_node(struct tcal_tree *tree, uint32_t node) {
    if (node < tree->nodes) {
        return true;
    }
    uint32_t room = tree->nodes ? tree->nodes : 64;
    while (room <= node) {
        room *= 2;
    }
    if (!resize(&tree->peer_of, room * sizeof *tree->peer_of)) {
        return false;
    }
    memset(tree->peer_of + tree->nodes, 0, (room - tree->nodes) * sizeof *tree->peer_of);
    tree->nodes = room;
    return true;
}

/* The peer of a node, made when there is none; NULL: out of memory. */
static struct tcal_peer *peer_of(struct tcal_tree *tree, uint32_t node) {
    if (!room_for_node(tree, node)) {
        return NULL;
    }
    if (tree->peer_of[node]) {
        return &tree->peer[tree->peer_of[node] - 1];
    }
    if (tree->peers == tree->peer_room) {
        uint32_t room = tree->peer_room ? tree->peer_room * 2 : 64;
        if (!resize(&tree->peer, room * sizeof *tree->peer) ||
            !resize(&tree->slot, room * sizeof *tree->slot) ||
            !resize(&tree->dirty, room * sizeof *tree->dirty)) {
            return NULL;
        }
        tree->peer_room = room;
    }
    struct tcal_peer *peer = &tree->peer[tree->peers++];
    *peer = (struct tcal_peer){.node = node, .slot = TCAL_NONE};
    tree->peer_of[node] = tree->peers;
    return peer;
}

bool tcal_tree_mark(struct tcal_tree *tree, uint32_t node) {
    struct tcal_peer *peer = peer_of(tree, node);
    if (!peer) {
        return false;
    }
    if (!peer->dirty) {
        tree->dirty[tree->dirties++] = (uint32_t)(peer - tree->peer);
        peer->dirty = true;
    }
    return true;
}
