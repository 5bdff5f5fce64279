/* A TAP device: the cheapest way for whole super-packets in and out
 * (Documentation/networking/tuntap).
 *
 * It lives in the namespace of the thread that made it and disappears with its descriptor.
 */
#include "port_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

static int set_offloads(int fd) {
    unsigned long tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    /* UDP segmentation came with Linux 6.2; older kernels refuse the whole set. */
    if (ioctl(fd, TUNSETOFFLOAD, tcp | TUN_F_USO4 | TUN_F_USO6) == 0) {
        return 0;
    }
    return ioctl(fd, TUNSETOFFLOAD, tcp) == 0 ? 0 : -errno;
}

static int configure(const struct port_request *request, struct nl_why *why) {
    static const uint8_t mac[6] = PORT_MAC_BYTES;
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC,
                             .ifi_flags = request->frames ? 0 : IFF_NOARP,
                             .ifi_change = IFF_NOARP};
    struct nl_buffer q = {0};
    struct nl_channel nl;
    int error = nl_open(&nl);
    if (error) {
        return error;
    }
    nl_begin(&q, RTM_NEWLINK, 0, 1, &info, sizeof info);
    nl_put_text(&q, IFLA_IFNAME, request->name);
    nl_put(&q, IFLA_ADDRESS, request->has_mac ? request->mac : mac, sizeof mac);
    nl_put_u32(&q, IFLA_MTU, request->mtu);
    nl_put_u32(&q, IFLA_TXQLEN, request->queue ? request->queue : PORT_QUEUE_PACKETS);
    error = nl_ask(&nl, &q, NULL, NULL, why);
    nl_close(&nl);
    return error;
}

bool tap_open(struct port *port, const struct port_request *request, struct port_error *error) {
    struct ifreq r = {.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_TUN_EXCL)};
    struct nl_why why = {0};
    int code;
    memcpy(r.ifr_name, request->name, sizeof r.ifr_name);
    port->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (port->fd < 0) {
        port_fail(error, -errno, NULL, "open /dev/net/tun");
        return false;
    }
    if (ioctl(port->fd, TUNSETIFF, &r)) {
        port_fail(error, -errno, NULL, "make TAP %s in %s", request->name, request->netns);
    } else if ((code = set_offloads(port->fd)) != 0) {
        port_fail(error, code, NULL, "set the offloads of TAP %s", request->name);
    } else if ((code = configure(request, &why)) != 0) {
        port_fail(error, code, why.text, "set address and mtu of TAP %s", request->name);
    } else {
        port->index = (int)if_nametoindex(request->name);
        return true;
    }
    close(port->fd);
    port->fd = -1;
    return false;
}

/* -- what it had no room for ------------------------------------------------------------------- */

static void hear_dropped(void *context, uint16_t type, const char *body, size_t length) {
    uint64_t *dropped = context;
    struct if_stats_msg message;
    struct rtnl_link_stats64 stats = {0};
    if (type == RTM_NEWSTATS && nl_body(&message, sizeof message, &body, &length)) {
        struct nl_attr all = nl_find(body, length, IFLA_STATS_LINK_64);
        nl_get(&all, &stats, sizeof stats);
        *dropped = stats.tx_dropped;
    }
}

/* A host has thousands of devices: this one alone is asked for, as long as it is attached. */
static void ask_dropped(const struct port *port, uint64_t *dropped) {
    struct if_stats_msg of = {.ifindex = (uint32_t)port->index,
                              .filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64)};
    struct nl_buffer q = {0};
    struct nl_why why;
    nl_begin(&q, RTM_GETSTATS, 0, 1, &of, sizeof of);
    nl_ask(&port->redirect.nl, &q, hear_dropped, dropped, &why);
}

struct reading {
    const char *name;
    uint64_t dropped;
};

/* Not by netlink, which would wait for the kernel's lock while other devices are made or removed,
 * and commits would wait for this thread. An instance has few devices. proc(5), /proc/net/dev. */
static bool read_dropped(void *context, struct port_error *error) {
    struct reading *r = context;
    char line[512];
    char name[64];
    uint64_t dropped;
    FILE *file = fopen("/proc/thread-self/net/dev", "re");
    (void)error;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, " %63[^:]:%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, name,
                   &dropped) == 2 &&
            strcmp(name, r->name) == 0) {
            r->dropped = dropped;
        }
    }
    if (file) {
        fclose(file);
    }
    return true;
}

uint64_t tap_lost(struct port *port) {
    uint64_t dropped = 0;
    if (port->redirect.nl.close) {
        ask_dropped(port, &dropped);
    } else {
        char text[160];
        struct port_error error = {text, sizeof text};
        struct ifreq r = {0};
        struct reading reading = {r.ifr_name, 0};
        int netns = ioctl(port->fd, TUNGETIFF, &r) ? -1 : ioctl(port->fd, SIOCGSKNS);
        if (netns >= 0) {
            port_visit(netns, r.ifr_name, read_dropped, &reading, &error);
            close(netns);
        }
        dropped = reading.dropped;
    }
    if (dropped > port->lost) { /* of a device that has gone there is nothing more to learn */
        port->lost = dropped;
    }
    return port->lost;
}

/* Closing the descriptor then leaves the device where it is. A refusal only costs time. */
void tap_leave(struct port *port) {
    ioctl(port->fd, TUNSETPERSIST, 1UL);
}

int tap_read(struct port *port, uint8_t *data, size_t room, struct port_frame *frame) {
    ssize_t got = read(port->fd, data, room);
    if (got < 0) {
        /* EIO: not up yet. EBADFD: the device has gone with its namespace. */
        return errno == EBADFD ? -EBADFD : 0;
    }
    if ((size_t)got < VNET_HEADER_BYTES) {
        return 0;
    }
    frame->bytes = (size_t)got - VNET_HEADER_BYTES;
    return 1;
}

int tap_write(struct port *port, const struct iovec *io, int count) {
    return writev(port->fd, io, count) < 0 ? -errno : 0;
}
