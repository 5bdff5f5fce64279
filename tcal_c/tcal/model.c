/* Nodes, ports and paths: what is in force, and how lists of changes become messages.
 *
 * A change is first made here, with a note of what was before. Then every port whose packets it
 * concerns gets the messages for the difference. When one is refused the notes are taken back, last
 * first, and the difference is sent again: the tree knows what the kernel has accepted.
 */
#include "socket.h"
#include "tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    bool known;
    struct tcal_addr addr[TCAL_FAMILIES];
    uint32_t port; /* TCAL_NONE: not bound */
};

struct port {
    struct tcal_tree tree;
    uint32_t number;
    uint32_t node;
    char name[16];
    uint64_t inode;
    uint8_t mac[6];
    bool leave;
    bool touched;      /* in this list of changes */
    struct port *next; /* of all, by number */
};

/* A pair of nodes that has a path, or has been offered packets without one. */
struct path {
    uint32_t source;
    uint32_t dest;
    bool declared;
    bool moved;     /* ever */
    bool stirred;   /* since usage was last asked for */
    bool restirred; /* since the pairs were */
    struct tcal_path now;
    struct tcal_usage usage;
};

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

struct tcal {
    struct tcal_options options;
    bool closed;
    struct node *node;
    uint32_t nodes; /* one more than the highest ever declared */
    struct port *ports;
    struct port **port_of; /* by number */
    struct path *path;
    uint32_t paths;
    uint32_t path_room;
    uint32_t *bucket; /* hash of (source, dest) -> path + 1 */
    uint32_t buckets;
    struct undo *undo;
    size_t undos;
    size_t undo_room;
    struct tcal_totals totals;
};

struct tcal *tcal_new(const struct tcal_options *options) {
    struct tcal *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    t->options = *options;
    t->buckets = 1024;
    t->node = calloc(TCAL_NODE_LIMIT, sizeof *t->node);
    t->port_of = calloc(TCAL_PORT_LIMIT, sizeof(struct port *));
    t->bucket = calloc(t->buckets, sizeof *t->bucket);
    if (!t->node || !t->port_of || !t->bucket) {
        tcal_free(t);
        return NULL;
    }
    for (uint32_t i = 0; i < TCAL_NODE_LIMIT; i++) {
        t->node[i].port = TCAL_NONE;
    }
    return t;
}

static void free_port(struct port *port) {
    tcal_tree_free(&port->tree);
    free(port);
}

void tcal_free(struct tcal *t) {
    if (!t) {
        return;
    }
    for (struct port *port = t->ports, *next; port; port = next) {
        next = port->next;
        free_port(port);
    }
    free(t->node);
    free(t->port_of);
    free(t->path);
    free(t->bucket);
    free(t->undo);
    free(t);
}

/* -- paths by their ends ----------------------------------------------------------------------- */

static uint32_t bucket_of(const struct tcal *t, uint32_t source, uint32_t dest) {
    uint64_t key = ((uint64_t)source << 16 | dest) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(key >> 32) & (t->buckets - 1);
}

/* The bucket that has the path, or the free one where it would go. */
static uint32_t seek(const struct tcal *t, uint32_t source, uint32_t dest) {
    uint32_t at = bucket_of(t, source, dest);
    while (t->bucket[at]) {
        const struct path *path = &t->path[t->bucket[at] - 1];
        if (path->source == source && path->dest == dest) {
            break;
        }
        at = (at + 1) & (t->buckets - 1);
    }
    return at;
}

static const struct path *find_path(const struct tcal *t, uint32_t source, uint32_t dest) {
    uint32_t index = t->bucket[seek(t, source, dest)];
    return index && t->path[index - 1].declared ? &t->path[index - 1] : NULL;
}

static bool grow_buckets(struct tcal *t) {
    uint32_t *memory = calloc(t->buckets * 2, sizeof *memory);
    if (!memory) {
        return false;
    }
    free(t->bucket);
    t->bucket = memory;
    t->buckets *= 2;
    for (uint32_t i = 0; i < t->paths; i++) {
        t->bucket[seek(t, t->path[i].source, t->path[i].dest)] = i + 1;
    }
    return true;
}

/* The path's entry, made when there is none; NULL: out of memory. */
static struct path *take_path(struct tcal *t, uint32_t source, uint32_t dest) {
    uint32_t at = seek(t, source, dest);
    if (t->bucket[at]) {
        return &t->path[t->bucket[at] - 1];
    }
    if ((t->paths + 1) * 2 > t->buckets) {
        if (!grow_buckets(t)) {
            return NULL;
        }
        at = seek(t, source, dest);
    }
    if (t->paths == t->path_room) {
        uint32_t room = t->path_room ? t->path_room * 2 : 256;
        struct path *memory = realloc(t->path, room * sizeof *memory);
        if (!memory) {
            return NULL;
        }
        t->path = memory;
        t->path_room = room;
    }
    t->path[t->paths] =
        (struct path){.source = source, .dest = dest, .usage = {.source = source, .dest = dest}};
    t->bucket[at] = ++t->paths;
    return &t->path[t->paths - 1];
}

/* -- counters ---------------------------------------------------------------------------------- */

/* Drops by netem's own limit and by its loss are one number; the loss is what its share says. */
static uint64_t expected_loss(const struct tcal_peer *peer) {
    uint64_t drops = peer->count.drop_netem;
    double lost = (double)(peer->count.sent_packets + drops) * peer->now.loss / UINT32_MAX;
    return lost < (double)drops ? (uint64_t)lost : drops;
}

static void add_counts(struct tcal *t, struct path *path, struct tcal_peer *peer) {
    const struct tcal_count *c = &peer->count;
    struct tcal_usage *u = &path->usage;
    uint64_t lost = t->options.queue == TCAL_QUEUE_HTB ? expected_loss(peer)
                    : c->drop_netem > c->drop_queue    ? c->drop_netem - c->drop_queue
                                                       : 0;
    u->sent_packets += c->sent_packets;
    u->sent_bytes += c->sent_bytes;
    u->drop_queue += t->options.queue == TCAL_QUEUE_HTB ? c->drop_netem - lost : c->drop_queue;
    u->drop_loss += lost;
    *(path->declared ? &u->drop_down : &u->drop_route) += c->drop_hole;
    u->backlog_bytes = peer->backlog_bytes;
    path->moved = path->stirred = path->restirred = true;
    peer->count = (struct tcal_count){0};
    peer->stirred = false;
}

/* Brings a port's counters here: 0 or -errno. */
static int collect(struct tcal *t, struct port *port) {
    struct tcal_tree *tree = &port->tree;
    int error = tree->self == TCAL_NONE ? 0 : tcal_tree_read(tree);
    for (uint32_t i = 0; i < tree->slots && tree->self != TCAL_NONE; i++) {
        struct tcal_peer *peer = &tree->peer[tree->slot[i]];
        struct path *path = peer->stirred ? take_path(t, tree->self, peer->node) : NULL;
        if (path) {
            add_counts(t, path, peer);
        }
    }
    return error;
}

static int by_ends(const void *left, const void *right) {
    const struct path *a = *(struct path *const *)left;
    const struct path *b = *(struct path *const *)right;
    if (a->source != b->source) {
        return a->source < b->source ? -1 : 1;
    }
    return a->dest < b->dest ? -1 : a->dest > b->dest;
}

static bool wanted(const struct path *path, enum tcal_reading reading) {
    return reading == TCAL_READ_PAIRS
               ? path->restirred
               : path->declared && (reading == TCAL_READ_ALL ? path->moved : path->stirred);
}

static bool tell(struct tcal *t, enum tcal_reading reading,
                 void (*each)(void *context, const struct tcal_usage *usage), void *context) {
    struct path **list = malloc((t->paths + 1) * sizeof *list);
    size_t count = 0;
    if (!list) {
        return false;
    }
    for (uint32_t i = 0; i < t->paths; i++) {
        if (wanted(&t->path[i], reading)) {
            list[count++] = &t->path[i];
        }
    }
    qsort(list, count, sizeof(struct path *), by_ends);
    for (size_t i = 0; i < count; i++) {
        each(context, &list[i]->usage);
        bool *flag = reading == TCAL_READ_PAIRS ? &list[i]->restirred : &list[i]->stirred;
        *flag = false;
    }
    free(list);
    return true;
}

/* -- ports ------------------------------------------------------------------------------------- */

static struct port *port_of(const struct tcal *t, uint32_t number) {
    return number < TCAL_PORT_LIMIT ? t->port_of[number] : NULL;
}

bool tcal_is_attached(const struct tcal *t, uint32_t port) {
    return port_of(t, port);
}

bool tcal_detach(struct tcal *t, uint32_t number, struct tcal_error *error) {
    struct port *port = port_of(t, number);
    if (!port) {
        return tcal_fail(error, 0, NULL, "port %u is not attached", number);
    }
    if (!port->tree.gone) {
        collect(t, port);
        if (!port->leave) {
            tcal_tree_remove(&port->tree);
        }
    }
    if (port->node != TCAL_NONE) {
        t->node[port->node].port = TCAL_NONE;
    }
    struct port **at = &t->ports;
    while (*at != port) {
        at = &(*at)->next;
    }
    *at = port->next;
    t->port_of[number] = NULL;
    t->totals.messages += port->tree.messages;
    t->totals.sends += port->tree.sends;
    t->totals.dumps += port->tree.dumps;
    free_port(port);
    return true;
}

static void describe(const struct port *port, struct tcal_port_info *info) {
    *info = (struct tcal_port_info){.port = port->number,
                                    .node = port->node,
                                    .name = port->name,
                                    .netns_inode = port->inode,
                                    .gone = port->tree.gone};
    memcpy(info->mac, port->mac, sizeof info->mac);
}

void tcal_ports(const struct tcal *t,
                void (*each)(void *context, const struct tcal_port_info *info), void *context) {
    for (const struct port *port = t->ports; port; port = port->next) {
        struct tcal_port_info info;
        describe(port, &info);
        each(context, &info);
    }
}

bool tcal_port(const struct tcal *t, uint32_t number, struct tcal_port_info *info) {
    const struct port *port = port_of(t, number);
    if (port) {
        describe(port, info);
    }
    return port;
}

/* -- making changes ---------------------------------------------------------------------------- */

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

/* This port has to look at every node again. */
static bool touch_port(struct tcal *t, struct port *port) {
    port->touched = true;
    for (uint32_t node = 0; node < t->nodes; node++) {
        if (t->node[node].known && !tcal_tree_mark(&port->tree, node)) {
            return false;
        }
    }
    return true;
}

static bool touch_path(struct tcal *t, const struct path *path) {
    struct port *port = port_of(t, t->node[path->source].port);
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
    struct port *port = port_of(t, number);
    struct port *old = port_of(t, t->node[node].port);
    t->node[node].port = port ? number : TCAL_NONE;
    if (old && old != port) {
        old->node = TCAL_NONE;
        if (!touch_port(t, old)) {
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
    return touch_port(t, port);
}

static bool change_binding(struct tcal *t, const struct tcal_change *c) {
    bool bind = c->kind == TCAL_CHANGE_BIND;
    const struct port *port = bind ? port_of(t, c->port) : NULL;
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
    struct path *path = take_path(t, c->node, c->dest);
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

static bool change(struct tcal *t, const struct tcal_change *c) {
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
    struct port *port = port_of(t, undo->port);
    if (port) {
        port->touched = true;
    }
}

static void undo_all(struct tcal *t) {
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

/* -- sending them ------------------------------------------------------------------------------ */

static void wish(struct tcal *t, struct port *port, struct tcal_peer *peer) {
    struct tcal_wish w = {0};
    const struct path *path = find_path(t, port->tree.self, peer->node);
    if (path) {
        w.path = path->now;
    }
    w.path.up = w.path.up && !t->closed && port->node != TCAL_NONE;
    if (t->node[peer->node].known) {
        memcpy(w.addr, t->node[peer->node].addr, sizeof w.addr);
    }
    tcal_tree_wish(&port->tree, peer, &w);
}

/* The port is another node's now: nothing of the one before stays. */
static bool change_owner(struct tcal *t, struct port *port) {
    struct tcal_tree *tree = &port->tree;
    bool fresh = tree->self == TCAL_NONE;
    if (!fresh) {
        collect(t, port);
    }
    tree->self = port->node;
    return fresh || (tcal_tree_rebuild(tree) && touch_port(t, port));
}

/* Sends the difference of one port: 0 or the first error. */
static int send_port(struct tcal *t, struct port *port) {
    struct tcal_tree *tree = &port->tree;
    if (tree->gone) {
        return 0;
    }
    if (tree->lost && (!tcal_tree_rebuild(tree) || !touch_port(t, port))) {
        return tree->failure ? tree->failure : -ENOMEM;
    }
    if (port->node != TCAL_NONE && tree->self != port->node && !change_owner(t, port)) {
        return tree->failure ? tree->failure : -ENOMEM;
    }
    for (uint32_t i = 0; i < tree->dirties; i++) {
        wish(t, port, &tree->peer[tree->dirty[i]]);
    }
    return tcal_tree_settle(tree);
}

/* An interface that is not there any more takes no part: what leaves by it is nothing. */
static int send_living(struct tcal *t, struct port *port) {
    int error = send_port(t, port);
    if (error && !tcal_interface_there(&port->tree.channel, port->tree.ifindex)) {
        port->tree.gone = true;
        return 0;
    }
    return error;
}

static void clear_marks(struct tcal *t) {
    for (struct port *port = t->ports; port; port = port->next) {
        port->touched = false;
        for (uint32_t i = 0; i < port->tree.dirties; i++) {
            port->tree.peer[port->tree.dirty[i]].dirty = false;
        }
        port->tree.dirties = 0;
    }
}

static void say_failure(const struct port *port, int code, struct tcal_error *error) {
    static const char *const what[] = {[TCAL_STEP_BASE] = "the base of the tree",
                                       [TCAL_STEP_CLASS] = "the rate",
                                       [TCAL_STEP_SPLIT] = "the splitter",
                                       [TCAL_STEP_NETEM] = "delay and loss",
                                       [TCAL_STEP_FIFO] = "the queue",
                                       [TCAL_STEP_HOLE] = "the way down",
                                       [TCAL_STEP_FILTER] = "the filter",
                                       [TCAL_STEP_UNFILTER] = "the old filter",
                                       [TCAL_STEP_TABLE] = "a hash table",
                                       [TCAL_STEP_LINK] = "the link to a hash table"};
    const struct tcal_tree *tree = &port->tree;
    const struct tcal_step *step = &tree->failed;
    if (step->peer < tree->peers) {
        tcal_fail(error, code, tree->text, "port %u, path %u %u: set %s", port->number, tree->self,
                  tree->peer[step->peer].node, what[step->kind]);
    } else {
        tcal_fail(error, code, tree->text, "port %u: set %s", port->number, what[step->kind]);
    }
}

/* Puts the state before back. Adds what is in force to the error. */
static void restore(struct tcal *t, struct tcal_error *error) {
    char lost[120] = "";
    undo_all(t);
    for (struct port *port = t->ports; port; port = port->next) {
        if (!port->touched || send_living(t, port) == 0) {
            continue;
        }
        /* Once more from nothing; if that fails too, the port is given up, loudly. */
        port->tree.lost = true;
        if (send_living(t, port)) {
            tcal_tree_rebuild(&port->tree);
            port->tree.lost = true; /* the next batch tries again */
            size_t used = strlen(lost);
            snprintf(lost + used, sizeof lost - used, " %u", port->number);
        }
    }
    size_t used = strlen(error->text);
    snprintf(error->text + used, sizeof error->text - used, "%s%s",
             *lost ? "; the state before is in force but for all paths of ports that could not be "
                     "restored:"
                   : "; nothing of the batch is in force",
             lost);
}

/* Counters of qdiscs that are about to go. */
static void read_before(struct tcal *t, const struct tcal_change *change, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (change[i].kind == TCAL_CHANGE_PATH && change[i].fields & TCAL_UP &&
            !change[i].path.up) {
            struct port *port = port_of(t, t->node[change[i].node].port);
            if (port && !port->touched) {
                port->touched = true;
                collect(t, port);
            }
        }
    }
    clear_marks(t);
}

bool tcal_apply(struct tcal *t, const struct tcal_change *changes, size_t count,
                struct tcal_error *error) {
    int code = 0;
    t->undos = 0;
    read_before(t, changes, count);
    for (size_t i = 0; i < count && code == 0; i++) {
        code = change(t, &changes[i]) ? 0 : -ENOMEM;
    }
    if (code) {
        tcal_fail(error, code, NULL, "prepare the batch");
    }
    for (struct port *port = t->ports; port && code == 0; port = port->next) {
        code = port->touched ? send_living(t, port) : 0;
        if (code) {
            say_failure(port, code, error);
        }
    }
    if (code) {
        restore(t, error);
    }
    clear_marks(t);
    t->totals.applied += code == 0;
    t->totals.failed += code != 0;
    return code == 0;
}

static bool attach_tree(struct tcal *t, struct port *port, const struct tcal_target *target,
                        struct tcal_error *error) {
    struct tcal_tree *tree = &port->tree;
    struct tcal_interface interface;
    if (!tcal_socket_open(target->netns, &tree->channel, &port->inode, error) ||
        !tcal_interface_find(&tree->channel, target->name, &interface, error)) {
        return false;
    }
    if (*interface.root && !interface.ours) {
        return tcal_fail(error, 0, NULL,
                         "interface %s in %s has a queueing discipline already (%s); remove it: tc "
                         "qdisc del dev %s root",
                         target->name, target->netns, interface.root, target->name);
    }
    tree->ifindex = interface.ifindex;
    tree->mtu = interface.mtu;
    tree->segments = interface.segments;
    tree->options = t->options;
    tree->prefixes = target->prefixes;
    tree->self = TCAL_NONE;
    tree->sequence = 16;
    memcpy(tree->prefix, target->prefix, sizeof tree->prefix);
    memcpy(port->mac, interface.mac, sizeof port->mac);
    if (interface.ours) {
        tcal_tree_remove(tree);
    }
    if (!tcal_tree_build(tree)) {
        tcal_fail(error, tree->failure, tree->text, "shape interface %s in %s", target->name,
                  target->netns);
        tcal_tree_remove(tree);
        return false;
    }
    return true;
}

bool tcal_attach(struct tcal *t, uint32_t number, const struct tcal_target *target,
                 struct tcal_error *error) {
    struct port *port = calloc(1, sizeof *port);
    if (!port) {
        return tcal_fail(error, -ENOMEM, NULL, "attach port %u", number);
    }
    port->number = number;
    port->node = TCAL_NONE;
    port->leave = target->leave;
    snprintf(port->name, sizeof port->name, "%s", target->name);
    if (!attach_tree(t, port, target, error)) {
        free_port(port);
        return false;
    }
    struct port **at = &t->ports;
    while (*at && (*at)->number < number) {
        at = &(*at)->next;
    }
    port->next = *at;
    *at = port;
    t->port_of[number] = port;
    int code = touch_port(t, port) ? send_living(t, port) : -ENOMEM;
    clear_marks(t);
    if (code) {
        say_failure(port, code, error);
        tcal_detach(t, number, &(struct tcal_error){0});
    }
    return code == 0;
}

bool tcal_node_of(const struct tcal *t, uint32_t node, struct tcal_addr addr[2]) {
    memcpy(addr, t->node[node].addr, sizeof t->node[node].addr);
    return t->node[node].known;
}

void tcal_declared(const struct tcal *t,
                   void (*each)(void *context, uint32_t source, uint32_t dest), void *context) {
    for (uint32_t i = 0; i < t->paths; i++) {
        if (t->path[i].declared) {
            each(context, t->path[i].source, t->path[i].dest);
        }
    }
}

bool tcal_close(struct tcal *t, bool closed, struct tcal_error *error) {
    bool good = true;
    t->closed = closed;
    for (struct port *port = t->ports; port; port = port->next) {
        if (!port->tree.gone && closed) {
            collect(t, port);
        }
        int code = touch_port(t, port) ? send_living(t, port) : -ENOMEM;
        if (code && good) {
            say_failure(port, code, error);
        }
        good = good && code == 0;
    }
    clear_marks(t);
    return good;
}

bool tcal_read(struct tcal *t, enum tcal_reading reading,
               void (*each)(void *context, const struct tcal_usage *usage), void *context,
               struct tcal_error *error) {
    for (struct port *port = t->ports; port; port = port->next) {
        int code = port->tree.gone ? 0 : collect(t, port);
        if (code && tcal_interface_there(&port->tree.channel, port->tree.ifindex)) {
            return tcal_fail(error, code, NULL, "port %u: read the counters", port->number);
        }
    }
    return tell(t, reading, each, context) ||
           tcal_fail(error, -ENOMEM, NULL, "put the counters in order");
}

bool tcal_verify(struct tcal *t, uint32_t number, uint64_t *objects, struct tcal_error *error) {
    struct port *port = port_of(t, number);
    char why[240];
    if (!port) {
        return tcal_fail(error, 0, NULL, "port %u is not attached", number);
    }
    return tcal_tree_verify(&port->tree, objects, why, sizeof why) ||
           tcal_fail(error, 0, NULL, "port %u: %s", number, why);
}

void tcal_totals(const struct tcal *t, struct tcal_totals *totals) {
    *totals = t->totals;
    for (const struct port *port = t->ports; port; port = port->next) {
        totals->messages += port->tree.messages;
        totals->sends += port->tree.sends;
        totals->dumps += port->tree.dumps;
    }
}
