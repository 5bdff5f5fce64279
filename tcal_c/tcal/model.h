/* What is in force, as the parts of libtcal share it: nodes, ports, paths. */
#ifndef TCAL_MODEL_H
#define TCAL_MODEL_H

#include "tree.h"

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

/* paths.c: NULL when the pair has no declared path. */
const struct path *tcal_find_path(const struct tcal *t, uint32_t source, uint32_t dest);
/* The pair's entry, made when there is none; NULL: out of memory. */
struct path *tcal_take_path(struct tcal *t, uint32_t source, uint32_t dest);

/* model.c: NULL when the port is not attached. */
struct port *tcal_find_port(const struct tcal *t, uint32_t number);

/* change.c: makes one change here, and marks what it concerns; false: out of memory. */
bool tcal_change(struct tcal *t, const struct tcal_change *c);
/* Takes back what was made since t->undos was 0. */
void tcal_undo_all(struct tcal *t);
/* This port has to look at every node again. */
bool tcal_touch_port(struct tcal *t, struct port *port);

/* apply.c: sends the difference of one port: 0 or the first error. An interface that is not there
 * any more takes no part: what leaves by it is nothing. */
int tcal_send_living(struct tcal *t, struct port *port);
void tcal_clear_marks(struct tcal *t);
void tcal_say_failure(const struct port *port, int code, struct tcal_error *error);

/* counters.c: brings a port's counters here: 0 or -errno. */
int tcal_collect(struct tcal *t, struct port *port);

#endif
