/* Small helpers about processes: dying with a parent, signals as descriptors, saying what failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ns.h"

int lifeline_open(struct lifeline *line) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    *line = (struct lifeline){.read_end = ends[0], .write_end = ends[1]};
    return 0;
}

/* getppid() is 0 for PID 1 of a namespace, so it cannot tell whether the parent died before
 * PR_SET_PDEATHSIG took effect; the pipe can. */
int die_with_parent(const struct lifeline *line) {
    close(line->write_end);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -1;
    struct pollfd watch = {.fd = line->read_end, .events = POLLIN};
    if (poll(&watch, 1, 0) != 0) {
        errno = ESRCH;
        return -1;
    }
    close(line->read_end);
    return 0;
}

int die_with_process(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -1;
    if (getppid() != parent) {
        errno = ESRCH;
        return -1;
    }
    return 0;
}

int exit_status(int wait_status) {
    if (WIFSIGNALED(wait_status))
        return 128 + WTERMSIG(wait_status);
    return WEXITSTATUS(wait_status);
}

static sigset_t make_set(const int *signals, size_t count) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        sigaddset(&set, signals[i]);
    return set;
}

int block_signals(const int *signals, size_t count) {
    sigset_t set = make_set(signals, count);
    return sigprocmask(SIG_BLOCK, &set, NULL);
}

int signal_fd(const int *signals, size_t count) {
    if (block_signals(signals, count) < 0)
        return -1;
    sigset_t set = make_set(signals, count);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

int parse_number(const char *text, long *value) {
    char *end = NULL;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < 0 || *text == '+' || *text == ' ')
        return -1;
    *value = number;
    return 0;
}

void say(const char *what, ...) {
    int reason = errno;
    va_list args;
    va_start(args, what);
    fputs("tstorm-ns: ", stderr);
    vfprintf(stderr, what, args);
    va_end(args);
    if (reason != 0)
        fprintf(stderr, ": %s", strerror(reason));
    fputc('\n', stderr);
}
