/* The datagram sender: a batch of what is due, sleep to the next, ask the receiver now and then.
 *
 * Bytes are counted at layer 3 (IP and UDP headers included). The receiver's count comes back over
 * the same path in answer to WIRE_ASK, so an answer can be lost; the last one is asked for again.
 */
#include "udp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "wire.h"

enum { BATCH = 32, FINAL_ASKS = 20 };

struct flow {
    const struct options *o;
    struct host peer;
    int fd;
    size_t payload, overhead;
    uint32_t session;
    int64_t start_ns, sent, refused;
    struct wire_report last; /* the receiver's newest answer */
    int64_t asked;
};

static int64_t due_at(const struct flow *f, int64_t n) {
    if (!f->o->pps) {
        return 0;
    }
    /* Exact without overflow for a day at any rate: whole seconds apart. */
    return f->start_ns + n / f->o->pps * NS_PER_S + n % f->o->pps * NS_PER_S / f->o->pps;
}

static void send_batch(struct flow *f, int64_t now) {
    static unsigned char bytes[BATCH][65536];
    struct iovec io[BATCH];
    struct mmsghdr messages[BATCH];
    unsigned count = 0;
    for (; count < BATCH && due_at(f, f->sent + count) <= now; count++) {
        struct wire_header h = {.magic = WIRE_MAGIC,
                                .kind = WIRE_DATA,
                                .session = f->session,
                                .seq = (uint32_t)(f->sent + count),
                                .sent_ns = now,
                                .skip_ns = f->o->skip_ns};
        memcpy(bytes[count], &h, sizeof h);
        io[count] = (struct iovec){bytes[count], f->payload};
        messages[count] = (struct mmsghdr){.msg_hdr = {.msg_iov = &io[count],
                                                       .msg_iovlen = 1,
                                                       .msg_name = &f->peer.address,
                                                       .msg_namelen = f->peer.length}};
    }
    int sent = sendmmsg(f->fd, messages, count, MSG_NOSIGNAL);
    if (sent > 0) {
        f->sent += sent;
    } else if (errno == EAGAIN) {
        poll(&(struct pollfd){.fd = f->fd, .events = POLLOUT}, 1, 1);
    } else { /* no route, device down, refused: these datagrams are lost, time goes on */
        f->refused += count;
        f->sent += f->o->pps ? count : 0;
        if (!f->o->pps) {
            sleep_until(now + NS_PER_S / 1000);
        }
    }
}

static void ask(struct flow *f) {
    struct wire_report question = {.header = {.magic = WIRE_MAGIC,
                                              .kind = WIRE_ASK,
                                              .session = f->session,
                                              .seq = (uint32_t)++f->asked}};
    host_send(f->fd, &f->peer, &question, sizeof question);
}

/* Takes the answers that have come. True when the newest question is answered. */
static bool read_answers(struct flow *f) {
    struct wire_report r;
    ssize_t got;
    while ((got = recv(f->fd, &r, sizeof r, MSG_DONTWAIT)) >= 0) {
        if (got == (ssize_t)sizeof r && r.header.magic == WIRE_MAGIC &&
            r.header.kind == WIRE_REPORT && r.header.session == f->session) {
            f->last = r;
        }
    }
    return f->asked > 0 && f->last.header.seq == (uint32_t)f->asked;
}

static bool ask_finally(struct flow *f) {
    for (int i = 0; i < FINAL_ASKS; i++) {
        ask(f);
        int64_t end = now_ns() + NS_PER_S / 4;
        while (now_ns() < end) {
            poll(&(struct pollfd){.fd = f->fd, .events = POLLIN}, 1, poll_ms(end));
            if (read_answers(f)) {
                return true;
            }
        }
    }
    return false;
}

/* A line for the newest answer: what arrived between the answer before and this one, timed by the
 * receiver's clock. */
static void print_answer(struct flow *f, const struct wire_report *before) {
    const struct wire_report *r = &f->last;
    uint64_t packets = r->packets - before->packets;
    uint64_t bytes = r->bytes - before->bytes + packets * f->overhead;
    double seconds = (double)(r->header.sent_ns - before->header.sent_ns) / 1e9;
    printf("{\"t_ns\":%lld,\"seconds\":%.6f,\"sent\":%lld,\"received\":%llu,\"ip_bytes\":%llu,"
           "\"bps\":%.0f}\n",
           (long long)now_ns(), seconds, (long long)f->sent, (unsigned long long)r->packets,
           (unsigned long long)bytes, seconds > 0 ? (double)bytes * 8 / seconds : 0);
}

static void print_silence(const struct flow *f) {
    printf("{\"t_ns\":%lld,\"sent\":%lld,\"received\":null,\"bps\":0}\n", (long long)now_ns(),
           (long long)f->sent);
}

/* Asks once an interval; prints the answer when it comes, or at the next turn that none came. */
struct lines {
    int64_t next;
    bool waiting;
    struct wire_report before;
};

static void keep_lines(struct flow *f, struct lines *l, int64_t now) {
    if (!f->o->interval_ns) {
        return;
    }
    if (l->waiting && read_answers(f)) {
        print_answer(f, &l->before);
        l->before = f->last;
        l->waiting = false;
    }
    if (now < l->next) {
        return;
    }
    if (l->waiting) {
        print_silence(f);
    }
    ask(f);
    l->waiting = true;
    l->next += f->o->interval_ns;
}

static void send_all(struct flow *f) {
    int64_t end = f->start_ns + f->o->seconds_ns;
    struct lines l = {.next = f->start_ns + f->o->interval_ns,
                      .before.header.sent_ns = f->start_ns};
    for (int64_t now; (now = now_ns()) < end;) {
        int64_t due = due_at(f, f->sent);
        if (due <= now) {
            send_batch(f, now);
        } else {
            sleep_until(due < end ? due : end);
        }
        keep_lines(f, &l, now);
    }
}

static void print_summary(struct flow *f, bool answered) {
    int64_t elapsed = now_ns() - f->start_ns;
    printf("{\"summary\":true,\"protocol\":\"udp\",\"host\":");
    json_string(f->o->host);
    printf(",\"address\":\"%s\",\"ip_size\":%zu,\"sent\":%lld,\"refused\":%lld", f->peer.text,
           f->payload + f->overhead, (long long)f->sent, (long long)f->refused);
    const struct wire_report *r = &f->last;
    if (answered) {
        double span = (double)(r->last_ns - r->first_ns) / 1e9;
        double ip_bytes = (double)r->span_bytes + (double)(r->span_packets * f->overhead);
        printf(",\"received\":%llu,\"lost\":%lld,\"span_seconds\":%.9f,\"span_packets\":%llu,"
               "\"pps\":%.1f,\"bps\":%.1f",
               (unsigned long long)r->packets, (long long)f->sent - (long long)r->packets, span,
               (unsigned long long)r->span_packets, span > 0 ? (double)r->span_packets / span : 0,
               span > 0 ? ip_bytes * 8 / span : 0);
    } else {
        printf(",\"received\":null");
    }
    printf(",\"seconds\":%.6f}\n", (double)elapsed / 1e9);
}

int udp_run(const struct options *o) {
    struct flow f = {.o = o};
    if (host_resolve(o->host, o->family, (uint16_t)o->port, &f.peer)) {
        return EXIT_FAILED;
    }
    if (getrandom(&f.session, sizeof f.session, 0) < 0) {
        say_error(errno, "drawing", "a session number");
        return EXIT_FAILED;
    }
    f.overhead = host_overhead(&f.peer);
    f.payload = (size_t)o->size - f.overhead;
    if (f.payload < sizeof(struct wire_header)) {
        f.payload = sizeof(struct wire_header); /* ip_size in the summary says what was sent */
    }
    f.fd = socket_udp(&f.peer);
    if (f.fd < 0) {
        return EXIT_FAILED;
    }
    f.start_ns = now_ns();
    send_all(&f);
    bool answered = ask_finally(&f);
    print_summary(&f, answered);
    if (!answered) {
        say_error(0, "no answer about what arrived from", o->host);
    }
    close(f.fd);
    return answered ? EXIT_OK : EXIT_FAILED;
}

int cmd_blast(int argc, char **argv) {
    struct options o = {.port = DEFAULT_PORT, .seconds_ns = 5 * NS_PER_S, .size = 64};
    if (options_parse(argc, argv, "port seconds pps size skip", true, &o)) {
        return EXIT_USAGE;
    }
    return udp_run(&o);
}
