/* tprobe owd: error of the one-way delay between two network namespaces of one machine.
 *
 * One process with a socket in each namespace, so both ends read one clock: a datagram carries the
 * wall time just before it is sent, the receiver takes the kernel's receive time stamp. What is
 * left after taking off --delay is the error, the sender's own way down its stack included.
 * Probes are spaced at random around --interval so that no timer can be in step with them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "options.h"
#include "wire.h"

struct owd {
    const struct options *o;
    struct host peer;
    int tx, rx;
    uint32_t session;
    struct sample errors;
    int64_t received, unsent;
};

static int enter(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return say_error(errno, "opening network namespace", path);
    }
    int rc = setns(fd, CLONE_NEWNET);
    int err = errno;
    close(fd);
    return rc ? say_error(err, "entering network namespace", path) : 0;
}

static int open_receiver(struct owd *w) {
    struct sockaddr_storage any = {.ss_family = w->peer.address.ss_family};
    int on = 1;
    if (any.ss_family == AF_INET) {
        ((struct sockaddr_in *)&any)->sin_port = htons((uint16_t)w->o->port);
    } else {
        ((struct sockaddr_in6 *)&any)->sin6_port = htons((uint16_t)w->o->port);
    }
    w->rx = socket(any.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (w->rx < 0) {
        return say_error(errno, "opening", "the receiving socket");
    }
    setsockopt(w->rx, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socket_buffers(w->rx, 4 << 20);
    if (bind(w->rx, (struct sockaddr *)&any, w->peer.length)) {
        return say_error(errno, "binding", "the receiving port");
    }
    return socket_timestamps(w->rx);
}

static int owd_open(struct owd *w) {
    const struct options *o = w->o;
    if (host_resolve(o->host, o->family, (uint16_t)o->port, &w->peer)) {
        return -1;
    }
    if ((o->rx_netns && enter(o->rx_netns)) || open_receiver(w)) {
        return -1;
    }
    if (o->tx_netns && enter(o->tx_netns)) {
        return -1;
    }
    w->tx = socket_udp(&w->peer);
    return w->tx < 0 ? -1 : 0;
}

/* Thread: sends all probes. Real-time where permitted, so that nothing runs between reading the
 * clock and sending. */
static void *send_probes(void *argument) {
    struct owd *w = argument;
    struct sched_param realtime = {.sched_priority = 20};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &realtime);
    prctl(PR_SET_TIMERSLACK, 1);
    uint64_t random = (uint64_t)w->session << 32 | 1;
    unsigned char body[64] = {0};
    for (int64_t i = 0; i < w->o->count; i++) {
        struct wire_header h = {.magic = WIRE_MAGIC,
                                .kind = WIRE_DATA,
                                .session = w->session,
                                .seq = (uint32_t)i,
                                .sent_ns = wall_ns()};
        memcpy(body, &h, sizeof h);
        if (send(w->tx, body, sizeof body, MSG_NOSIGNAL) < 0) {
            w->unsent++;
        }
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t interval = w->o->interval_ns;
        sleep_until(now_ns() + interval / 2 +
                    (interval ? (int64_t)((random >> 33) % interval) : 0));
    }
    return NULL;
}

static void receive_until(struct owd *w, int64_t end) {
    unsigned char body[2048];
    while (w->received < w->o->count && now_ns() < end) {
        poll(&(struct pollfd){.fd = w->rx, .events = POLLIN}, 1, poll_ms(end));
        int64_t at, wall;
        ssize_t got;
        while ((got = receive_stamped(w->rx, body, sizeof body, &at, &wall)) >= 0) {
            struct wire_header h;
            if (got < (ssize_t)sizeof h) {
                continue;
            }
            memcpy(&h, body, sizeof h);
            if (h.magic != WIRE_MAGIC || h.session != w->session) {
                continue;
            }
            w->received++;
            sample_add(&w->errors, wall - h.sent_ns - w->o->delay_ns);
        }
    }
}

static void print_result(struct owd *w) {
    printf("{\"summary\":true,\"what\":\"one-way delay error\",\"expected_us\":%.3f,\"sent\":%lld,"
           "\"received\":%lld,\"lost\":%lld",
           (double)w->o->delay_ns / 1e3, (long long)w->o->count, (long long)w->received,
           (long long)(w->o->count - w->received));
    sample_json(&w->errors);
    puts("}");
}

int cmd_owd(int argc, char **argv) {
    struct options o = {.port = DEFAULT_PORT + 1, .count = 1000, .interval_ns = NS_PER_S / 200};
    struct owd w = {.o = &o, .tx = -1, .rx = -1};
    pthread_t sender;
    if (options_parse(argc, argv, "port count interval delay tx-netns rx-netns", true, &o)) {
        return EXIT_USAGE;
    }
    int rc = EXIT_FAILED;
    if (getrandom(&w.session, sizeof w.session, 0) < 0 || owd_open(&w)) {
        goto cleanup;
    }
    if ((errno = pthread_create(&sender, NULL, send_probes, &w))) {
        say_error(errno, "starting", "the sending thread");
        goto cleanup;
    }
    /* Twice the planned time and a second: a probe can be late, not for ever. */
    receive_until(&w, now_ns() + 2 * o.count * o.interval_ns + o.delay_ns + NS_PER_S);
    pthread_join(sender, NULL);
    print_result(&w);
    rc = w.received ? EXIT_OK : EXIT_FAILED;
cleanup:
    sample_free(&w.errors);
    if (w.tx >= 0) {
        close(w.tx);
    }
    if (w.rx >= 0) {
        close(w.rx);
    }
    return rc;
}
