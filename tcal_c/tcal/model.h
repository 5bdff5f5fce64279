/* What is in force, as the parts of libtcal share it: nodes, ports, paths. */
#ifndef TCAL_MODEL_H
#define TCAL_MODEL_H

#include "tcal/tree/tree.h"

struct node {
    bool known;
    struct addr addr[TCAL_FAMILIES];
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
    struct undo *undo; /* change.c */
    size_t undos;
    size_t undo_room;
    struct tcal_totals totals;
};

/* NULL when the port is not attached. */
struct port *tcal_find_port(const struct tcal *t, uint32_t number);
void tcal_free_port(struct port *port);

/* paths.c: NULL when the pair has no declared path. */
const struct path *tcal_find_path(const struct tcal *t, uint32_t source, uint32_t dest);
/* The pair's entry, made when there is none; NULL: out of memory. */
struct path *tcal_take_path(struct tcal *t, uint32_t source, uint32_t dest);

#endif
