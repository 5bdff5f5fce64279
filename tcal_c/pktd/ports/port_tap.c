/* A TAP device: the cheapest way for whole super-packets in and out
 * (Documentation/networking/tuntap).
 *
 * It lives in the namespace of the thread that made it and disappears with its descriptor.
 */
#include "port_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/if_tun.h>
#include <linux/rtnetlink.h>

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
    struct ifinfomsg info = {
        .ifi_family = AF_UNSPEC, .ifi_flags = IFF_NOARP, .ifi_change = IFF_NOARP};
    struct nl_buffer q = {0};
    struct nl_channel nl;
    int error = nl_open(&nl);
    if (error) {
        return error;
    }
    nl_begin(&q, RTM_NEWLINK, 0, 1, &info, sizeof info);
    nl_put_text(&q, IFLA_IFNAME, request->name);
    nl_put(&q, IFLA_ADDRESS, mac, sizeof mac);
    nl_put_u32(&q, IFLA_MTU, request->mtu);
    nl_put_u32(&q, IFLA_TXQLEN, PORT_QUEUE_PACKETS);
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
        return true;
    }
    close(port->fd);
    port->fd = -1;
    return false;
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
