/* Ports: an interface gets its tree, and its default queueing discipline back. */
#include "apply.h"
#include "counters.h"
#include "error.h"
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tcal_detach(struct tcal *t, uint32_t number, struct tcal_error *error) {
    struct port *port = tcal_find_port(t, number);
    if (!port) {
        return tcal_fail(error, 0, NULL, "port %u is not attached", number);
    }
    int code = 0;
    if (!port->tree.gone) {
        tcal_collect(t, port);
        code = port->leave ? 0 : tcal_tree_remove(&port->tree);
    }
    if (code && tcal_interface_there(&port->tree.channel, port->tree.ifindex)) {
        tcal_fail(error, code, port->tree.text, "restore %s", port->name);
    } else {
        code = 0;
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
    tcal_free_port(port);
    return code == 0;
}

/* The port at the same interface; NULL when there is none. */
static const struct port *attached_as(const struct tcal *t, const struct port *at) {
    const struct port *port = t->ports;
    while (port && (port->tree.gone || port->inode != at->inode ||
                    port->tree.ifindex != at->tree.ifindex)) {
        port = port->next;
    }
    return port;
}

static bool attach_tree(struct tcal *t, struct port *port, const struct tcal_target *target,
                        struct tcal_error *error) {
    struct tcal_tree *tree = &port->tree;
    struct tcal_interface interface;
    if (!tcal_socket_open(target->netns, &tree->channel, &port->inode, error) ||
        !tcal_interface_find(&tree->channel, target->name, &interface, error)) {
        return false;
    }
    tree->ifindex = interface.ifindex;
    const struct port *other = attached_as(t, port);
    if (other) {
        return tcal_fail(error, 0, NULL, "interface %s in %s is attached as port %u", target->name,
                         target->netns, other->number);
    }
    if (*interface.root && !interface.ours) {
        return tcal_fail(error, 0, NULL,
                         "interface %s in %s has a queueing discipline already (%s); remove it: tc "
                         "qdisc del dev %s root",
                         target->name, target->netns, interface.root, target->name);
    }
    tree->mtu = interface.mtu;
    tree->segments = interface.segments;
    tree->options = t->options;
    tree->totals = &t->totals;
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
        tcal_free_port(port);
        return false;
    }
    struct port **at = &t->ports;
    while (*at && (*at)->number < number) {
        at = &(*at)->next;
    }
    port->next = *at;
    *at = port;
    t->port_of[number] = port;
    int code = tcal_touch_port(t, port) ? tcal_send_living(t, port) : -ENOMEM;
    tcal_clear_marks(t);
    if (code) {
        tcal_say_failure(port, code, error);
        tcal_detach(t, number, &(struct tcal_error){0});
    }
    return code == 0;
}
