/* A line to another machine in virtual time: a stream of bytes, over which frames go with the time
 * at which they arrive. What carries the bytes does so while both machines stand still (see
 * docs/design-guests.md), so a frame is always read before it is due, and the line's delay is exact
 * whatever carries it.
 */
#include "port_kinds.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define LINE_PARTS 4

static int be_raw(int fd) {
    struct termios settings;
    if (tcgetattr(fd, &settings)) {
        return errno == ENOTTY ? 0 : -errno;
    }
    cfmakeraw(&settings);
    return tcsetattr(fd, TCSANOW, &settings) ? -errno : 0;
}

static int write_all(int fd, struct iovec *part, int count) {
    while (count) {
        ssize_t written = writev(fd, part, count);
        if (written < 0) {
            return -errno;
        }
        for (; count && (size_t)written >= part->iov_len; part++, count--) {
            written -= (ssize_t)part->iov_len;
        }
        if (count) {
            part->iov_base = (char *)part->iov_base + written;
            part->iov_len -= (size_t)written;
        }
    }
    return 0;
}

static int write_record(const struct port *port, uint64_t due_ns, const struct iovec *io,
                        int count) {
    struct line_record record = {.due_ns = due_ns};
    struct iovec part[LINE_PARTS] = {{&record, sizeof record}};
    for (int i = 0; i < count; i++) {
        part[1 + i] = io[i];
        record.bytes += io[i].iov_len;
    }
    return write_all(port->fd, part, 1 + count);
}

int line_write(struct port *port, uint64_t at_ns, const struct iovec *io, int count) {
    return write_record(port, at_ns + port->delay_ns, io, count);
}

/* Blocking: a read of io_uring's would not wait otherwise. */
bool line_open(struct port *port, const struct port_request *request, struct port_error *error) {
    port->fd = open(request->line, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (port->fd < 0) {
        port_fail(error, -errno, NULL, "open line %s", request->line);
        return false;
    }
    int code = be_raw(port->fd);
    if (code == 0) {
        code = write_record(port, clock_now(), NULL, 0);
    }
    if (code) {
        port_fail(error, code, NULL, "begin on line %s", request->line);
        close(port->fd);
        port->fd = -1;
        return false;
    }
    return true;
}
