/* Each change with a note of what was before. */
#include "change.h"

#include <stdlib.h>
#include <string.h>

/* What one change replaced. */
struct undo {
    enum tcal_change_kind kind;
    uint32_t node;
    uint32_t other; /* PATH: its index; BIND: the port the node had */
    uint32_t port;  /* BIND: the port taken */
    uint32_t owner; /* BIND: the node that had it */
    struct node was_node;
    bool was_declared;
    struct tcal_path was_path;
};

static bool note_undo(struct tcal *t, const struct undo *undo) {
    if (t->undos == t->undo_room) {
        size_t room = t->undo_room ? t->undo_room * 2 : 256;
        struct undo *memory = realloc(t->undo, room * sizeof *memory);
        if (!memory) {
            return false;
        }
        t->undo = memory;
        t->undo_room = room;
    }
    t->undo[t->undos++] = *undo;
    return true;
}

/* Every port has to look at this node again. */
static bool touch_node(struct tcal *t, uint32_t node) {
    for (struct port *port = t->ports; port; port = port->next) {
        port->touched = true;
        if (!tcal_tree_mark(&port->tree, node)) {
            return false;
        }
    }
    return true;
}

bool tcal_touch_port(struct tcal *t, struct port *port) {
    port->touched = true;
    for (uint32_t node = 0; node < t->nodes; node++) {
        if (t->node[node].known && !tcal_tree_mark(&port->tree, node)) {
            return false;
        }
    }
    return true;
}

void tcal_clear_marks(struct tcal *t) {
    for (struct port *port = t->ports; port; port = port->next) {
        port->touched = false;
        for (uint32_t i = 0; i < port->tree.dirties; i++) {
            port->tree.peer[port->tree.dirty[i]].dirty = false;
        }
        port->tree.dirties = 0;
    }
}

static bool touch_path(struct tcal *t, const struct path *path) {
    struct port *port = tcal_find_port(t, t->node[path->source].port);
    if (!port) {
        return true;
    }
    port->touched = true;
    return tcal_tree_mark(&port->tree, path->dest);
}

static bool change_node(struct tcal *t, const struct tcal_change *c) {
    struct node *node = &t->node[c->node];
    struct undo undo = {.kind = c->kind, .node = c->node, .was_node = *node};
    if (!note_undo(t, &undo)) {
        return false;
    }
    node->known = true;
    memcpy(node->addr, c->addr, sizeof node->addr);
    t->nodes = c->node >= t->nodes ? c->node + 1 : t->nodes;
    return touch_node(t, c->node);
}

/* Port TCAL_NONE: unbinds. */
static bool bind_node(struct tcal *t, uint32_t node, uint32_t number) {
    struct port *port = tcal_find_port(t, number);
    struct port *old = tcal_find_port(t, t->node[node].port);
    t->node[node].port = port ? number : TCAL_NONE;
    if (old && old != port) {
        old->node = TCAL_NONE;
        if (!tcal_touch_port(t, old)) {
            return false;
        }
    }
    if (!port) {
        return true;
    }
    if (port->node != TCAL_NONE && port->node != node) {
        t->node[port->node].port = TCAL_NONE;
    }
    port->node = node;
    return tcal_touch_port(t, port);
}

static bool change_binding(struct tcal *t, const struct tcal_change *c) {
    bool bind = c->kind == TCAL_CHANGE_BIND;
    const struct port *port = bind ? tcal_find_port(t, c->port) : NULL;
    struct undo undo = {.kind = TCAL_CHANGE_BIND,
                        .node = c->node,
                        .other = t->node[c->node].port,
                        .port = port ? c->port : TCAL_NONE,
                        .owner = port ? port->node : TCAL_NONE};
    /* A port that was detached meanwhile carries nothing any more. */
    return note_undo(t, &undo) && bind_node(t, c->node, undo.port);
}

static void merge(struct tcal_path *to, const struct tcal_path *from, uint32_t fields) {
    to->rate_bps = fields & TCAL_RATE ? from->rate_bps : to->rate_bps;
    to->delay_ns = fields & TCAL_DELAY ? from->delay_ns : to->delay_ns;
    to->jitter_ns = fields & TCAL_JITTER ? from->jitter_ns : to->jitter_ns;
    to->loss_ppb = fields & TCAL_LOSS ? from->loss_ppb : to->loss_ppb;
    to->queue_bytes = fields & TCAL_QUEUE ? from->queue_bytes : to->queue_bytes;
    to->up = fields & TCAL_UP ? from->up : to->up;
    to->dist = fields & TCAL_DIST ? from->dist : to->dist;
    to->seed = fields & TCAL_SEED ? from->seed : to->seed;
}

static bool change_path(struct tcal *t, const struct tcal_change *c) {
    struct path *path = tcal_take_path(t, c->node, c->dest);
    if (!path) {
        return false;
    }
    struct undo undo = {.kind = c->kind,
                        .other = (uint32_t)(path - t->path),
                        .was_declared = path->declared,
                        .was_path = path->now};
    if (!note_undo(t, &undo)) {
        return false;
    }
    path->declared = true;
    merge(&path->now, &c->path, c->fields);
    return touch_path(t, path);
}

bool tcal_change(struct tcal *t, const struct tcal_change *c) {
    switch (c->kind) {
    case TCAL_CHANGE_NODE:
        return change_node(t, c);
    case TCAL_CHANGE_PATH:
        return change_path(t, c);
    default:
        return change_binding(t, c);
    }
}

/* Marks need no memory any more: they were all made on the way here. */
static void undo_binding(struct tcal *t, const struct undo *undo) {
    bind_node(t, undo->node, undo->other);
    if (undo->owner != TCAL_NONE && undo->owner != undo->node) {
        bind_node(t, undo->owner, undo->port);
    }
    struct port *port = tcal_find_port(t, undo->port);
    if (port) {
        port->touched = true;
    }
}

void tcal_undo_all(struct tcal *t) {
    while (t->undos) {
        const struct undo *undo = &t->undo[--t->undos];
        switch (undo->kind) {
        case TCAL_CHANGE_NODE:
            t->node[undo->node] = undo->was_node;
            touch_node(t, undo->node);
            break;
        case TCAL_CHANGE_PATH:
            t->path[undo->other].declared = undo->was_declared;
            t->path[undo->other].now = undo->was_path;
            touch_path(t, &t->path[undo->other]);
            break;
        default:
            undo_binding(t, undo);
            break;
        }
    }
}
