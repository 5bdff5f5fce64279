/* Serving the protocol with poll(2).
 *
 * Answers are kept until the client reads them, so that a client may send many commands before it
 * reads anything; when too many are kept, pktd stops reading. The descriptors belong to the client
 * too, so they are not set to non-blocking: after poll a read never waits, and neither does a write
 * of at most PIPE_BUF bytes.
 */
#include "control.h"

#include "clock.h"
#include "closer.h"
#include "proto.h"
#include "stamp.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ANSWERS_LIMIT (64u << 20)

struct control {
    struct loop *loop;
    int program; /* the stamp's, or -1 */
    int in;
    int out_fd;
    struct stage stage;
    struct proto proto;
    struct text out;
    char line[PROTO_LINE_LIMIT + 1];
    size_t length;          /* of the line so far */
    bool skipping;          /* the rest of a line that was too long */
    uint64_t lost;          /* packets that sockets had no room for */
    struct message *closed; /* the last port the data thread let go of */
    struct port *port[PORT_LIMIT];
};

/* -- what the protocol asks for ---------------------------------------------------------------- */

static uint64_t host_clock(void *context) {
    (void)context;
    return clock_now();
}

static void host_describe(void *context, struct text *out) {
    struct control *c = context;
    text_add(out, "version=%s sched=%s stamp=%s lock=%d spin_ns=%llu", PKTD_VERSION,
             c->loop->is_fifo ? "fifo" : "other", c->program >= 0 ? "bpf" : "read",
             c->loop->is_locked, (unsigned long long)counter_get(&c->loop->pace.spin_ns));
}

static struct message *new_message(enum message_kind kind) {
    struct message *message = calloc(1, sizeof *message);
    if (!message) {
        /* Nothing can be promised to the client any more. */
        perror("pktd: out of memory");
        exit(1);
    }
    message->kind = kind;
    return message;
}

static bool host_open(void *context, const struct port_request *request, struct text *out,
                      struct refusal *r) {
    struct control *c = context;
    char why[240];
    /* Asked before: what was in the way may be gone when the refusal is here. */
    bool closing = closer_busy();
    struct port *port = port_open(request, c->program, why, sizeof why);
    if (!port && closing) {
        /* A device of that name may have been on its way out. */
        closer_wait();
        port = port_open(request, c->program, why, sizeof why);
    }
    if (!port) {
        return refuse(r, "system", "%s", why);
    }
    c->port[request->number] = port;
    text_add(out, "ok kind=%s mac=%s stamp=%s\n", port_kind_name(port->kind), PORT_MAC_TEXT,
             port_stamp_name(port->stamp));
    struct message *message = new_message(MESSAGE_OPEN);
    message->port = port;
    loop_post(c->loop, message);
    return true;
}

static void finish_message(struct control *c, struct message *message) {
    switch (message->kind) {
    case MESSAGE_BATCH:
        proto_applied(&c->proto, message->batch);
        batch_free(message->batch);
        break;
    case MESSAGE_RESERVE:
        free(message->room.heap);
        free(message->room.slots);
        break;
    case MESSAGE_CLOSE:
        c->closed = message;
        return;
    default:
        break;
    }
    free(message);
}

static void collect(struct control *c) {
    uint64_t count;
    if (read(c->loop->report, &count, sizeof count) < 0) {
        return;
    }
    for (struct message *m = loop_collect(c->loop), *next; m; m = next) {
        next = m->next;
        finish_message(c, m);
    }
}

/* What the port's socket has lost since it was last asked. */
static void count_lost(struct control *c, struct port *port) {
    uint64_t before = port->lost;
    c->lost += port_lost(port) - before;
}

static void host_close(void *context, uint32_t number) {
    struct control *c = context;
    struct message *message = new_message(MESSAGE_CLOSE);
    message->port = c->port[number];
    loop_post(c->loop, message);
    while (c->closed != message) {
        collect(c);
    }
    c->closed = NULL;
    c->port[number] = NULL;
    count_lost(c, message->port);
    closer_close(message->port);
    free(message);
}

static void host_reserve(void *context, const struct engine_room *room) {
    struct control *c = context;
    struct message *message = new_message(MESSAGE_RESERVE);
    message->room = *room;
    loop_post(c->loop, message);
}

static void host_commit(void *context, struct batch *batch) {
    struct control *c = context;
    struct message *message = new_message(MESSAGE_BATCH);
    message->batch = batch;
    loop_post(c->loop, message);
}

static uint64_t data_cpu_ns(const struct loop *loop) {
    clockid_t id;
    struct timespec t;
    if (pthread_getcpuclockid(loop->thread, &id) || clock_gettime(id, &t)) {
        return 0;
    }
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t lost_by_sockets(struct control *c) {
    for (uint32_t i = 0; i < c->stage.port_end; i++) {
        if (c->port[i]) {
            count_lost(c, c->port[i]);
        }
    }
    return c->lost;
}

static void host_engine_stats(void *context, struct text *out) {
    struct control *c = context;
    const struct loop *loop = c->loop;
    text_add(out, "drop_input=%llu late_p50_ns=%llu late_p99_ns=%llu late_max_ns=%llu cpu_ns=%llu",
             (unsigned long long)lost_by_sockets(c),
             (unsigned long long)histogram_quantile(&loop->late, 500),
             (unsigned long long)histogram_quantile(&loop->late, 990),
             (unsigned long long)counter_get(&loop->late.highest),
             (unsigned long long)data_cpu_ns(loop));
    text_add(out, " spin_ns=%llu", (unsigned long long)counter_get(&loop->pace.spin_ns));
}

static const struct proto_host host_functions = {
    .clock = host_clock,
    .describe = host_describe,
    .open = host_open,
    .close = host_close,
    .reserve = host_reserve,
    .commit = host_commit,
    .engine_stats = host_engine_stats,
};

/* -- bytes in and out -------------------------------------------------------------------------- */

static void end_line(struct control *c) {
    if (c->skipping) {
        proto_too_long(&c->proto);
    } else {
        c->line[c->length] = '\0';
        proto_line(&c->proto, c->line, c->length);
    }
    c->length = 0;
    c->skipping = false;
}

static void feed(struct control *c, const char *bytes, size_t count) {
    while (count && !c->proto.quit) {
        const char *newline = memchr(bytes, '\n', count);
        size_t part = newline ? (size_t)(newline - bytes) : count;
        if (c->length + part > PROTO_LINE_LIMIT) {
            c->skipping = true;
        }
        if (!c->skipping) {
            memcpy(c->line + c->length, bytes, part);
            c->length += part;
        }
        if (newline) {
            end_line(c);
            part++;
        }
        bytes += part;
        count -= part;
    }
}

/* 1, 0 at the end of the commands, or -errno. */
static int receive(struct control *c) {
    char bytes[65536];
    ssize_t got = read(c->in, bytes, sizeof bytes);
    if (got < 0) {
        return errno == EINTR || errno == EAGAIN ? 1 : errno == ECONNRESET ? 0 : -errno;
    }
    feed(c, bytes, (size_t)got);
    return got > 0;
}

static int transmit(struct control *c) {
    size_t bytes = text_left(&c->out) < PIPE_BUF ? text_left(&c->out) : PIPE_BUF;
    ssize_t sent = write(c->out_fd, c->out.bytes + c->out.begin, bytes);
    if (sent < 0) {
        return errno == EINTR || errno == EAGAIN ? 1 : errno == EPIPE ? 0 : -errno;
    }
    text_take(&c->out, (size_t)sent);
    return 1;
}

static int serve(struct control *c) {
    while (!c->proto.quit || text_left(&c->out)) {
        bool listen = !c->proto.quit && text_left(&c->out) < ANSWERS_LIMIT;
        struct pollfd fds[] = {{listen ? c->in : -1, POLLIN, 0},
                               {c->loop->report, POLLIN, 0},
                               {text_left(&c->out) ? c->out_fd : -1, POLLOUT, 0}};
        if (poll(fds, 3, -1) < 0 && errno != EINTR) {
            return -errno;
        }
        if (fds[1].revents) {
            collect(c);
        }
        int result = 1;
        if (fds[2].revents) {
            result = transmit(c);
        }
        if (result == 1 && fds[0].revents) {
            result = receive(c);
        }
        if (result <= 0) {
            return result;
        }
        if (c->out.failed) {
            return -ENOMEM;
        }
    }
    return 0;
}

static void close_ports(struct control *c) {
    for (uint32_t i = 0; i < PORT_LIMIT; i++) {
        if (c->port[i]) {
            closer_close(c->port[i]);
        }
    }
    closer_wait();
}

int control_serve(struct loop *loop, int program, int in, int out) {
    struct control *c = calloc(1, sizeof *c);
    if (!c || !stage_init(&c->stage, loop->engine)) {
        return -ENOMEM;
    }
    struct proto_host host = host_functions;
    host.context = c;
    c->loop = loop;
    c->program = program;
    c->in = in;
    c->out_fd = out;
    c->proto =
        (struct proto){.stage = &c->stage, .engine = loop->engine, .host = &host, .out = &c->out};
    int result = serve(c);
    loop_stop(loop);
    /* The data thread, which used them, has ended. */
    close_ports(c);
    proto_destroy(&c->proto);
    stage_destroy(&c->stage);
    text_free(&c->out);
    free(c);
    return result;
}
