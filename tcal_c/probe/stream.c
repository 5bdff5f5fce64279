/* tprobe stream: goodput of one TCP connection (or of paced datagrams with --udp).
 *
 * Sending, a line's bytes are those the peer acknowledged in the interval (TCP_INFO), and the
 * summary has the receiver's own count; with --reverse they are those that arrived here. With
 * --stall D a connection that moves nothing for D is replaced: TCP itself would wait longer and
 * longer after an outage.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "udp.h"
#include "wire.h"

enum { CHUNK = 256 * 1024 };
enum { NO_PAYLOAD = 1 + sizeof(struct wire_header) }; /* acknowledged too: the SYN, our header */
#define RETRY_NS (NS_PER_S / 5)

struct stream {
    const struct options *o;
    struct host peer;
    int fd;
    int64_t start_ns, end_ns;
    uint64_t moved, before; /* bytes: of this connection; of those before it */
    int64_t progress_ns;    /* when `moved` last grew */
    int64_t connections;
    struct tcp_info info;
    unsigned char *chunk;
};

static int set_congestion(const struct stream *s, int fd) {
    const char *cc = s->o->cc;
    if (cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc))) {
        return say_error(errno, "choosing congestion control", cc);
    }
    return 0;
}

/* One attempt: 0, -1 worth another attempt (errno), -2 no use. */
static int connect_once(struct stream *s) {
    int fd = socket(s->peer.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        say_error(errno, "opening", "a TCP socket");
        return -2;
    }
    if (set_congestion(s, fd)) {
        close(fd);
        return -2;
    }
    int err = connect(fd, (struct sockaddr *)&s->peer.address, s->peer.length) ? errno : 0;
    if (err == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t size = sizeof err;
        /* Longer than the first SYN's repetition after 1 s, so that one loss is no failure; but
         * not longer than the user would wait for a connection that does nothing. */
        int64_t patience = s->o->stall_ns ? s->o->stall_ns : 5 * NS_PER_S / 2;
        err = ETIMEDOUT;
        if (poll(&p, 1, poll_ms(now_ns() + patience)) > 0) {
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
        }
    }
    struct wire_header h = {.magic = WIRE_MAGIC,
                            .kind = s->o->reverse ? WIRE_SOURCE : WIRE_SINK,
                            .skip_ns = s->o->skip_ns};
    if (!err && send(fd, &h, sizeof h, MSG_NOSIGNAL) != (ssize_t)sizeof h) {
        err = errno;
    }
    if (err) {
        close(fd);
        errno = err;
        return -1;
    }
    s->fd = fd;
    return 0;
}

/* Tries until `deadline`. */
static int stream_connect(struct stream *s, int64_t deadline) {
    for (;;) {
        int64_t began = now_ns();
        int rc = connect_once(s);
        if (rc == 0) {
            s->connections++;
            s->progress_ns = now_ns();
            return 0;
        }
        if (rc == -2) {
            return -1;
        }
        if (now_ns() >= deadline) {
            return say_error(errno, "connecting to", s->o->host);
        }
        sleep_until(began + RETRY_NS);
    }
}

static void update(struct stream *s) {
    socklen_t size = sizeof s->info;
    uint64_t moved = s->moved;
    if (s->fd >= 0 && getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &s->info, &size) == 0 &&
        !s->o->reverse) {
        moved = s->info.tcpi_bytes_acked > NO_PAYLOAD ? s->info.tcpi_bytes_acked - NO_PAYLOAD : 0;
    }
    if (moved > s->moved) {
        s->progress_ns = now_ns();
    }
    s->moved = moved;
}

static void drop(struct stream *s) {
    /* Reset: closed in order, it would go on sending what it has buffered beside its successor. */
    struct linger reset = {.l_onoff = 1};
    setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    update(s);
    s->before += s->moved;
    s->moved = 0;
    close(s->fd);
    s->fd = -1;
}

/* Sends or receives until `until`; -1 when the connection is gone. */
static int move_bytes(struct stream *s, int64_t until) {
    while (now_ns() < until) {
        ssize_t n = s->o->reverse ? recv(s->fd, s->chunk, CHUNK, MSG_DONTWAIT)
                                  : send(s->fd, s->chunk, CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0 && s->o->reverse) {
            s->moved += (uint64_t)n;
            s->progress_ns = now_ns();
        }
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            return -1;
        }
        if (n < 0) {
            struct pollfd p = {.fd = s->fd, .events = s->o->reverse ? POLLIN : POLLOUT};
            poll(&p, 1, poll_ms(until));
        }
    }
    return 0;
}

static void print_line(const struct stream *s, int64_t from, uint64_t bytes) {
    int64_t now = now_ns();
    double seconds = (double)(now - from) / 1e9;
    printf("{\"t_ns\":%lld,\"seconds\":%.6f,\"bytes\":%llu,\"bps\":%.0f,\"rtt_us\":%u,"
           "\"cwnd\":%u,\"mss\":%u,\"retransmits\":%u,\"connected\":%s}\n",
           (long long)now, seconds, (unsigned long long)bytes, (double)bytes * 8 / seconds,
           s->info.tcpi_rtt, s->info.tcpi_snd_cwnd, s->info.tcpi_snd_mss,
           s->info.tcpi_total_retrans, s->fd >= 0 ? "true" : "false");
}

/* One interval. -1 when there is no use in going on (said). */
static int interval(struct stream *s, int64_t until) {
    while (now_ns() < until) {
        if (s->fd < 0) {
            int rc = connect_once(s);
            if (rc == -2) {
                return -1;
            }
            if (rc == -1) {
                int64_t again = now_ns() + RETRY_NS;
                sleep_until(again < until ? again : until);
                continue;
            }
            s->connections++;
            s->progress_ns = now_ns();
        }
        int64_t step = now_ns() + NS_PER_S / 20;
        int rc = move_bytes(s, step < until ? step : until);
        int err = errno;
        update(s);
        bool stalled = s->o->stall_ns && now_ns() - s->progress_ns > s->o->stall_ns;
        if (rc && !s->o->stall_ns) {
            return say_error(err, "the connection broke to", s->o->host);
        }
        if (rc || stalled) {
            drop(s);
        }
    }
    return 0;
}

static int run(struct stream *s) {
    uint64_t shown = 0;
    while (now_ns() < s->end_ns) {
        int64_t from = now_ns();
        int64_t until = from + s->o->interval_ns;
        if (interval(s, until < s->end_ns ? until : s->end_ns)) {
            return -1;
        }
        update(s);
        uint64_t total = s->before + s->moved;
        print_line(s, from, total - shown);
        shown = total;
    }
    return 0;
}

/* Ends the sending and waits for the receiver's count. */
static bool fetch_report(struct stream *s, struct wire_report *report) {
    if (s->fd < 0 || s->o->reverse || shutdown(s->fd, SHUT_WR)) {
        return false;
    }
    size_t got = 0;
    int64_t deadline = now_ns() + 10 * NS_PER_S; /* a full queue may have to drain first */
    while (got < sizeof *report && now_ns() < deadline) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        poll(&p, 1, poll_ms(deadline));
        ssize_t n = recv(s->fd, (unsigned char *)report + got, sizeof *report - got, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            return false;
        }
        got += n > 0 ? (size_t)n : 0;
    }
    return got == sizeof *report && report->header.magic == WIRE_MAGIC;
}

static void print_summary(struct stream *s, int64_t ended_ns) {
    struct wire_report r = {0};
    uint64_t total = s->before + s->moved;
    double seconds = (double)(ended_ns - s->start_ns) / 1e9;
    printf("{\"summary\":true,\"protocol\":\"tcp\",\"host\":");
    json_string(s->o->host);
    printf(",\"address\":\"%s\",\"reverse\":%s,\"bytes\":%llu,\"seconds\":%.6f,\"bps\":%.0f,"
           "\"connections\":%lld,\"retransmits\":%u,\"mss\":%u",
           s->peer.text, s->o->reverse ? "true" : "false", (unsigned long long)total, seconds,
           (double)total * 8 / seconds, (long long)s->connections, s->info.tcpi_total_retrans,
           s->info.tcpi_snd_mss);
    if (fetch_report(s, &r)) {
        double span = (double)(r.last_ns - r.first_ns) / 1e9;
        printf(",\"receiver\":{\"bytes\":%llu,\"span_bytes\":%llu,\"span_seconds\":%.9f,"
               "\"bps\":%.1f}",
               (unsigned long long)r.bytes, (unsigned long long)r.span_bytes, span,
               span > 0 ? (double)r.span_bytes * 8 / span : 0);
    }
    puts("}");
}

static int tcp_run(const struct options *o) {
    struct stream s = {.o = o, .fd = -1};
    int rc = EXIT_FAILED;
    if (host_resolve(o->host, o->family, (uint16_t)o->port, &s.peer)) {
        return EXIT_FAILED;
    }
    s.chunk = calloc(1, CHUNK);
    if (!s.chunk) {
        say_error(ENOMEM, "preparing", "the data");
        return EXIT_FAILED;
    }
    if (stream_connect(&s, now_ns() + o->wait_ns)) {
        goto cleanup;
    }
    s.start_ns = now_ns();
    s.end_ns = s.start_ns + o->seconds_ns;
    if (run(&s)) {
        goto cleanup;
    }
    print_summary(&s, now_ns());
    rc = s.before + s.moved ? EXIT_OK : EXIT_FAILED;
cleanup:
    free(s.chunk);
    if (s.fd >= 0) {
        close(s.fd);
    }
    return rc;
}

int cmd_stream(int argc, char **argv) {
    struct options o = {.port = DEFAULT_PORT,
                        .seconds_ns = 10 * NS_PER_S,
                        .interval_ns = NS_PER_S,
                        .wait_ns = 10 * NS_PER_S,
                        .size = 1500};
    if (options_parse(argc, argv, "port seconds interval cc reverse skip wait stall udp size", true,
                      &o)) {
        return EXIT_USAGE;
    }
    if (!o.interval_ns) {
        say_error(0, "--interval must be", "above 0");
        return EXIT_USAGE;
    }
    if (!o.rate_bps) {
        return tcp_run(&o);
    }
    if (o.cc || o.reverse || o.stall_ns) {
        say_error(0, "--udp goes without", "--cc, --reverse and --stall");
        return EXIT_USAGE;
    }
    o.pps = o.rate_bps / (8 * o.size);
    if (!o.pps) {
        say_error(0, "--udp is less than one datagram a second;", "use a smaller --size");
        return EXIT_USAGE;
    }
    return udp_run(&o);
}
