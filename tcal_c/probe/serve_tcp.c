/* Connections of tprobe serve: a sink (count, report after end of file) or a source (send on).
 *
 * Each connection starts with a struct wire_header that says which. Everything is non-blocking; a
 * connection that breaks the protocol is closed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "serve.h"

enum { CONNECTIONS = 1024, CHUNK = 256 * 1024 };

struct connection {
    int fd; /* 0 = free slot: standard input is never a connection */
    size_t header_bytes;
    int64_t started_ns;
    struct wire_header header;
    struct wire_report report;
};

struct connections {
    int epoll;
    struct connection slots[CONNECTIONS];
    unsigned char chunk[CHUNK];
};

struct connections *connections_new(int epoll_fd) {
    struct connections *all = calloc(1, sizeof *all);
    if (all) {
        all->epoll = epoll_fd;
    }
    return all;
}

static void connection_close(struct connection *c) {
    close(c->fd);
    *c = (struct connection){0};
}

void connections_free(struct connections *all) {
    for (size_t i = 0; all && i < CONNECTIONS; i++) {
        if (all->slots[i].fd) {
            connection_close(&all->slots[i]);
        }
    }
    free(all);
}

static void connection_add(struct connections *all, int fd) {
    for (uint32_t i = 0; i < CONNECTIONS; i++) {
        if (all->slots[i].fd) {
            continue;
        }
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = TAG_CONNECTION + i};
        if (epoll_ctl(all->epoll, EPOLL_CTL_ADD, fd, &event)) {
            break;
        }
        all->slots[i] = (struct connection){.fd = fd};
        return;
    }
    say_error(0, "refusing a connection:", "too many are open");
    close(fd);
}

void connections_accept(struct connections *all, int listen_fd) {
    int fd;
    while ((fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        connection_add(all, fd);
    }
}

/* True when the header is whole and makes sense. */
static bool read_header(struct connections *all, struct connection *c, uint32_t slot) {
    unsigned char *at = (unsigned char *)&c->header + c->header_bytes;
    ssize_t got = read(c->fd, at, sizeof c->header - c->header_bytes);
    if (got < 0 && errno == EAGAIN) {
        return false;
    }
    c->header_bytes += got > 0 ? (size_t)got : 0;
    if (got > 0 && c->header_bytes < sizeof c->header) {
        return false;
    }
    c->started_ns = now_ns();
    uint16_t kind = c->header.kind;
    if (got <= 0 || c->header.magic != WIRE_MAGIC || (kind != WIRE_SINK && kind != WIRE_SOURCE)) {
        connection_close(c);
        return false;
    }
    if (kind == WIRE_SOURCE) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT,
                                    .data.u32 = TAG_CONNECTION + slot};
        epoll_ctl(all->epoll, EPOLL_CTL_MOD, c->fd, &event);
    }
    return true;
}

void report_count(struct wire_report *r, size_t size, int64_t now_ns, bool in_span) {
    r->packets++;
    r->bytes += size;
    if (!in_span) {
        return;
    }
    if (r->first_ns) {
        r->span_bytes += size;
        r->span_packets++;
    } else {
        r->first_ns = now_ns;
    }
    r->last_ns = now_ns;
}

static void sink(struct connections *all, struct connection *c) {
    ssize_t got = read(c->fd, all->chunk, CHUNK);
    if (got > 0) {
        int64_t now = now_ns();
        report_count(&c->report, (size_t)got, now, now - c->started_ns >= c->header.skip_ns);
        return;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got == 0) {
        c->report.header = c->header;
        c->report.header.kind = WIRE_REPORT;
        /* The send buffer is empty, so the report fits; if the peer is gone nobody misses it. */
        if (send(c->fd, &c->report, sizeof c->report, MSG_NOSIGNAL) < 0) {
            say_error(errno, "sending", "a report");
        }
    }
    connection_close(c);
}

static void source(struct connections *all, struct connection *c) {
    char end;
    ssize_t got = recv(c->fd, &end, 1, MSG_DONTWAIT);
    bool over = got == 0 || (got < 0 && errno != EAGAIN);
    if (over || (send(c->fd, all->chunk, CHUNK, MSG_NOSIGNAL) < 0 && errno != EAGAIN)) {
        connection_close(c);
    }
}

void connections_ready(struct connections *all, uint32_t slot) {
    struct connection *c = &all->slots[slot];
    if (!c->fd) {
        return; /* closed while this event waited in the same batch */
    }
    if (c->header_bytes < sizeof c->header && !read_header(all, c, slot)) {
        return;
    }
    if (c->header.kind == WIRE_SINK) {
        sink(all, c);
    } else {
        source(all, c);
    }
}
