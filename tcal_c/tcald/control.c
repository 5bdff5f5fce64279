/* One thread: commands are read, batches applied when they are due, answers written.
 *
 * Answers are kept until the client reads them; when too many are kept, tcald stops reading. The
 * descriptors belong to the client too, so they are not set to non-blocking: after poll a read
 * never waits, and neither does a write of at most PIPE_BUF bytes.
 */
#include "control.h"

#include "proto.h"

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
    int in;
    int out_fd;
    const char *lacks;
    struct stage stage;
    struct proto proto;
    struct text out;
    char line[PROTO_LINE_LIMIT + 1];
    size_t length; /* of the line so far */
    bool skipping; /* the rest of a line that was too long */
};

static uint64_t host_clock(void *context) {
    struct timespec t;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void host_describe(void *context, struct text *out) {
    (void)context;
    text_add(out, "version=%s paths=1", VERSION);
}

static const char *host_lacks(void *context) {
    return ((const struct control *)context)->lacks;
}

static void end_line(struct control *c) {
    if (c->skipping) {
        proto_too_long(&c->proto);
    } else {
        c->line[c->length] = '\0';
        proto_line(&c->proto, c->line, c->length);
    }
    c->length = 0;
    c->skipping = false;
    /* What is committed for now is done before the next line is looked at. */
    proto_due(&c->proto, host_clock(NULL));
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

/* Waits for a descriptor or the next due time. 1, 0 if a signal came, or -errno. */
static int wait_for(const struct control *c, struct pollfd fds[2], uint64_t now_ns) {
    uint64_t next = c->proto.quit ? TIME_NEVER : proto_next(&c->proto);
    uint64_t wait_ns = next > now_ns ? next - now_ns : 0;
    struct timespec limit = {.tv_sec = (time_t)(wait_ns / NS_PER_S),
                             .tv_nsec = (long)(wait_ns % NS_PER_S)};
    int ready = ppoll(fds, 2, next == TIME_NEVER ? NULL : &limit, NULL);
    return ready < 0 && errno != EINTR ? -errno : ready >= 0;
}

static int serve(struct control *c) {
    while (!c->proto.quit || text_left(&c->out)) {
        bool listen = !c->proto.quit && text_left(&c->out) < ANSWERS_LIMIT;
        struct pollfd fds[] = {{listen ? c->in : -1, POLLIN, 0},
                               {text_left(&c->out) ? c->out_fd : -1, POLLOUT, 0}};
        /* What comes before this moment is readable after the wait, however long we were held up.
         */
        uint64_t looked_ns = host_clock(NULL);
        int seen = wait_for(c, fds, looked_ns);
        if (seen < 0) {
            return seen;
        }
        if (!c->proto.quit) {
            proto_due(&c->proto, host_clock(NULL));
        }
        int result = fds[1].revents ? transmit(c) : 1;
        if (result == 1 && fds[0].revents) {
            result = receive(c);
        } else if (result == 1 && seen && !c->proto.quit) {
            proto_lease(&c->proto, looked_ns);
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

static void keep_number(void *context, const struct tcal_port_info *info) {
    *(uint32_t *)context = info->port;
}

static void detach_all(struct tcal *tcal) {
    struct tcal_error error;
    for (uint32_t last = TCAL_NONE;; last = TCAL_NONE) {
        tcal_ports(tcal, keep_number, &last);
        if (last == TCAL_NONE) {
            return;
        }
        tcal_detach(tcal, last, &error);
    }
}

int control_serve(struct tcal *tcal, const char *lacks, int in, int out) {
    struct control *c = calloc(1, sizeof *c);
    if (!c || !stage_init(&c->stage, tcal)) {
        return -ENOMEM;
    }
    struct proto_host host = {
        .context = c, .clock = host_clock, .describe = host_describe, .lacks = host_lacks};
    c->in = in;
    c->out_fd = out;
    c->lacks = lacks;
    c->proto = (struct proto){.tcal = tcal, .stage = &c->stage, .host = &host, .out = &c->out};
    int result = serve(c);
    detach_all(tcal);
    stage_destroy(&c->stage);
    text_free(&c->out);
    free(c);
    return result;
}
