/* nursery: makes instances for the driver, quickly, because this process is tiny.
 *
 * Input, on the control socket: `spawn HOSTNAME [FILE]` with the instance's control socket as
 * descriptor; FILE is to be the instance's /etc/hosts. `machine HOSTNAME` with a control socket for
 * a nursery of its own, which is PID 1 of a machine and sees the processes of all its parts.
 * Answer: `ok PID` with a pidfd (the number is the one in this PID namespace), or `err TEXT`. A
 * machine says `ready` or `err TEXT` on its own socket first. End of file ends the nursery and
 * every instance.
 *
 * `present PID`: this instance is there now, and not only prepared. All that are make one process
 * group, so that the driver can kill them with one killpg(2). There is no answer.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
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

struct nursery {
    int control;
    struct lifeline line; /* of every child: our end stays open as long as we live */
    pid_t group;          /* of the instances that are present; 0: there are none */
};

static _Noreturn void machine_main(int control, const char *hostname);

/* In the new process, of which `words` is what stands behind the request's first one. */
static _Noreturn void become(const struct nursery *self, bool machine, char *words, int control) {
    close(self->control);
    if (die_with_parent(&self->line) < 0) {
        _exit(EXIT_REFUSED);
    }
    setpgid(0, 0); /* a group of its own until it is present */
    if (machine) {
        machine_main(control, words);
    }
    char *hosts = strchr(words, ' ');
    if (hosts) {
        *hosts++ = '\0';
    }
    instance_main(control, words, hosts);
}

static void make(struct nursery *self, bool machine, char *words, int control) {
    if (self->group && kill(-self->group, 0) < 0) {
        self->group = 0; /* it has ended, and its number may be that of a new child */
    }
    int pidfd = -1;
    pid_t child = fork_instance(&pidfd);
    if (child == 0) {
        become(self, machine, words, control);
    }
    int reason = errno;
    if (child < 0) {
        message_sendf(self->control, "err cannot create a PID namespace: %s", strerror(reason));
        return;
    }
    char answer[32];
    snprintf(answer, sizeof answer, "ok %d", (int)child);
    message_send(self->control, answer, pidfd);
    close(pidfd);
}

/* Joins the group of those that are present, or is the first of it. */
static void present(struct nursery *self, const char *number) {
    long pid;
    if (parse_number(number, &pid) == 0 && pid > 1 &&
        (self->group == 0 || setpgid((pid_t)pid, self->group) < 0)) {
        self->group = (pid_t)pid;
    }
}

static bool begins(const char *request, const char *word) {
    return strncmp(request, word, strlen(word)) == 0;
}

/* One request. Returns false at end of file. */
static bool serve(struct nursery *self) {
    char request[PATH_MAX + 256];
    int theirs;
    ssize_t length = message_receive(self->control, request, sizeof request, &theirs);
    if (length == 0) {
        return false;
    }
    if (length < 0) {
        message_sendf(self->control, "err cannot receive: %s", strerror(errno));
    } else if (begins(request, "present ")) {
        present(self, request + strlen("present "));
    } else if (begins(request, "spawn ") && theirs >= 0) {
        make(self, false, request + strlen("spawn "), theirs);
    } else if (begins(request, "machine ") && theirs >= 0) {
        make(self, true, request + strlen("machine "), theirs);
    } else {
        message_sendf(self->control, "err not a request: %s", request);
    }
    if (theirs >= 0) {
        close(theirs);
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

/* Serves `self->control` to its end of file. */
static int look_after(struct nursery *self, int signals) {
    struct pollfd watch[] = {{.fd = self->control, .events = POLLIN},
                             {.fd = signals, .events = POLLIN}};
    for (;;) {
        if (poll(watch, 2, -1) < 0) {
            continue;
        }
        if (watch[1].revents) {
            reap(signals);
        }
        if (watch[0].revents && !serve(self)) {
            return 0;
        }
    }
}

/* /proc shows the processes of all parts. A machine has no network of its own: see enter.c,
 * --apart. */
static bool separate(const char *hostname) {
    return unshare(CLONE_NEWNS | CLONE_NEWUTS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 &&
           sethostname(hostname, strlen(hostname)) == 0;
}

static _Noreturn void machine_main(int control, const char *hostname) {
    static const int watched[] = {SIGCHLD};
    struct nursery self = {.control = control};
    int signals = signal_fd(watched, 1, 0);
    if (signals < 0 || !separate(hostname) || lifeline_open(&self.line) < 0) {
        message_sendf(control, "err cannot give it namespaces of its own: %s", strerror(errno));
        _exit(EXIT_REFUSED);
    }
    message_send(control, "ready", -1);
    _exit(look_after(&self, signals));
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
    struct nursery self = {.control = (int)control};
    if (control < 0 || signals < 0 || lifeline_open(&self.line) < 0 ||
        die_with_process((pid_t)parent) < 0) {
        say("nursery: cannot start");
        return EXIT_REFUSED;
    }
    return look_after(&self, signals);
}
