/* Dying with a parent. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ns.h"

int lifeline_open(struct lifeline *line) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -errno;
    }
    *line = (struct lifeline){.read_end = ends[0], .write_end = ends[1]};
    return 0;
}

/* getppid() is 0 for PID 1 of a namespace, so it cannot tell whether the parent died before
 * PR_SET_PDEATHSIG took effect; the pipe can. */
int die_with_parent(const struct lifeline *line) {
    close(line->write_end);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
        return -errno;
    }
    struct pollfd watch = {.fd = line->read_end, .events = POLLIN};
    if (poll(&watch, 1, 0) != 0) {
        errno = ESRCH;
        return -errno;
    }
    close(line->read_end);
    return 0;
}

int die_with_process(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) {
        return -errno;
    }
    if (getppid() != parent) {
        errno = ESRCH;
        return -errno;
    }
    return 0;
}
