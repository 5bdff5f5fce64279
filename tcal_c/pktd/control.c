/* Serving the protocol with poll(2).
 *
 * Answers are kept until the client reads them, so that a client may send many commands before it
 * reads anything; when too many are kept, pktd stops reading. The descriptors belong to the client
 * too, so they are not set to non-blocking: after poll a read never waits, and neither does a write
 * of at most PIPE_BUF bytes.
 */
#include "control.h"

#include "clock.h"
#include "host.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ANSWERS_LIMIT (64u << 20)

struct control {
    struct host host;
    int in;
    int out_fd;
    struct stage stage;
    struct proto proto;
    struct text out;
    char line[PROTO_LINE_LIMIT + 1];
    size_t length; /* of the line so far */
    bool skipping; /* the rest of a line that was too long */
};

/* -- bytes in and out -------------------------------------------------------------------------- */

static void end_line(struct control *c) {
    host_heard(&c->host);
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

/* Waits for the client or the data thread, or for `wait_ns`. 1, 0 if a signal came, or -errno. */
static int wait_turn(struct pollfd *fds, nfds_t count, uint64_t wait_ns) {
    struct timespec t = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    int ready = ppoll(fds, count, wait_ns == TIME_NEVER ? NULL : &t, NULL);
    if (ready < 0 && errno != EINTR) {
        return -errno;
    }
    if (ready <= 0) {
        /* Nothing in `fds` is to be looked at then. */
        for (nfds_t i = 0; i < count; i++) {
            fds[i].revents = 0;
        }
    }
    return ready >= 0;
}

static int serve(struct control *c) {
    while (!c->proto.quit || text_left(&c->out)) {
        /* What comes before this moment is readable after the wait, however long we were held up.
         */
        uint64_t looked_ns = clock_now();
        uint64_t wait_ns = host_lease_left(&c->host, looked_ns);
        bool listen = !c->proto.quit && text_left(&c->out) < ANSWERS_LIMIT;
        struct pollfd fds[] = {{listen ? c->in : -1, POLLIN, 0},
                               {c->host.loop->report, POLLIN, 0},
                               {text_left(&c->out) ? c->out_fd : -1, POLLOUT, 0}};
        int seen = wait_turn(fds, 3, wait_ns);
        if (seen < 0) {
            return seen;
        }
        if (fds[1].revents) {
            host_collect(&c->host);
        }
        int result = fds[2].revents ? transmit(c) : 1;
        if (result == 1 && fds[0].revents) {
            result = receive(c);
        } else if (result == 1 && seen) {
            host_lease_judge(&c->host, looked_ns);
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

int control_serve(struct loop *loop, int program, int in, int out) {
    struct control *c = calloc(1, sizeof *c);
    if (!c || !stage_init(&c->stage, loop->engine)) {
        return -ENOMEM;
    }
    struct proto_host functions = host_functions;
    functions.context = &c->host;
    c->host.loop = loop;
    c->host.program = program;
    c->host.proto = &c->proto;
    c->in = in;
    c->out_fd = out;
    c->proto = (struct proto){
        .stage = &c->stage, .engine = loop->engine, .host = &functions, .out = &c->out};
    int result = serve(c);
    host_restore_ports(&c->host);
    loop_stop(loop);
    /* The data thread, which used them, has ended. */
    host_close_ports(&c->host);
    proto_destroy(&c->proto);
    stage_destroy(&c->stage);
    text_free(&c->out);
    free(c);
    return result;
}
