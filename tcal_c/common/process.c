/* Programs that are started: their signals, the reason when they cannot be, how they ended. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The C library keeps two signals to itself and refuses to touch them, but its own posix_spawn,
 * which make uses, hands one of them on ignored. So the kernel is asked, whose structure is all
 * zeros for the default: handler, flags, restorer and mask. KILL and STOP it refuses, as it should
 * be. */
static void set_default(int number) {
    static const unsigned long zeros[8];
    syscall(SYS_rt_sigaction, number, zeros, NULL, (NSIG - 1) / 8);
}

void signals_reset(void) {
    for (int number = 1; number < NSIG; number++) {
        set_default(number);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int signal_fd(const int *signals, size_t count, int flags) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) {
        sigaddset(&set, signals[i]);
    }
    int fd = -1;
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0) {
        fd = signalfd(-1, &set, SFD_CLOEXEC | flags);
    }
    return fd < 0 ? -errno : fd;
}

int process_become(char **argv) {
    signals_reset();
    execvp(argv[0], argv);
    say("cannot start %s", argv[0]);
    return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* The connection closes by itself when exec succeeds (O_CLOEXEC), so reading it waits exactly until
 * the program runs or is known not to. It is a socket, since who reads it may be the one who has to
 * let each write(2) of the child pass (ns/faults.c). */
pid_t process_start(void (*become)(const void *context), const void *context) {
    int report[2];
    int reason;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report) < 0) {
        return -errno;
    }
    pid_t child = fork();
    if (child == 0) {
        become(context);
        reason = errno;
        ssize_t written = send(report[1], &reason, sizeof reason, MSG_NOSIGNAL);
        _exit(written == (ssize_t)sizeof reason ? EXIT_NOT_FOUND : EXIT_REFUSED);
    }
    reason = errno;
    close(report[1]);
    ssize_t length = sizeof reason;
    while (child > 0 && (length = read(report[0], &reason, sizeof reason)) < 0 && errno == EINTR) {
        continue;
    }
    close(report[0]);
    if (child > 0 && length == 0) {
        return child;
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
    errno = length == (ssize_t)sizeof reason ? reason : EIO;
    return -errno;
}

int exit_status(int wait_status) {
    if (WIFSIGNALED(wait_status)) {
        return 128 + WTERMSIG(wait_status);
    }
    return WEXITSTATUS(wait_status);
}

int parse_number(const char *text, long *value) {
    char *end = NULL;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < 0 || *text == '+' || *text == ' ') {
        return -EINVAL;
    }
    *value = number;
    return 0;
}

void say(const char *what, ...) {
    int reason = errno;
    va_list args;
    va_start(args, what);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, what, args);
    va_end(args);
    if (reason != 0) {
        fprintf(stderr, ": %s", strerror(reason));
    }
    fputc('\n', stderr);
    errno = reason;
}
