/* Lists of changes as one: made here first, then sent as differences, port by port.
 *
 * When one is refused the changes are taken back, last first, and the difference is sent again: the
 * tree knows what the kernel has accepted.
 */
#include "apply.h"

#include "counters.h"
#include "error.h"
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void wish(struct tcal *t, struct port *port, struct tcal_peer *peer) {
    struct tcal_wish w = {0};
    const struct path *path = tcal_find_path(t, port->tree.self, peer->node);
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
        tcal_collect(t, port);
    }
    tree->self = port->node;
    return fresh || (tcal_tree_rebuild(tree) && tcal_touch_port(t, port));
}

/* Sends the difference of one port: 0 or the first error. */
static int send_port(struct tcal *t, struct port *port) {
    struct tcal_tree *tree = &port->tree;
    if (tree->gone) {
        return 0;
    }
    if (tree->lost && (!tcal_tree_rebuild(tree) || !tcal_touch_port(t, port))) {
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

int tcal_send_living(struct tcal *t, struct port *port) {
    int error = send_port(t, port);
    if (error && !tcal_interface_there(&port->tree.channel, port->tree.ifindex)) {
        port->tree.gone = true;
        return 0;
    }
    return error;
}

void tcal_say_failure(const struct port *port, int code, struct tcal_error *error) {
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
    tcal_undo_all(t);
    for (struct port *port = t->ports; port; port = port->next) {
        if (!port->touched || tcal_send_living(t, port) == 0) {
            continue;
        }
        /* Once more from nothing; if that fails too, the port is given up, loudly. */
        port->tree.lost = true;
        if (tcal_send_living(t, port)) {
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
            struct port *port = tcal_find_port(t, t->node[change[i].node].port);
            if (port && !port->touched) {
                port->touched = true;
                tcal_collect(t, port);
            }
        }
    }
    tcal_clear_marks(t);
}

/* 0 or -errno, and then the reason. */
static int make(struct tcal *t, const struct tcal_change *c, struct tcal_error *error) {
    if (!tcal_change(t, c)) {
        tcal_fail(error, -ENOMEM, NULL, "prepare the batch");
        return -ENOMEM;
    }
    const struct path *path =
        c->kind == TCAL_CHANGE_PATH ? tcal_find_path(t, c->node, c->dest) : NULL;
    const char *unfit = path ? tcal_unfit(&path->now) : NULL;
    if (unfit) {
        tcal_fail(error, 0, NULL, "path %u %u: %s", c->node, c->dest, unfit);
    }
    return unfit ? -ERANGE : 0;
}

bool tcal_apply(struct tcal *t, const struct tcal_change *changes, size_t count,
                struct tcal_error *error) {
    int code = 0;
    t->undos = 0;
    read_before(t, changes, count);
    for (size_t i = 0; i < count && code == 0; i++) {
        code = make(t, &changes[i], error);
    }
    for (struct port *port = t->ports; port && code == 0; port = port->next) {
        code = port->touched ? tcal_send_living(t, port) : 0;
        if (code) {
            tcal_say_failure(port, code, error);
        }
    }
    if (code) {
        restore(t, error);
    }
    tcal_clear_marks(t);
    t->totals.applied += code == 0;
    t->totals.failed += code != 0;
    return code == 0;
}

bool tcal_close(struct tcal *t, bool closed, struct tcal_error *error) {
    bool good = true;
    t->closed = closed;
    for (struct port *port = t->ports; port; port = port->next) {
        if (!port->tree.gone && closed) {
            tcal_collect(t, port);
        }
        int code = tcal_touch_port(t, port) ? tcal_send_living(t, port) : -ENOMEM;
        if (code && good) {
            tcal_say_failure(port, code, error);
        }
        good = good && code == 0;
    }
    tcal_clear_marks(t);
    return good;
}
