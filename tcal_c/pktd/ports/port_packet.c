/* A veth pair with a packet socket on pktd's end, for where /dev/net/tun cannot be opened
 * (packet(7)).
 *
 * pktd's end lives in a network namespace that pktd makes for itself, where nobody else looks at it
 * and which disappears with pktd. It has a MAC address other than the one frames are sent to, and
 * no protocol is configured on it, so that the local stack leaves the frames alone.
 */
#include "common/clock.h"
#include "port_kinds.h"
#include "stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define RECEIVE_BYTES (64 << 20)

static void set_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        /* Only ever a precaution: what it should prevent is dropped anyway. */
        if (write(fd, text, strlen(text)) < 0) {
            errno = 0;
        }
        close(fd);
    }
}

/* The control thread moves to a namespace of its own the first time; where that is not allowed the
 * devices stand in the namespace it was started in. */
static void own_namespace(void) {
    static bool tried;
    if (!tried) {
        tried = true;
        if (unshare(CLONE_NEWNET) == 0) {
            set_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        }
    }
}

static int make_pair(const struct nl_channel *nl, const struct port *port,
                     const struct port_request *request, int netns, struct nl_why *why) {
    static const uint8_t mac[6] = PORT_MAC_BYTES;
    static const uint8_t peer_mac[6] = {0x02, 0x54, 0x53, 0x00, 0x00, 0x02};
    struct ifinfomsg ours = {.ifi_family = AF_UNSPEC};
    struct ifinfomsg theirs = {.ifi_family = AF_UNSPEC,
                               .ifi_flags = request->frames ? 0 : IFF_NOARP,
                               .ifi_change = IFF_NOARP};
    struct nl_buffer q = {0};
    nl_begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 1, &ours, sizeof ours);
    nl_put_text(&q, IFLA_IFNAME, port->peer);
    nl_put(&q, IFLA_ADDRESS, peer_mac, sizeof peer_mac);
    nl_put_u32(&q, IFLA_MTU, request->mtu);
    size_t info = nl_nest(&q, IFLA_LINKINFO);
    nl_put_text(&q, IFLA_INFO_KIND, "veth");
    size_t data = nl_nest(&q, IFLA_INFO_DATA);
    size_t peer = nl_nest(&q, VETH_INFO_PEER);
    nl_append(&q, &theirs, sizeof theirs);
    nl_put_text(&q, IFLA_IFNAME, request->name);
    nl_put(&q, IFLA_ADDRESS, request->has_mac ? request->mac : mac, sizeof mac);
    nl_put_u32(&q, IFLA_MTU, request->mtu);
    nl_put_u32(&q, IFLA_TXQLEN, PORT_QUEUE_PACKETS);
    nl_put_u32(&q, IFLA_NET_NS_FD, (uint32_t)netns);
    nl_nest_end(&q, peer);
    nl_nest_end(&q, data);
    nl_nest_end(&q, info);
    return nl_ask(nl, &q, NULL, NULL, why);
}

int port_raise(const struct nl_channel *nl, const char *name, struct nl_why *why) {
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    struct nl_buffer q = {0};
    char path[80];
    snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
    set_file(path, "1");
    nl_begin(&q, RTM_NEWLINK, 0, 1, &info, sizeof info);
    nl_put_text(&q, IFLA_IFNAME, name);
    return nl_ask(nl, &q, NULL, NULL, why);
}

int port_set_option(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value) ? -errno : 0;
}

/* 0 or -errno, then `attempt` names what was refused. */
static int make_socket(struct port *port, bool plain, const char **attempt) {
    *attempt = "packet socket";
    port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->fd < 0) {
        return -errno;
    }
    *attempt = "PACKET_VNET_HDR";
    int error = port_set_option(port->fd, SOL_PACKET, PACKET_VNET_HDR, 1);
    if (error) {
        return error;
    }
    /* Comforts: what is sent must not be read again (a bound socket drops it below anyway),
     * straight to the device, room for bursts, and the kernel's own arrival time. */
    port_set_option(port->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
    port_set_option(port->fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
    if (port_set_option(port->fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)) {
        port_set_option(port->fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BYTES);
    }
    if (port_set_option(port->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1) == 0) {
        port->stamp = STAMP_SOCKET;
    }
    if (!plain && packet_ring_open(&port->ring, port->fd) == 0) {
        port->stamp = STAMP_SOCKET;
    }
    struct sockaddr_ll to = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = (int)if_nametoindex(port->peer)};
    *attempt = "bind the packet socket";
    return bind(port->fd, (struct sockaddr *)&to, sizeof to) ? -errno : 0;
}

static void remove_pair(const char *name) {
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
    struct nl_buffer q = {0};
    struct nl_why why = {0};
    struct nl_channel nl;
    if (nl_open(&nl) == 0) {
        nl_begin(&q, RTM_DELLINK, 0, 1, &info, sizeof info);
        nl_put_text(&q, IFLA_IFNAME, name);
        /* It may have gone with the other namespace already. */
        nl_ask(&nl, &q, NULL, NULL, &why);
        nl_close(&nl);
    }
}

bool packet_open(struct port *port, const struct port_request *request, int netns,
                 struct port_error *error) {
    struct nl_why why = {0};
    const char *attempt;
    own_namespace();
    /* Not by the port's number: the pair of the port before may still be on its way out, with a
     * namespace that the kernel takes its time to end. */
    static unsigned made;
    snprintf(port->peer, sizeof port->peer, "pk%x.%x", (unsigned)getpid() & 0xFFFFFF,
             made++ & 0xFFFFFF);
    struct nl_channel nl = {0};
    int code = nl_open(&nl);
    if (code || (code = make_pair(&nl, port, request, netns, &why)) != 0) {
        port_fail(error, code, why.text, "make veth %s in %s", request->name, request->netns);
        port->peer[0] = '\0';
    } else if ((code = port_raise(&nl, port->peer, &why)) != 0) {
        port_fail(error, code, why.text, "bring up %s, the other end of %s", port->peer,
                  request->name);
    } else if ((code = make_socket(port, request->plain, &attempt)) != 0) {
        port_fail(error, code, NULL, "%s for %s", attempt, request->name);
    } else {
        nl_close(&nl);
        return true;
    }
    nl_close(&nl);
    if (port->fd >= 0) {
        close(port->fd);
        port->fd = -1;
    }
    packet_ring_close(&port->ring);
    packet_close(port);
    return false;
}

void packet_close(struct port *port) {
    if (port->peer[0]) {
        remove_pair(port->peer);
        port->peer[0] = '\0';
    }
}

/* A CLOCK_REALTIME stamp as CLOCK_MONOTONIC. The monotonic clock is read last: if this thread is
 * held up between the two, the packet seems to have come later, never earlier than it did, which
 * would let it leave before its time. */
static uint64_t arrival(const struct timespec *stamp) {
    uint64_t wall_ns = clock_wall();
    return stamp_of_wall(clock_ns(stamp), wall_ns, clock_now());
}

static int receive(struct port *port, uint8_t *data, size_t room, struct port_frame *frame) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec io = {data, room};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(port->fd, &message, 0);
    if (got < 0) {
        /* ENETDOWN is told once when the device goes down; reading goes on when it is up again. */
        return errno == EBADFD || errno == ENXIO ? -errno : 0;
    }
    if ((size_t)got < VNET_HEADER_BYTES) {
        return 0;
    }
    frame->bytes = (size_t)got - VNET_HEADER_BYTES;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (port->stamp == STAMP_SOCKET && header && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SO_TIMESTAMPNS) {
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(header), sizeof stamp);
        frame->at_ns = arrival(&stamp);
    }
    return 1;
}

/* A frame larger than its slot comes out of the socket's queue, with the time of its slot. */
int packet_read(struct port *port, uint8_t *data, size_t room, struct port_frame *frame) {
    struct packet_slot slot;
    if (!port->ring.memory) {
        return receive(port, data, room, frame);
    }
    if (!packet_ring_first(&port->ring, &slot)) {
        return 0;
    }
    int got = 1;
    if (!slot.is_whole) {
        got = receive(port, data, room, frame);
        /* An error that the socket has to tell comes before the frame; left there, the frame would
         * be taken for the next one. */
        got = got ? got : receive(port, data, room, frame);
    } else if (slot.bytes <= room) {
        memcpy(data, slot.data, slot.bytes);
        frame->bytes = slot.bytes - VNET_HEADER_BYTES;
    } else {
        got = 0;
    }
    if (got == 0) {
        atomic_fetch_add_explicit(&port->ring.cut, 1, memory_order_relaxed);
    }
    if (port->stamp == STAMP_SOCKET) {
        frame->at_ns = arrival(&(struct timespec){slot.seconds, slot.nanoseconds});
    }
    packet_ring_done(&port->ring);
    return got;
}

void packet_settle(const struct port *port) {
    int error;
    socklen_t size = sizeof error;
    getsockopt(port->fd, SOL_SOCKET, SO_ERROR, &error, &size);
}

int packet_send(int fd, const struct iovec *io, int count) {
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)io, .msg_iovlen = (size_t)count};
    return sendmsg(fd, &message, MSG_DONTWAIT) < 0 ? -errno : 0;
}

int packet_write(struct port *port, const struct iovec *io, int count) {
    return packet_send(port->fd, io, count);
}

/* The socket of a device that was removed is bound to number -1. Reading tells only that a device
 * is down, once. */
bool packet_is_gone(const struct port *port) {
    struct sockaddr_ll bound;
    socklen_t size = sizeof bound;
    return getsockname(port->fd, (struct sockaddr *)&bound, &size) == 0 && bound.sll_ifindex < 0;
}

uint64_t packet_lost(struct port *port) {
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;
    /* Reading sets the kernel's counter back to 0. */
    if (getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) {
        port->lost += stats.tp_drops;
    }
    port->lost += atomic_exchange_explicit(&port->ring.cut, 0, memory_order_relaxed);
    return port->lost;
}
