/* tprobe rtt: round-trip times by ICMP echo (answered by the peer's kernel) or UDP echo (answered
 * by tprobe serve). The arrival time is the kernel's time stamp, so waking up is not measured.
 *
 * A probe that cannot be sent (no route, device down) counts as lost, like one that is not
 * answered within --timeout: a network that is away is a result here, not an error.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "icmp.h"
#include "options.h"
#include "wire.h"

enum state { WAITING, ANSWERED, LOST };

struct rtt {
    const struct options *o;
    struct host peer;
    struct echo icmp;
    bool use_icmp;
    int fd;
    uint32_t session;
    uint32_t magic; /* PROBE_ECHO: the run's own */
    int64_t *sent_ns;
    unsigned char *state;
    int64_t sent, oldest_waiting, received, unsent;
    struct sample times;
    unsigned char packet[65536];
};

static int rtt_open(struct rtt *r) {
    const char *mode = r->o->mode;
    bool automatic = !strcmp(mode, "auto");
    if (!automatic && strcmp(mode, "icmp") && strcmp(mode, "udp")) {
        return say_error(0, "--mode is auto, icmp or udp, not", mode);
    }
    if (host_resolve(r->o->host, r->o->family, (uint16_t)r->o->port, &r->peer)) {
        return -1;
    }
    if (strcmp(mode, "udp")) {
        r->use_icmp = echo_open(&r->icmp, &r->peer) == 0;
        if (!r->use_icmp && !automatic) {
            return say_error(errno, "opening an ICMP socket for", r->peer.text);
        }
    }
    r->magic = r->use_icmp && r->o->probe ? PROBE_ECHO : WIRE_MAGIC;
    r->fd = r->use_icmp ? r->icmp.fd : socket_udp(&r->peer);
    return r->fd < 0 ? -1 : 0;
}

static void print_lost(struct rtt *r, int64_t seq) {
    if (r->o->each) {
        printf("{\"t_ns\":%lld,\"seq\":%lld,\"lost\":true}\n", (long long)r->sent_ns[seq],
               (long long)seq);
    }
}

static void send_probe(struct rtt *r) {
    static unsigned char body[65536];
    struct wire_header h = {
        .magic = r->magic, .kind = WIRE_ECHO, .session = r->session, .seq = (uint32_t)r->sent};
    size_t overhead = host_overhead(&r->peer); /* ICMP's header is as long as UDP's */
    size_t size = (size_t)r->o->size - overhead;
    if (size < sizeof h) {
        size = sizeof h;
    }
    int64_t seq = r->sent++;
    r->sent_ns[seq] = h.sent_ns = now_ns();
    memcpy(body, &h, sizeof h);
    ssize_t rc = r->use_icmp ? echo_send(&r->icmp, (uint16_t)seq, body, size)
                             : host_send(r->fd, &r->peer, body, size);
    if (rc < 0) {
        r->state[seq] = LOST;
        r->unsent++;
        print_lost(r, seq);
    }
}

static void on_reply(struct rtt *r, const unsigned char *body, size_t size, int64_t at) {
    struct wire_header h;
    if (size < sizeof h) {
        return;
    }
    memcpy(&h, body, sizeof h);
    int64_t seq = h.seq;
    if (h.magic != r->magic || h.session != r->session || seq >= r->sent ||
        r->state[seq] != WAITING) {
        return;
    }
    r->state[seq] = ANSWERED;
    r->received++;
    int64_t rtt = at - r->sent_ns[seq];
    sample_add(&r->times, rtt);
    if (r->o->each) {
        printf("{\"t_ns\":%lld,\"seq\":%lld,\"rtt_us\":%.3f}\n", (long long)r->sent_ns[seq],
               (long long)seq, (double)rtt / 1e3);
    }
}

static void receive(struct rtt *r) {
    for (;;) {
        int64_t at, wall;
        ssize_t got = receive_stamped(r->fd, r->packet, sizeof r->packet, &at, &wall);
        if (got < 0) {
            return; /* nothing more, or an ICMP error about a probe that will count as lost */
        }
        size_t size = (size_t)got;
        const unsigned char *body = r->packet;
        if (r->use_icmp) {
            body = echo_payload(&r->icmp, r->packet, size, &size);
        }
        if (body) {
            on_reply(r, body, size, at);
        }
    }
}

static void expire(struct rtt *r) {
    int64_t now = now_ns();
    for (; r->oldest_waiting < r->sent; r->oldest_waiting++) {
        int64_t seq = r->oldest_waiting;
        if (r->state[seq] != WAITING) {
            continue;
        }
        if (now - r->sent_ns[seq] < r->o->timeout_ns) {
            return;
        }
        r->state[seq] = LOST;
        print_lost(r, seq);
    }
}

/* When something is due next: a probe, or the oldest unanswered probe's end. */
static int64_t next_due(const struct rtt *r, int64_t next_send) {
    if (r->oldest_waiting >= r->sent) {
        return next_send;
    }
    int64_t end = r->sent_ns[r->oldest_waiting] + r->o->timeout_ns;
    return r->sent < r->o->count && next_send < end ? next_send : end;
}

static void rtt_loop(struct rtt *r) {
    int64_t start = now_ns();
    while (r->sent < r->o->count || r->oldest_waiting < r->sent) {
        int64_t next_send = start + r->sent * r->o->interval_ns;
        if (r->sent < r->o->count && now_ns() >= next_send) {
            send_probe(r);
            continue;
        }
        struct pollfd p = {.fd = r->fd, .events = POLLIN};
        poll(&p, 1, poll_ms(next_due(r, next_send)));
        receive(r);
        expire(r);
    }
}

static void rtt_print(struct rtt *r) {
    printf("{\"summary\":true,\"host\":");
    json_string(r->o->host);
    printf(",\"address\":\"%s\",\"mode\":\"%s\",\"sent\":%lld,\"received\":%lld,\"lost\":%lld,"
           "\"unsent\":%lld",
           r->peer.text, r->use_icmp ? "icmp" : "udp", (long long)r->sent, (long long)r->received,
           (long long)(r->sent - r->received), (long long)r->unsent);
    sample_json(&r->times);
    puts("}");
}

int cmd_rtt(int argc, char **argv) {
    struct options o = {.port = DEFAULT_PORT,
                        .count = 10,
                        .interval_ns = NS_PER_S / 10,
                        .timeout_ns = 2 * NS_PER_S,
                        .size = 84,
                        .mode = "auto"};
    static struct rtt r;
    r = (struct rtt){.o = &o, .fd = -1};
    if (options_parse(argc, argv, "port count interval mode size timeout each probe", true, &o)) {
        return EXIT_USAGE;
    }
    if (rtt_open(&r)) {
        return EXIT_FAILED;
    }
    r.sent_ns = calloc((size_t)o.count, sizeof *r.sent_ns);
    r.state = calloc((size_t)o.count, 1);
    int rc = EXIT_FAILED;
    if (!r.sent_ns || !r.state || getrandom(&r.session, sizeof r.session, 0) < 0) {
        say_error(errno, "preparing", "the probes");
        goto cleanup;
    }
    rtt_loop(&r);
    rtt_print(&r);
    rc = r.received ? EXIT_OK : EXIT_FAILED;
cleanup:
    free(r.sent_ns);
    free(r.state);
    sample_free(&r.times);
    close(r.fd);
    return rc;
}
