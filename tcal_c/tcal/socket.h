/* The real kernel: a netlink socket in a network namespace, and the interface it is for. */
#ifndef TCAL_SOCKET_H
#define TCAL_SOCKET_H

#include "error.h"
#include "common/netlink/netlink.h"

struct tcal_interface {
    uint32_t ifindex;
    uint32_t peer; /* the other end's, of a veth */
    uint32_t mtu;
    uint32_t segments; /* that stacks may put into one packet */
    uint8_t mac[6];
    char root[16]; /* kind of a root qdisc that somebody has set; empty: the default one */
    bool ours;     /* that root is a tree of ours */
};

/* Opens a socket of the namespace at this path; its inode tells namespaces apart. */
bool tcal_socket_open(const char *netns, struct nl_channel *channel, uint64_t *inode,
                      struct tcal_error *error);

/* Looks an interface up by name. */
bool tcal_interface_find(const struct nl_channel *channel, const char *name,
                         struct tcal_interface *interface, struct tcal_error *error);

/* Whether there is still an interface of this number. */
bool tcal_interface_there(const struct nl_channel *channel, uint32_t ifindex);

#endif
