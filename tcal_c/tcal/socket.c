/* Sockets in other network namespaces, and what is to be known of an interface. */
#include "socket.h"

#include "common/netlink/netns.h"
#include "tcal/tree/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define SEGMENTS_DEFAULT 65535u /* GSO_MAX_SEGS */

bool tcal_socket_open(const char *netns, struct nl_channel *channel, uint64_t *inode,
                      struct tcal_error *error) {
    int target = open(netns, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (target < 0 || fstat(target, &status)) {
        int code = -errno;
        if (target >= 0) {
            close(target);
        }
        return tcal_fail(error, code, NULL, "open network namespace %s", netns);
    }
    *inode = status.st_ino;
    int home = netns_enter(target);
    int code = home < 0 ? home : nl_open(channel);
    if (home >= 0) {
        netns_return(home);
    }
    close(target);
    return code == 0 ||
           tcal_fail(error, code, NULL, "open a netlink socket in network namespace %s", netns);
}

static void hear_link(void *context, uint16_t type, const char *body, size_t length) {
    struct tcal_interface *interface = context;
    struct ifinfomsg info;
    if (type != RTM_NEWLINK || !nl_body(&info, sizeof info, &body, &length)) {
        return;
    }
    interface->ifindex = (uint32_t)info.ifi_index;
    struct nl_attr attr = nl_find(body, length, IFLA_MTU);
    interface->mtu = nl_get_u32(&attr);
    attr = nl_find(body, length, IFLA_LINK);
    interface->peer = nl_get_u32(&attr);
    attr = nl_find(body, length, IFLA_GSO_MAX_SEGS);
    interface->segments = nl_get_u32(&attr);
    attr = nl_find(body, length, IFLA_ADDRESS);
    nl_get(&attr, interface->mac, sizeof interface->mac);
}

/* The root qdisc of the interface, unless it is the kernel's own choice (handle 0). */
static void hear_root(void *context, uint16_t type, const char *body, size_t length) {
    struct tcal_interface *interface = context;
    struct tcmsg tc;
    if (type != RTM_NEWQDISC || !nl_body(&tc, sizeof tc, &body, &length) ||
        (uint32_t)tc.tcm_ifindex != interface->ifindex || tc.tcm_parent != TC_H_ROOT ||
        tc.tcm_handle == 0) {
        return;
    }
    struct nl_attr kind = nl_find(body, length, TCA_KIND);
    size_t size = kind.length < sizeof interface->root ? kind.length : sizeof interface->root - 1;
    memcpy(interface->root, kind.bytes ? kind.bytes : "?", kind.bytes ? size : 2);
    struct nl_attr options = nl_find(body, length, TCA_OPTIONS);
    struct nl_attr rate = nl_find(options.bytes, options.length, TCA_TBF_RATE64);
    interface->ours = strcmp(interface->root, "tbf") == 0 && tc.tcm_handle == TCAL_ROOT &&
                      nl_get_u64(&rate) == TCAL_FASTEST_BYTES_PS;
    if (interface->ours) {
        /* The one who made it has lowered this; what it was before is not known any more. */
        interface->segments = SEGMENTS_DEFAULT;
    }
}

static int find_link(const struct nl_channel *channel, const char *name, uint32_t ifindex,
                     struct tcal_interface *interface, struct nl_why *why) {
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
    struct nl_buffer b = {0};
    *interface = (struct tcal_interface){0};
    nl_begin(&b, RTM_GETLINK, 0, 1, &info, sizeof info);
    if (name) {
        nl_put_text(&b, IFLA_IFNAME, name);
    }
    int error = nl_ask(channel, &b, hear_link, interface, why);
    return error || interface->ifindex ? error : -ENODEV;
}

bool tcal_interface_there(const struct nl_channel *channel, uint32_t ifindex) {
    struct tcal_interface interface;
    struct nl_why why;
    return find_link(channel, NULL, ifindex, &interface, &why) != -ENODEV;
}

bool tcal_interface_find(const struct nl_channel *channel, const char *name,
                         struct tcal_interface *interface, struct tcal_error *error) {
    struct nl_why why;
    int code = find_link(channel, name, 0, interface, &why);
    if (code) {
        return tcal_fail(error, code, why.text, "find interface %s", name);
    }
    struct tcmsg tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = (int)interface->ifindex};
    struct nl_buffer b = {0};
    nl_begin(&b, RTM_GETQDISC, NLM_F_DUMP, 1, &tc, sizeof tc);
    code = nl_ask(channel, &b, hear_root, interface, &why);
    return code == 0 ||
           tcal_fail(error, code, why.text, "list the queueing disciplines of %s", name);
}
