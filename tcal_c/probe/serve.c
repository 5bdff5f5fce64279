/* tprobe serve: echoes datagrams, counts datagrams by session, sinks and sources TCP.
 *
 * There is no access control: whoever reaches the port may use it. It belongs inside the network
 * namespace of an experiment. It never sends more datagram bytes than it was sent, holds at most
 * SESSIONS sessions (the one idle longest is forgotten) and ends after --seconds (0 = never).
 */
#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "options.h"

enum { SESSIONS = 256, BATCH = 64, DATAGRAM = 65536 };

struct session {
    bool used;
    struct wire_report report;
    int64_t touched_ns, started_ns;
};

struct batch {
    struct mmsghdr messages[BATCH];
    struct iovec io[BATCH];
    struct sockaddr_storage from[BATCH];
    unsigned char bytes[BATCH][DATAGRAM];
};

struct server {
    int udp, listener, epoll;
    struct session sessions[SESSIONS];
    struct session *last; /* datagrams come in trains of one session */
    struct batch *batch;
    struct connections *connections;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
}

static struct session *session_of(struct server *s, uint32_t id, int64_t now) {
    if (s->last && s->last->report.header.session == id) {
        return s->last;
    }
    struct session *oldest = &s->sessions[0];
    for (int i = 0; i < SESSIONS; i++) {
        struct session *c = &s->sessions[i];
        if (c->used && c->report.header.session == id) {
            return s->last = c;
        }
        if (!c->used || (oldest->used && c->touched_ns < oldest->touched_ns)) {
            oldest = c;
        }
    }
    *oldest = (struct session){.used = true, .started_ns = now};
    oldest->report.header =
        (struct wire_header){.magic = WIRE_MAGIC, .kind = WIRE_REPORT, .session = id};
    return s->last = oldest;
}

static void count_datagram(struct session *c, const struct wire_header *h, size_t size,
                           int64_t now) {
    c->touched_ns = now;
    report_count(&c->report, size, now, now - c->started_ns >= h->skip_ns);
}

static void answer(struct server *s, int i, size_t size) {
    /* A full send buffer or a peer that is gone loses the answer, as a network would. */
    sendto(s->udp, s->batch->bytes[i], size, MSG_DONTWAIT | MSG_NOSIGNAL,
           (struct sockaddr *)&s->batch->from[i], s->batch->messages[i].msg_hdr.msg_namelen);
}

static void on_datagram(struct server *s, int i, int64_t now) {
    size_t size = s->batch->messages[i].msg_len;
    struct wire_header h;
    if (size < sizeof h) {
        return;
    }
    memcpy(&h, s->batch->bytes[i], sizeof h);
    if (h.magic != WIRE_MAGIC) {
        return;
    }
    if (h.kind == WIRE_ECHO) {
        answer(s, i, size);
    } else if (h.kind == WIRE_DATA) {
        count_datagram(session_of(s, h.session, now), &h, size, now);
    } else if (h.kind == WIRE_ASK && size == sizeof(struct wire_report)) {
        struct session *c = session_of(s, h.session, now);
        c->report.header.seq = h.seq;
        c->report.header.sent_ns = now;
        memcpy(s->batch->bytes[i], &c->report, sizeof c->report);
        answer(s, i, size);
    }
}

static void on_udp(struct server *s) {
    for (int i = 0; i < BATCH; i++) {
        s->batch->messages[i].msg_hdr.msg_namelen = sizeof s->batch->from[i];
    }
    int got = recvmmsg(s->udp, s->batch->messages, BATCH, MSG_DONTWAIT, NULL);
    int64_t now = now_ns();
    for (int i = 0; i < got; i++) {
        on_datagram(s, i, now);
    }
}

/* Both families on one IPv6 socket, or IPv4 alone where the namespace has no IPv6. */
static int open_socket(int type, const struct options *o) {
    int family = AF_INET6, off = 0, on = 1;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)o->port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    int fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (o->bind && inet_pton(AF_INET, o->bind, &four.sin_addr) == 1)) {
        if (fd >= 0) {
            close(fd);
        }
        family = AF_INET;
        fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (fd < 0) {
        return say_error(errno, "opening", type == SOCK_DGRAM ? "a UDP socket" : "a TCP socket");
    }
    if (family == AF_INET6 && o->bind && inet_pton(AF_INET6, o->bind, &six.sin6_addr) != 1) {
        close(fd);
        return say_error(0, "--bind wants an address, not", o->bind);
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    const struct sockaddr *at = family == AF_INET6 ? (void *)&six : (void *)&four;
    if (bind(fd, at, family == AF_INET6 ? sizeof six : sizeof four)) {
        int err = errno;
        close(fd);
        return say_error(err, "binding", type == SOCK_DGRAM ? "the UDP port" : "the TCP port");
    }
    return fd;
}

static int watch(int epoll, int fd, uint32_t tag) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int server_open(struct server *s, const struct options *o) {
    s->udp = open_socket(SOCK_DGRAM, o);
    s->listener = s->udp < 0 ? -1 : open_socket(SOCK_STREAM, o);
    if (s->listener < 0) {
        return -1;
    }
    socket_buffers(s->udp, 8 << 20);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->batch = calloc(1, sizeof *s->batch);
    s->connections = s->epoll < 0 ? NULL : connections_new(s->epoll);
    if (!s->batch || !s->connections) {
        return say_error(errno, "starting", "the server");
    }
    for (int i = 0; i < BATCH; i++) {
        s->batch->io[i] = (struct iovec){s->batch->bytes[i], DATAGRAM};
        s->batch->messages[i].msg_hdr.msg_iov = &s->batch->io[i];
        s->batch->messages[i].msg_hdr.msg_iovlen = 1;
        s->batch->messages[i].msg_hdr.msg_name = &s->batch->from[i];
    }
    if (listen(s->listener, 256) || watch(s->epoll, s->udp, TAG_UDP) ||
        watch(s->epoll, s->listener, TAG_LISTEN)) {
        return say_error(errno, "listening on", "the port");
    }
    return 0;
}

static void serve_until(struct server *s, int64_t end) {
    struct epoll_event events[64];
    while (!stopped && now_ns() < end) {
        int got = epoll_wait(s->epoll, events, 64, poll_ms(end));
        for (int i = 0; i < got; i++) {
            uint32_t tag = events[i].data.u32;
            if (tag == TAG_UDP) {
                on_udp(s);
            } else if (tag == TAG_LISTEN) {
                connections_accept(s->connections, s->listener);
            } else {
                connections_ready(s->connections, tag - TAG_CONNECTION);
            }
        }
    }
}

int cmd_serve(int argc, char **argv) {
    struct options o = {.port = DEFAULT_PORT, .seconds_ns = 3600 * NS_PER_S};
    static struct server s;
    if (options_parse(argc, argv, "port bind seconds", false, &o)) {
        return EXIT_USAGE;
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    s.udp = s.listener = s.epoll = -1;
    int rc = server_open(&s, &o) ? EXIT_FAILED : EXIT_OK;
    if (rc == EXIT_OK) {
        printf("{\"event\":\"listening\",\"port\":%lld}\n", (long long)o.port);
        serve_until(&s, o.seconds_ns ? now_ns() + o.seconds_ns : INT64_MAX);
    }
    connections_free(s.connections);
    free(s.batch);
    for (int *fd = (int[]){s.udp, s.listener, s.epoll, -2}; *fd != -2; fd++) {
        if (*fd >= 0) {
            close(*fd);
        }
    }
    return rc;
}
