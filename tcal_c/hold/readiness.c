/* Whether a program that runs is ready.
 *
 * Tried at once, then after 100 ms, and later and later up to once a second: a command that ends
 * with 0, or a connection to a port of the container's own addresses. Output: the report `ready`,
 * or `not_ready` when the time is over; then nothing is tried any more. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hold.h"

enum { FIRST_PAUSE_MS = 100, LAST_PAUSE_MS = 1000, CONNECT_MS = 10 };

void readiness_begin(struct readiness *self, const struct options *wanted, int64_t now_ms) {
    *self = (struct readiness){.argv = wanted->ready,
                               .port = wanted->ready_port,
                               .user = wanted->user,
                               .watching = wanted->ready || wanted->ready_port,
                               .next_ms = now_ms,
                               .pause_ms = FIRST_PAUSE_MS,
                               .give_up_ms = now_ms + wanted->ready_timeout_ms};
}

void readiness_end(struct readiness *self) {
    if (self->check > 0) {
        kill(-self->check, SIGKILL); /* it leads a session of its own */
    }
    self->watching = false;
}

int64_t readiness_due_ms(const struct readiness *self) {
    if (!self->watching) {
        return -1;
    }
    bool waits = self->check > 0 || self->next_ms > self->give_up_ms;
    return waits ? self->give_up_ms : self->next_ms;
}

/* These addresses are this machine's own, so a connection is made or refused at once. */
static bool connects(int family, const char *address, int port) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool is_six = family == AF_INET6;
    void *into = is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr;
    if (!address || inet_pton(family, address, into) != 1) {
        return false;
    }
    int descriptor = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
        return false;
    }
    const struct sockaddr *to = is_six ? (void *)&six : (void *)&four;
    struct pollfd made = {.fd = descriptor, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    bool up = connect(descriptor, to, is_six ? sizeof six : sizeof four) == 0;
    if (!up && errno == EINPROGRESS && poll(&made, 1, CONNECT_MS) == 1) {
        up = getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    }
    close(descriptor);
    return up;
}

static bool port_open(int port) {
    return connects(AF_INET, "127.0.0.1", port) || connects(AF_INET, getenv("TSTORM_IPV4"), port) ||
           connects(AF_INET6, "::1", port) || connects(AF_INET6, getenv("TSTORM_IPV6"), port);
}

static void tried(struct readiness *self, bool ready, int64_t now_ms) {
    if (ready) {
        self->watching = false;
        report("ready", NULL, 0);
        return;
    }
    self->next_ms = now_ms + self->pause_ms;
    self->pause_ms = 2 * self->pause_ms < LAST_PAUSE_MS ? 2 * self->pause_ms : LAST_PAUSE_MS;
}

void readiness_act(struct readiness *self, int64_t now_ms) {
    if (!self->watching) {
        return;
    }
    if (now_ms >= self->give_up_ms) {
        readiness_end(self);
        report("not_ready", NULL, 0);
    } else if (self->check == 0 && now_ms >= self->next_ms && self->argv) {
        pid_t pid = program_start(self->argv, self->user, true);
        self->check = pid > 0 ? pid : 0;
        if (pid < 0) {
            tried(self, false, now_ms); /* its program may still be installed */
        }
    } else if (self->check == 0 && now_ms >= self->next_ms) {
        tried(self, port_open(self->port), now_ms);
    }
}

bool readiness_reaped(struct readiness *self, pid_t ended, int wait_status, int64_t now_ms) {
    if (self->check == 0 || ended != self->check) {
        return false;
    }
    self->check = 0;
    if (self->watching) {
        tried(self, WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0, now_ms);
    }
    return true;
}
