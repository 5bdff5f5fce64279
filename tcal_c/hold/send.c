/* signal PID ORDER: one order to a tstorm-hold, from its own or an outer PID namespace.
 *
 * A signal that comes before the process blocks it is lost (order.c), and any other process may die
 * of it. So the kernel is asked first whether it is a tstorm-hold that blocks it, through a
 * descriptor of the process, so that no reused number is mistaken for it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hold.h"

static const char *line_of(const char *status, const char *key) {
    for (const char *at = status; at && *at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, key, strlen(key)) == 0) {
            return at + strlen(key);
        }
    }
    return NULL;
}

bool waits_for_orders(const char *status) {
    const char *name = line_of(status, "Name:\t");
    const char *blocked = line_of(status, "SigBlk:\t");
    if (!name || !blocked || strncmp(name, "tstorm-hold\n", 12) != 0) {
        return false;
    }
    return strtoull(blocked, NULL, 16) >> (HOLD_SIGNAL - 1) & 1;
}

static bool read_status(long pid, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    size_t length = 0;
    ssize_t got;
    while (length < size - 1 && (got = read(file, text + length, size - 1 - length)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
    close(file);
    return true;
}

static int send_order(long pid, enum order order) {
    char status[8192];
    int process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (process < 0 || !read_status(pid, status, sizeof status)) {
        int reason = errno;
        say("cannot find process %ld", pid);
        return reason == ESRCH || reason == ENOENT ? EXIT_NOT_WAITING : EXIT_REFUSED;
    }
    if (!waits_for_orders(status)) {
        errno = 0;
        say("process %ld is no tstorm-hold that takes orders", pid);
        return EXIT_NOT_WAITING;
    }
    siginfo_t info = {.si_signo = HOLD_SIGNAL, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = (int)order;
    if (syscall(SYS_pidfd_send_signal, process, HOLD_SIGNAL, &info, 0) < 0) {
        int reason = errno;
        say("cannot give process %ld an order", pid);
        return reason == ESRCH ? EXIT_NOT_WAITING : EXIT_REFUSED;
    }
    return 0;
}

int cmd_signal(int argc, char **argv) {
    long pid = 0;
    enum order order = argc == 3 ? order_named(argv[2]) : ORDER_NONE;
    if (order == ORDER_NONE || parse_number(argv[1], &pid) < 0 || pid < 1 || pid > 0x7fffffff) {
        errno = 0;
        say("signal: a process number and one of join, leave, crash, pause, resume, setup are "
            "needed");
        return EXIT_REFUSED;
    }
    return send_order(pid, order);
}
