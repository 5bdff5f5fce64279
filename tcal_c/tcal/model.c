/* Nodes, ports and paths: what is in force. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

struct tcal *tcal_new(const struct tcal_options *options) {
    struct tcal *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    t->options = *options;
    t->buckets = 1024;
    t->node = calloc(NODE_LIMIT, sizeof *t->node);
    t->port_of = calloc(PORT_LIMIT, sizeof(struct port *));
    t->bucket = calloc(t->buckets, sizeof *t->bucket);
    if (!t->node || !t->port_of || !t->bucket) {
        tcal_free(t);
        return NULL;
    }
    for (uint32_t i = 0; i < NODE_LIMIT; i++) {
        t->node[i].port = TCAL_NONE;
    }
    return t;
}

void tcal_free_port(struct port *port) {
    tcal_tree_free(&port->tree);
    free(port);
}

void tcal_free(struct tcal *t) {
    if (!t) {
        return;
    }
    for (struct port *port = t->ports, *next; port; port = next) {
        next = port->next;
        tcal_free_port(port);
    }
    free(t->node);
    free(t->port_of);
    free(t->path);
    free(t->bucket);
    free(t->undo);
    free(t);
}

/* -- ports ------------------------------------------------------------------------------------- */

struct port *tcal_find_port(const struct tcal *t, uint32_t number) {
    return number < PORT_LIMIT ? t->port_of[number] : NULL;
}

bool tcal_is_attached(const struct tcal *t, uint32_t port) {
    return tcal_find_port(t, port);
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
    const struct port *port = tcal_find_port(t, number);
    if (port) {
        describe(port, info);
    }
    return port;
}

bool tcal_node_of(const struct tcal *t, uint32_t node, struct addr addr[2]) {
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

void tcal_totals(const struct tcal *t, struct tcal_totals *totals) {
    *totals = t->totals;
}
