/* Sockets in other network namespaces, and what is to be known of an interface. */
#include "socket.h"

#include "objects.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define SEND_ROOM (1 << 20)
#define SEGMENTS_DEFAULT 65535u /* GSO_MAX_SEGS */
#define RECEIVE_ROOM (4 << 20)

static ssize_t socket_send(void *context, const void *bytes, size_t count) {
    ssize_t sent = send((int)(intptr_t)context, bytes, count, 0);
    return sent < 0 ? -errno : sent;
}

static ssize_t socket_receive(void *context, void *bytes, size_t room) {
    ssize_t got = recv((int)(intptr_t)context, bytes, room, 0);
    return got < 0 ? -errno : got;
}

static void socket_close(void *context) {
    close((int)(intptr_t)context);
}

/* More than the default where that is permitted; without, sends are still within it. */
static void widen(int fd, int forced, int option, int bytes) {
    if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes)) {
        setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes);
    }
}

static int open_here(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) {
        return -errno;
    }
    int on = 1;
    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    widen(fd, SO_SNDBUFFORCE, SO_SNDBUF, SEND_ROOM);
    widen(fd, SO_RCVBUFFORCE, SO_RCVBUF, RECEIVE_ROOM);
    return fd;
}

/* Into the namespace, a socket, and back. A thread that cannot come back must not go on. */
static int open_there(int netns) {
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0) {
        return -errno;
    }
    int fd = setns(netns, CLONE_NEWNET) ? -errno : open_here();
    if (setns(home, CLONE_NEWNET)) {
        abort();
    }
    close(home);
    return fd;
}

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
    int fd = open_there(target);
    close(target);
    if (fd < 0) {
        return tcal_fail(error, fd, NULL, "open a netlink socket in network namespace %s", netns);
    }
    *channel = (struct nl_channel){.context = (void *)(intptr_t)fd,
                                   .send = socket_send,
                                   .receive = socket_receive,
                                   .close = socket_close};
    return true;
}

/* -- interfaces -------------------------------------------------------------------------------- */

struct finding {
    struct tcal_interface *interface;
    bool found;
    int error;
    char text[160];
};

static void hear_failed(void *context, uint32_t sequence, int error, const char *text) {
    struct finding *f = context;
    (void)sequence;
    f->error = error;
    snprintf(f->text, sizeof f->text, "%s", text);
}

static void hear_link(void *context, uint16_t type, const char *body, size_t length) {
    struct finding *f = context;
    struct ifinfomsg info;
    if (type != RTM_NEWLINK || length < sizeof info) {
        return;
    }
    memcpy(&info, body, sizeof info);
    body += sizeof info;
    length -= sizeof info;
    f->found = true;
    f->interface->ifindex = (uint32_t)info.ifi_index;
    struct nl_attr attr = nl_find(body, length, IFLA_MTU);
    f->interface->mtu = nl_get_u32(&attr);
    attr = nl_find(body, length, IFLA_LINK);
    f->interface->peer = nl_get_u32(&attr);
    attr = nl_find(body, length, IFLA_GSO_MAX_SEGS);
    f->interface->segments = nl_get_u32(&attr);
    attr = nl_find(body, length, IFLA_ADDRESS);
    nl_get(&attr, f->interface->mac, sizeof f->interface->mac);
}

/* The root qdisc of the interface, unless it is the kernel's own choice (handle 0). */
static void hear_root(void *context, uint16_t type, const char *body, size_t length) {
    struct finding *f = context;
    struct tcmsg tc;
    if (type != RTM_NEWQDISC || length < sizeof tc) {
        return;
    }
    memcpy(&tc, body, sizeof tc);
    if ((uint32_t)tc.tcm_ifindex != f->interface->ifindex || tc.tcm_parent != TC_H_ROOT ||
        tc.tcm_handle == 0) {
        return;
    }
    body += sizeof tc;
    length -= sizeof tc;
    struct nl_attr kind = nl_find(body, length, TCA_KIND);
    size_t size =
        kind.length < sizeof f->interface->root ? kind.length : sizeof f->interface->root - 1;
    memcpy(f->interface->root, kind.bytes ? kind.bytes : "?", kind.bytes ? size : 2);
    struct nl_attr options = nl_find(body, length, TCA_OPTIONS);
    struct nl_attr rate = nl_find(options.bytes, options.length, TCA_TBF_RATE64);
    f->interface->ours = strcmp(f->interface->root, "tbf") == 0 && tc.tcm_handle == TCAL_ROOT &&
                         nl_get_u64(&rate) == TCAL_FASTEST_BYTES_PS;
    if (f->interface->ours) {
        /* The one who made it has lowered this; what it was before is not known any more. */
        f->interface->segments = SEGMENTS_DEFAULT;
    }
}

static int find_link(const struct nl_channel *channel, const char *name, uint32_t ifindex,
                     struct finding *f) {
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
    struct nl_listener listener = {f, hear_failed, hear_link};
    struct nl_buffer b = {0};
    nl_begin(&b, RTM_GETLINK, 0, 1, &info, sizeof info);
    if (name) {
        nl_put_text(&b, IFLA_IFNAME, name);
    }
    nl_end(&b);
    int error = nl_talk(channel, &b, 1, &listener);
    nl_buffer_free(&b);
    return error ? error : f->error ? f->error : f->found ? 0 : -ENODEV;
}

bool tcal_interface_there(const struct nl_channel *channel, uint32_t ifindex) {
    struct tcal_interface interface = {0};
    struct finding f = {.interface = &interface};
    return find_link(channel, NULL, ifindex, &f) != -ENODEV;
}

bool tcal_interface_find(const struct nl_channel *channel, const char *name,
                         struct tcal_interface *interface, struct tcal_error *error) {
    *interface = (struct tcal_interface){0};
    struct finding f = {.interface = interface};
    int code = find_link(channel, name, 0, &f);
    if (code) {
        return tcal_fail(error, code, f.text, "find interface %s", name);
    }
    struct nl_listener listener = {&f, hear_failed, hear_root};
    struct nl_buffer b = {0};
    struct tcal_mail m = {&b, 2, interface->ifindex};
    tcal_mail_dump(&m, RTM_GETQDISC, 0);
    code = nl_dump(channel, &b, 2, &listener);
    nl_buffer_free(&b);
    code = code ? code : f.error;
    if (code) {
        return tcal_fail(error, code, f.text, "list the queueing disciplines of %s", name);
    }
    return true;
}
