/* Serving a session with poll(2).
 *
 * Answers are kept until the client reads them, so that a client may send many commands before it
 * reads anything; when too many are kept, no more is read. The descriptors belong to the client
 * too, so they are not set to non-blocking: after poll a read never waits, and neither does a write
 * of at most PIPE_BUF bytes. A socket takes what it has room for at once, so that a long answer
 * does not wake the client for each part.
 */
#include "server.h"

#include "clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWERS_LIMIT (64u << 20)

/* A line on its way in. */
struct arriving {
    char line[PROTO_LINE_LIMIT + 1];
    size_t length;
    bool skipping; /* the rest of a line that was too long */
};

static void end_line(struct session *s, struct arriving *a) {
    if (a->skipping) {
        session_too_long(s);
    } else {
        a->line[a->length] = '\0';
        session_line(s, a->line, a->length);
    }
    a->length = 0;
    a->skipping = false;
    /* What is committed for now is done before the next line is looked at. */
    session_due(s);
}

static void feed(struct session *s, struct arriving *a, const char *bytes, size_t count) {
    while (count && !s->quit) {
        const char *newline = memchr(bytes, '\n', count);
        size_t part = newline ? (size_t)(newline - bytes) : count;
        if (a->length + part > PROTO_LINE_LIMIT) {
            a->skipping = true;
        }
        if (!a->skipping) {
            memcpy(a->line + a->length, bytes, part);
            a->length += part;
        }
        if (newline) {
            end_line(s, a);
            part++;
        }
        bytes += part;
        count -= part;
    }
}

/* 1, 0 at the end of the commands, or -errno. */
static int receive(const struct server *server, struct arriving *a) {
    char bytes[65536];
    ssize_t got = read(server->in, bytes, sizeof bytes);
    if (got < 0) {
        return errno == EINTR || errno == EAGAIN ? 1 : errno == ECONNRESET ? 0 : -errno;
    }
    feed(server->session, a, bytes, (size_t)got);
    return got > 0;
}

static int transmit(const struct server *server) {
    struct text *out = server->session->out;
    size_t bytes = text_left(out);
    ssize_t sent = send(server->out, out->bytes + out->begin, bytes, MSG_DONTWAIT);
    if (sent < 0 && errno == ENOTSOCK) {
        sent = write(server->out, out->bytes + out->begin, bytes < PIPE_BUF ? bytes : PIPE_BUF);
    }
    if (sent < 0) {
        return errno == EINTR || errno == EAGAIN ? 1 : errno == EPIPE ? 0 : -errno;
    }
    text_take(out, (size_t)sent);
    return 1;
}

/* Waits for a descriptor or until `next_ns`. 1, 0 if a signal came, or -errno. */
static int wait_turn(struct pollfd *fds, nfds_t count, uint64_t now_ns, uint64_t next_ns) {
    uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
    struct timespec t = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    int ready = ppoll(fds, count, next_ns == TIME_NEVER ? NULL : &t, NULL);
    if (ready < 0 && errno != EINTR) {
        return -errno;
    }
    for (nfds_t i = 0; ready <= 0 && i < count; i++) {
        fds[i].revents = 0; /* nothing in `fds` is to be looked at then */
    }
    return ready >= 0;
}

/* 1, 0 at the end, or -errno. */
static int take_turn(const struct server *server, struct arriving *a) {
    struct session *s = server->session;
    bool listen = !s->quit && text_left(s->out) < ANSWERS_LIMIT;
    struct pollfd fds[] = {{listen ? server->in : -1, POLLIN, 0},
                           {text_left(s->out) ? server->out : -1, POLLOUT, 0},
                           {server->wake, POLLIN, 0}};
    /* What comes before this moment is readable after the wait, however long we were held up. */
    uint64_t looked_ns = clock_now();
    int seen = wait_turn(fds, 3, looked_ns, session_next(s));
    if (seen < 0) {
        return seen;
    }
    if (fds[2].revents) {
        server->woken((struct proto *)(void *)s);
    }
    session_due(s);
    int result = fds[1].revents ? transmit(server) : 1;
    if (result == 1 && fds[0].revents) {
        result = receive(server, a);
    } else if (result == 1 && seen) {
        session_judge(s, looked_ns);
    }
    return result == 1 && s->out->failed ? -ENOMEM : result;
}

int server_run(const struct server *server) {
    struct arriving arriving = {.length = 0};
    int result = 1;
    while (result == 1 && (!server->session->quit || text_left(server->session->out))) {
        result = take_turn(server, &arriving);
    }
    return result < 0 ? result : 0;
}
