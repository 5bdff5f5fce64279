/* The verb: raw sockets, the clock, and the session on standard input and output.
 *
 * A probe is sent at the time of the clock just before sendto(2); it has arrived when the kernel
 * says, so that it does not matter when this process runs. The kernel's stamp is wall time: the
 * clocks are read together to carry it over to CLOCK_MONOTONIC. If the wall clock was stepped since
 * they were read last, or within a second before, the time of reading counts instead.
 */
#include "active.h"

#include "common/clock.h"
#include "common/netlink/netns.h"
#include "common/server.h"
#include "common/startup.h"
#include "probe/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS = 64,
    ROOM = 256,          /* of a packet: its headers, and what a probe is told apart by */
    TOGETHER_NS = 20000, /* two clocks that took longer to read are read again */
    READINGS = 3
};

/* A packet socket for probes that go by a device; of other ends fd is 0. */
struct outlet {
    int fd;
    int index;
};

struct sockets {
    struct proto proto; /* first: `woken` is given it */
    struct active_io io;
    int epoll;
    int *fd;               /* by end */
    struct outlet *outlet; /* the same */
    struct wall wall;
};

union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static socklen_t to_socket_address(const struct addr *addr, union address *out) {
    memset(out, 0, sizeof *out);
    if (addr->version == 4) {
        out->four.sin_family = AF_INET;
        memcpy(&out->four.sin_addr, addr->bytes, sizeof out->four.sin_addr);
        return sizeof out->four;
    }
    out->six.sin6_family = AF_INET6;
    memcpy(&out->six.sin6_addr, addr->bytes, sizeof out->six.sin6_addr);
    return sizeof out->six;
}

static struct addr from_socket_address(const union address *from) {
    struct addr addr = {.version = 4};
    if (from->any.sa_family == AF_INET) {
        memcpy(addr.bytes, &from->four.sin_addr, sizeof from->four.sin_addr);
    } else {
        addr.version = 6;
        memcpy(addr.bytes, &from->six.sin6_addr, sizeof from->six.sin6_addr);
    }
    return addr;
}

/* -- what the core asks for -------------------------------------------------------------------- */

static uint64_t read_clock(void *context) {
    (void)context;
    return clock_now();
}

/* A raw socket at this address in the namespace where the thread is: a descriptor, or -errno. */
static int raw_socket(const struct addr *addr) {
    union address local;
    int on = 1;
    int off = 0;
    socklen_t length = to_socket_address(addr, &local);
    int fd = socket(local.any.sa_family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, PROBE_PROTOCOL);
    if (fd < 0) {
        return -errno;
    }
    /* Without a flow label, which the kernel would draw: so a plan tells what way probes take. */
    bool six = local.any.sa_family == AF_INET6;
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) ||
        (six && setsockopt(fd, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, &off, sizeof off)) ||
        bind(fd, &local.any, length)) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

/* It sends and receives nothing. -errno where it cannot be made. */
static int open_outlet(const char *device, struct outlet *outlet) {
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    *outlet = (struct outlet){fd, (int)if_nametoindex(device)};
    return 0;
}

static int socket_in(const char *netns, const struct end *end, struct outlet *outlet) {
    int there = open(netns, O_RDONLY | O_CLOEXEC);
    if (there < 0) {
        return -errno;
    }
    int home = netns_enter(there);
    close(there);
    if (home < 0) {
        return home;
    }
    int error = end->device ? open_outlet(end->device, outlet) : 0;
    int fd = error ? error : raw_socket(&end->addr);
    netns_return(home);
    return fd;
}

static void close_outlet(struct outlet *outlet) {
    if (outlet->fd) {
        close(outlet->fd);
        outlet->fd = 0;
    }
}

static int open_end(void *context, uint32_t number, const char *netns, const struct end *end) {
    struct sockets *s = context;
    struct outlet *outlet = &s->outlet[number];
    int fd = socket_in(netns, end, outlet);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
    int error = fd < 0 ? fd : epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
    if (error) {
        if (fd >= 0) {
            close(fd);
        }
        close_outlet(outlet);
        return error;
    }
    s->fd[number] = fd;
    return 0;
}

static void close_end(void *context, uint32_t end) {
    struct sockets *s = context;
    close(s->fd[end]);
    s->fd[end] = -1;
    close_outlet(&s->outlet[end]);
}

/* The IP header as a raw socket would have it. */
static size_t make_header(const struct addr *from, const struct addr *to, size_t size,
                          uint8_t *head) {
    enum { FOUR = 20, SIX = 40, HOPS = 64 };
    memset(head, 0, SIX);
    if (from->version == 6) {
        head[0] = 0x60;
        head[4] = (uint8_t)(size >> 8);
        head[5] = (uint8_t)size;
        head[6] = PROBE_PROTOCOL;
        head[7] = HOPS;
        memcpy(head + 8, from->bytes, 16);
        memcpy(head + 24, to->bytes, 16);
        return SIX;
    }
    head[0] = 0x45;
    head[2] = (uint8_t)((size + FOUR) >> 8);
    head[3] = (uint8_t)(size + FOUR);
    head[6] = 0x40; /* not to be cut */
    head[8] = HOPS;
    head[9] = PROBE_PROTOCOL;
    memcpy(head + 12, from->bytes, 4);
    memcpy(head + 16, to->bytes, 4);
    uint32_t sum = 0;
    for (int i = 0; i < FOUR; i += 2) {
        sum += (uint32_t)head[i] << 8 | head[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16));
    head[10] = (uint8_t)(sum >> 8);
    head[11] = (uint8_t)sum;
    return FOUR;
}

/* To the neighbour's device: the link is probed, not what the kernel knows of neighbours. */
static int send_by(const struct outlet *outlet, const struct end *from, const struct end *to,
                   const uint8_t *bytes, size_t size) {
    uint8_t head[40];
    struct sockaddr_ll peer = {.sll_family = AF_PACKET,
                               .sll_protocol =
                                   htons(from->addr.version == 6 ? ETH_P_IPV6 : ETH_P_IP),
                               .sll_ifindex = outlet->index,
                               .sll_halen = sizeof to->mac};
    memcpy(peer.sll_addr, to->mac, sizeof to->mac);
    struct iovec io[2] = {{head, make_header(&from->addr, &to->addr, size, head)},
                          {(void *)(uintptr_t)bytes, size}};
    struct msghdr message = {
        .msg_name = &peer, .msg_namelen = sizeof peer, .msg_iov = io, .msg_iovlen = 2};
    return sendmsg(outlet->fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int send_from(void *context, uint32_t number, const struct end *from, const struct end *to,
                     const uint8_t *bytes, size_t size) {
    struct sockets *s = context;
    if (from->has_mac && to->has_mac) {
        return send_by(&s->outlet[number], from, to, bytes, size);
    }
    union address peer;
    socklen_t length = to_socket_address(&to->addr, &peer);
    ssize_t sent = sendto(s->fd[number], bytes, size, MSG_NOSIGNAL, &peer.any, length);
    return sent < 0 ? -errno : 0;
}

/* -- arrivals ---------------------------------------------------------------------------------- */

struct moment {
    uint64_t now_ns, wall_ns; /* the same one */
};

static struct moment look(void) {
    struct moment found = {0};
    for (int i = 0; i < READINGS; i++) {
        uint64_t before = clock_now();
        found.wall_ns = clock_wall();
        uint64_t took = clock_now() - before;
        found.now_ns = before + took / 2;
        if (took <= TOGETHER_NS) {
            break;
        }
    }
    return found;
}

/* The kernel's stamp, as wall time; 0 if there is none. */
static uint64_t stamp_of(struct msghdr *message) {
    struct timespec t;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS &&
            c->cmsg_len >= CMSG_LEN(sizeof t)) {
            memcpy(&t, CMSG_DATA(c), sizeof t);
            return clock_ns(&t);
        }
    }
    return 0;
}

/* One packet: a socket that has more is ready again, and a read that fails costs time. */
static void receive(struct sockets *s, uint32_t end) {
    uint8_t bytes[ROOM];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct timespec)) + 64];
    } control;
    union address from = {0};
    struct iovec io = {bytes, sizeof bytes};
    struct msghdr message = {.msg_name = &from,
                             .msg_namelen = sizeof from,
                             .msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(s->fd[end], &message, MSG_DONTWAIT | MSG_TRUNC); /* its whole length */
    if (got <= 0) {
        return;
    }
    struct moment moment = look();
    active_look(&s->wall, moment.now_ns, moment.wall_ns);
    /* A raw IPv4 socket gives the IP header too (raw(7)). */
    size_t head = from.any.sa_family == AF_INET ? (size_t)(bytes[0] & 0x0f) * 4 : 0;
    if ((size_t)got < head) {
        return;
    }
    struct addr source = from_socket_address(&from);
    active_arrived(&s->proto, end, &source, bytes + head, (size_t)got - head,
                   active_arrival(&s->wall, moment.now_ns, stamp_of(&message)));
}

static void woken(struct proto *p) {
    struct sockets *s = (struct sockets *)(void *)p;
    struct epoll_event events[EVENTS];
    int count = epoll_wait(s->epoll, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        receive(s, events[i].data.u32);
    }
}

/* -- the verb ---------------------------------------------------------------------------------- */

static bool prepare(struct sockets *s) {
    uint32_t cookie;
    s->io = (struct active_io){s, read_clock, open_end, send_from, close_end};
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->fd = calloc(ENDS, sizeof *s->fd);
    s->outlet = calloc(ENDS, sizeof *s->outlet);
    if (s->epoll < 0 || !s->fd || !s->outlet ||
        getrandom(&cookie, sizeof cookie, 0) != sizeof cookie) {
        perror("tprobe: getting ready for probes");
        return false;
    }
    if (!active_init(&s->proto, &s->io, cookie)) {
        fputs("tprobe: no memory for probes\n", stderr);
        return false;
    }
    struct moment moment = look();
    s->wall.ahead_ns = (int64_t)(moment.wall_ns - moment.now_ns);
    return true;
}

int cmd_active(int argc, char **argv) {
    (void)argv;
    static struct sockets s;
    if (argc > 1) {
        fputs("usage: tprobe active\n", stderr);
        return 2;
    }
    if (!startup_system()) {
        return 1;
    }
    prctl(PR_SET_TIMERSLACK, 1); /* probes go at the times that were asked for */
    if (!prepare(&s)) {
        return 1;
    }
    struct server server = {&s.proto.session, STDIN_FILENO, STDOUT_FILENO, s.epoll, woken};
    int result = server_run(&server);
    if (result) {
        fprintf(stderr, "tprobe: serving probes: %s\n", strerror(-result));
    }
    active_free(&s.proto);
    free(s.fd);
    free(s.outlet);
    return result ? 1 : 0;
}
