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

struct sockets {
    struct proto proto; /* first: `woken` is given it */
    struct active_io io;
    int epoll;
    int *fd; /* by end */
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

static int socket_in(const char *netns, const struct addr *addr) {
    int there = open(netns, O_RDONLY | O_CLOEXEC);
    if (there < 0) {
        return -errno;
    }
    int home = netns_enter(there);
    close(there);
    if (home < 0) {
        return home;
    }
    int fd = raw_socket(addr);
    netns_return(home);
    return fd;
}

static int open_end(void *context, uint32_t end, const char *netns, const struct addr *addr) {
    struct sockets *s = context;
    int fd = socket_in(netns, addr);
    if (fd < 0) {
        return fd;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = end};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event)) {
        int error = -errno;
        close(fd);
        return error;
    }
    s->fd[end] = fd;
    return 0;
}

static void close_end(void *context, uint32_t end) {
    struct sockets *s = context;
    close(s->fd[end]);
    s->fd[end] = -1;
}

static int send_from(void *context, uint32_t end, const struct addr *to, const uint8_t *bytes,
                     size_t size) {
    struct sockets *s = context;
    union address peer;
    socklen_t length = to_socket_address(to, &peer);
    ssize_t sent = sendto(s->fd[end], bytes, size, MSG_NOSIGNAL, &peer.any, length);
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
    if (s->epoll < 0 || !s->fd || getrandom(&cookie, sizeof cookie, 0) != sizeof cookie) {
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
    return result ? 1 : 0;
}
