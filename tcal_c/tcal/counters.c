/* What every path has counted, and who is told of it. */
#include "counters.h"

#include "error.h"
#include "socket.h"

#include <errno.h>
#include <stdlib.h>

/* netem counts the drops of the queue behind it, too. Both are not always asked, and never at the
 * same moment: what the queue is ahead is kept and taken off what netem says later. */
static uint64_t other_drops(struct tcal_peer *peer) {
    uint64_t queue = peer->queue_ahead + peer->count.drop_queue;
    uint64_t netem = peer->count.drop_netem;
    peer->queue_ahead = queue > netem ? queue - netem : 0;
    return netem > queue ? netem - queue : 0;
}

static void add_counts(struct path *path, struct tcal_peer *peer) {
    const struct tcal_count *c = &peer->count;
    struct tcal_usage *u = &path->usage;
    u->sent_packets += c->sent_packets;
    u->sent_bytes += c->sent_bytes;
    u->drop_queue += c->drop_queue;
    u->drop_loss += other_drops(peer);
    *(path->declared ? &u->drop_down : &u->drop_route) += c->drop_hole;
    u->backlog_bytes = peer->backlog_bytes;
    path->moved = path->stirred = path->restirred = true;
    peer->count = (struct tcal_count){0};
    peer->stirred = false;
}

int tcal_collect(struct tcal *t, struct port *port) {
    struct tcal_tree *tree = &port->tree;
    int error = tree->self == TCAL_NONE ? 0 : tcal_tree_read(tree);
    for (uint32_t i = 0; i < tree->slots && tree->self != TCAL_NONE; i++) {
        struct tcal_peer *peer = &tree->peer[tree->slot[i]];
        struct path *path = peer->stirred ? tcal_take_path(t, tree->self, peer->node) : NULL;
        if (path) {
            add_counts(path, peer);
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

bool tcal_read(struct tcal *t, enum tcal_reading reading,
               void (*each)(void *context, const struct tcal_usage *usage), void *context,
               struct tcal_error *error) {
    for (struct port *port = t->ports; port; port = port->next) {
        int code = port->tree.gone ? 0 : tcal_collect(t, port);
        if (code && tcal_interface_there(&port->tree.channel, port->tree.ifindex)) {
            return tcal_fail(error, code, NULL, "port %u: read the counters", port->number);
        }
    }
    return tell(t, reading, each, context) ||
           tcal_fail(error, -ENOMEM, NULL, "put the counters in order");
}
