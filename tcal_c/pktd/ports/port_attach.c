/* A port at a device that somebody else made: a device of pktd's own beside it takes what leaves by
 * it, a packet socket on it sends what has passed.
 *
 * The socket goes round the queueing disciplines and with them round the redirect, so that nothing
 * comes back (packet(7), PACKET_QDISC_BYPASS). It is bound to no protocol and receives nothing. The
 * destination MAC address is the one that the sender's kernel found, since ARP and neighbour
 * discovery go on as if pktd were not there.
 */
#include "port_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>

#define NAMES 16       /* tried before the one that has the number of the port */
#define OWN_MTU 65520u /* whatever the target lets through, now or after a change of its own */
#define SEND_BYTES (16 << 20)

/* Path by path a packet takes longer to leave, and datapaths share processors: what comes in the
 * 50 ms that the kernel may keep real-time work from running has room at 300,000 packets a second,
 * for 128 KiB of memory a port. */
#define OWN_QUEUE_PACKETS 16384

struct attaching {
    const struct attach_request *request;
    struct port_request own; /* the device that pktd makes */
    struct port *port;
    uint8_t mac[6];
};

/* Before: is the target what it should be, and which name is free. */
static bool look(void *context, struct port_error *error) {
    struct attaching *a = context;
    const char *target = a->request->target;
    struct ifreq r = {0};
    memcpy(r.ifr_name, target, sizeof r.ifr_name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &r)) {
        port_fail(error, -errno, NULL, "look at %s in %s", target, a->request->port.netns);
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    close(fd);
    if (r.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
        port_fail(error, -EMEDIUMTYPE, NULL, "%s in %s is no Ethernet device", target,
                  a->request->port.netns);
        return false;
    }
    memcpy(a->mac, r.ifr_hwaddr.sa_data, sizeof a->mac);
    for (unsigned i = 0; i <= NAMES; i++) {
        unsigned number = i < NAMES ? i : NAMES + a->own.number;
        snprintf(a->own.name, sizeof a->own.name, "emu%u", number);
        if (!if_nametoindex(a->own.name)) {
            return true;
        }
    }
    port_fail(error, -EEXIST, NULL, "make emu0 to emu%d, or %s, in %s", NAMES - 1, a->own.name,
              a->request->port.netns);
    return false;
}

/* No addresses of its own and no say in multicast. Comforts: what the kernel sends there of its own
 * accord goes to groups, and pktd drops that. */
static void keep_quiet(const struct nl_channel *nl, const char *name) {
    static const uint8_t none = IN6_ADDR_GEN_MODE_NONE;
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
    struct nl_buffer q = {0};
    struct nl_why why;
    nl_begin(&q, RTM_NEWLINK, 0, 1, &info, sizeof info);
    nl_put_text(&q, IFLA_IFNAME, name);
    size_t families = nl_nest(&q, IFLA_AF_SPEC);
    size_t inet6 = nl_nest(&q, AF_INET6);
    nl_put(&q, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof none);
    nl_nest_end(&q, inet6);
    nl_nest_end(&q, families);
    nl_ask(nl, &q, NULL, NULL, &why);
}

static bool bring_up(const struct attaching *a, struct port_error *error) {
    struct nl_why why = {0};
    struct nl_channel nl;
    int code = nl_open(&nl);
    if (!code) {
        keep_quiet(&nl, a->own.name);
        code = port_raise(&nl, a->own.name, &why);
        nl_close(&nl);
    }
    if (code) {
        port_fail(error, code, why.text, "bring up %s in %s", a->own.name, a->own.netns);
    }
    return code == 0;
}

static bool open_way_out(const struct attaching *a, int index, struct port_error *error) {
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = index};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int code = fd < 0 ? -errno : 0;
    a->port->out = fd;
    if (!code) {
        code = port_set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
    }
    if (!code) {
        code = port_set_option(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
    }
    if (!code && bind(fd, (struct sockaddr *)&to, sizeof to)) {
        code = -errno;
    }
    if (code) {
        port_fail(error, code, NULL, "packet socket on %s in %s", a->request->target, a->own.netns);
        return false;
    }
    /* Several super-packets may wait for the receiver's side at once. */
    if (port_set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, SEND_BYTES)) {
        port_set_option(fd, SOL_SOCKET, SO_SNDBUF, SEND_BYTES);
    }
    return true;
}

/* After: both devices are there. The redirect comes last, when everything behind it is ready. */
static bool join(void *context, struct port_error *error) {
    struct attaching *a = context;
    const struct attach_request *request = a->request;
    struct nl_why why = {0};
    int from = (int)if_nametoindex(request->target);
    int to = (int)if_nametoindex(a->own.name);
    if (!bring_up(a, error) || !open_way_out(a, from, error)) {
        return false;
    }
    int code =
        redirect_make(&a->port->redirect, from, to, request->prefix, request->prefix_count, &why);
    if (code) {
        port_fail(error, code, why.text, "redirect what leaves %s in %s", request->target,
                  a->own.netns);
    }
    return code == 0;
}

static bool attach_in(struct attaching *a, int netns, int program, struct port_error *error) {
    const char *path = a->own.netns;
    struct stat status;
    if (!port_visit(netns, path, look, a, error)) {
        return false;
    }
    a->port = port_open(&a->own, program, error->text, error->room);
    if (!a->port) {
        return false;
    }
    memcpy(a->port->mac, a->mac, sizeof a->mac);
    memcpy(a->port->target, a->request->target, sizeof a->port->target);
    a->port->netns_inode = fstat(netns, &status) ? 0 : status.st_ino;
    if (port_visit(netns, path, join, a, error)) {
        return true;
    }
    a->port->leave = false;
    port_close(a->port);
    return false;
}

struct port *port_attach(const struct attach_request *request, int program, char *text,
                         size_t text_room) {
    struct port_error error = {text, text_room};
    struct attaching a = {.request = request, .own = request->port};
    a.own.mtu = OWN_MTU;
    a.own.queue = OWN_QUEUE_PACKETS;
    int netns = open(request->port.netns, O_RDONLY | O_CLOEXEC);
    if (netns < 0) {
        port_fail(&error, -errno, NULL, "open %s", request->port.netns);
        return NULL;
    }
    bool good = attach_in(&a, netns, program, &error);
    close(netns);
    return good ? a.port : NULL;
}

int port_restore(struct port *port, struct nl_why *why) {
    return port->leave ? 0 : redirect_remove(&port->redirect, why);
}
