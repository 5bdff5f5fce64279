/* nursery: makes instances for the driver, quickly, because this process is tiny.
 *
 * Input, on the control socket: `spawn HOSTNAME [FILE]` with the instance's control socket as
 * descriptor; FILE is to be the instance's /etc/hosts.
 * Answer: `ok PID` with a pidfd, or `err TEXT`. End of file ends the nursery and every instance.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ns.h"

/* fork() into a new PID namespace; *pidfd refers to the child whatever happens to its number. */
static pid_t fork_instance(int *pidfd) {
    unsigned long flags = CLONE_NEWPID | CLONE_PIDFD | SIGCHLD;
    return (pid_t)syscall(SYS_clone, flags, 0UL, pidfd, 0UL, 0UL);
}

/* `words` is what stands behind `spawn`. */
static void spawn(int control, const struct lifeline *line, char *words, int instance) {
    char *hosts = strchr(words, ' ');
    if (hosts) {
        *hosts++ = '\0';
    }
    int pidfd = -1;
    pid_t child = fork_instance(&pidfd);
    if (child == 0) {
        close(control);
        if (die_with_parent(line) < 0) {
            _exit(EXIT_REFUSED);
        }
        instance_main(instance, words, hosts);
    }
    int reason = errno;
    if (child < 0) {
        message_sendf(control, "err cannot create a PID namespace: %s", strerror(reason));
        return;
    }
    char answer[32];
    snprintf(answer, sizeof answer, "ok %d", (int)child);
    message_send(control, answer, pidfd);
    close(pidfd);
}

/* One request. Returns false at end of file. */
static bool serve(int control, const struct lifeline *line) {
    char request[PATH_MAX + 256];
    int instance;
    ssize_t length = message_receive(control, request, sizeof request, &instance);
    if (length == 0) {
        return false;
    }
    if (length < 0) {
        message_sendf(control, "err cannot receive: %s", strerror(errno));
    } else if (strncmp(request, "spawn ", 6) != 0 || instance < 0) {
        message_sendf(control, "err not a request: %s", request);
    } else {
        spawn(control, line, request + 6, instance);
    }
    if (instance >= 0) {
        close(instance);
    }
    return true;
}

static void reap(int signals) {
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) < 0) {
        return;
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        continue;
    }
}

int cmd_nursery(int argc, char **argv) {
    static const struct option options[] = {
        {"parent", required_argument, NULL, 'p'}, {"control", required_argument, NULL, 'c'}, {0}};
    static const int watched[] = {SIGCHLD};
    long parent = -1;
    long control = -1;
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (parse_number(optarg ? optarg : "", option == 'p' ? &parent : &control) < 0) {
            return EXIT_REFUSED;
        }
    }
    int signals = signal_fd(watched, 1, 0);
    struct lifeline line; /* of every instance: our end stays open as long as we live */
    if (control < 0 || signals < 0 || lifeline_open(&line) < 0 ||
        die_with_process((pid_t)parent) < 0) {
        say("nursery: cannot start");
        return EXIT_REFUSED;
    }
    struct pollfd watch[] = {{.fd = (int)control, .events = POLLIN},
                             {.fd = signals, .events = POLLIN}};
    for (;;) {
        if (poll(watch, 2, -1) < 0) {
            continue;
        }
        if (watch[1].revents) {
            reap(signals);
        }
        if (watch[0].revents && !serve((int)control, &line)) {
            return 0;
        }
    }
}
