/* PID 1 of one instance: makes its namespaces, then starts, stops and reaps for the driver.
 *
 * To the driver: `ready` with a route netlink socket of the new network namespace, `err TEXT`,
 * `furnished`, `unfurnished TEXT`, `started PID`, `failed TEXT`, `exited STATUS`,
 * `signaled NUMBER`, `ended NUMBER STATUS` and `refused NUMBER TEXT` of a command (commands.c),
 * `syncs` with a descriptor for each program and command that is started, which tells what it
 * syncs (faults.c), if `syncs` was asked for beside `faults…`.
 * From the driver: `furnish…` (furnish.c), `start…` (program.c) with the log as descriptor,
 * `run NUMBER…` the same with what takes a command's output, `end NUMBER` of it, `stop NUMBER`,
 * `pause`, `resume`, `faults…` and `disk…` (faults.c), and `gate` with the read end of a pipe: the
 * next start waits for its end of file. With one pipe for many instances one close(2) starts them
 * all. The driver kills us to kill the instance; end of file means the same.
 *
 * To stop is to send the signal to the program; once that has ended (or if there is none) SIGTERM
 * to whatever else there is, and REST_MS later SIGKILL. How long the program may take is the
 * driver's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keep/life.h"
#include "ns.h"

/* In virtual time the keeper asks for exact timers, for which --scatter leaves it alone (guest.c).
 * What runs in an instance has the kernel's default again. */
enum { USUAL_SLACK_NS = 50 * 1000 };

struct instance {
    int control;
    int signals;
    struct life life;
    bool ending; /* told to end: do so when nothing is left to reap */
    struct identity who;
    int gate;              /* -1: none */
    int log;               /* of the program that waits for the gate, -1: none */
    bool syncs;            /* what programs ask of the disk is told to the driver */
    struct faults *faults; /* of the disk; NULL: there are none */
    struct command *commands;
};

static _Noreturn void give_up(int control, const char *attempt) {
    message_sendf(control, "err cannot %s: %s", attempt, strerror(errno));
    _exit(EXIT_REFUSED);
}

/* /sys shows the devices of the network namespace it was mounted from. A container may refuse a
 * new one; the old one then shows other devices, and nothing else is wrong. */
static void mount_all(int control, const char *hosts) {
    const unsigned long safe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        give_up(control, "make the instance's mounts private");
    }
    if (mount("proc", "/proc", "proc", safe, NULL) < 0) {
        give_up(control, "mount the instance's /proc");
    }
    if (mount("sysfs", "/sys", "sysfs", safe | MS_RDONLY, NULL) < 0 && errno != EPERM) {
        give_up(control, "mount the instance's /sys");
    }
    if (access("/dev/shm", F_OK) == 0 && mount("shm", "/dev/shm", "tmpfs", safe, "mode=1777") < 0) {
        give_up(control, "mount the instance's /dev/shm");
    }
    if (hosts && mount(hosts, "/etc/hosts", NULL, MS_BIND, NULL) < 0) {
        give_up(control, "give the instance an /etc/hosts of its own");
    }
}

/* A host may have switched IPv6 off for new namespaces; here every instance has an address. */
static void allow_ipv6(void) {
    int file = open("/proc/sys/net/ipv6/conf/all/disable_ipv6", O_WRONLY | O_CLOEXEC);
    if (file < 0) {
        return; /* a kernel without IPv6: the driver finds out and says so */
    }
    ssize_t written = write(file, "0", 1);
    (void)written; /* a refusal shows when the address is added */
    close(file);
}

static int separate(int control, const char *hostname, const char *hosts) {
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) < 0) {
        give_up(control, "create the instance's mount, network, UTS and IPC namespaces");
    }
    mount_all(control, hosts);
    allow_ipv6();
    if (sethostname(hostname, strlen(hostname)) < 0) {
        give_up(control, "set the instance's host name");
    }
    if (chdir("/") < 0) {
        give_up(control, "enter /");
    }
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink < 0) {
        give_up(control, "open a netlink socket in the instance");
    }
    return netlink;
}

/* Too large for the stack. Two, since a program may wait for its gate while commands start. */
static struct program program;
static struct program command;

/* Its listener, of a program that has started, comes to us by `ends`, and what has been heard goes
 * on to the driver, if that hears syncs. */
static int hear_faults(struct instance *self, int from) {
    char text[16];
    int listener;
    int relay[2] = {-1, -1};
    ssize_t length = message_receive(from, text, sizeof text, &listener);
    if (length < 0 || listener < 0) {
        return -EIO;
    }
    if (self->syncs) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, relay) < 0) {
            return -errno;
        }
        const int yes = 1;
        setsockopt(relay[1], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
        message_send(self->control, "syncs", relay[1]);
        close(relay[1]);
    }
    return faults_hear(self->faults, listener, relay[0]);
}

static pid_t start_with_faults(struct instance *self, const struct program *what, int log) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        return -errno;
    }
    const struct hearing hearing = faults_hearing(self->faults, ends[1]);
    pid_t pid = program_start(what, &self->who, log, &hearing);
    if (pid >= 0 && hear_faults(self, ends[0]) < 0) {
        int reason = errno;
        kill(pid, SIGKILL);
        errno = reason;
        pid = -reason;
    }
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static pid_t start_program(struct instance *self, const struct program *what, int log) {
    if (self->faults && faults_are_allowed(self->faults)) {
        return start_with_faults(self, what, log);
    }
    const struct hearing hearing = {.socket = -1};
    return program_start(what, &self->who, log, &hearing);
}

static void start(struct instance *self, int log) {
    pid_t pid = start_program(self, &program, log);
    if (pid < 0) {
        message_sendf(self->control, "failed %s", strerror(errno));
        return;
    }
    self->life.program = pid;
    message_sendf(self->control, "started %d", (int)pid);
}

/* The words of `program` point into `text`, which must last until the start. */
static void order(struct instance *self, char *text, size_t length, int log) {
    if (log < 0 || self->life.program != 0 || self->log >= 0 || self->ending) {
        message_send(self->control, "failed not now", -1);
    } else if (program_parse(&program, text, length) < 0) {
        message_send(self->control, "failed not a program", -1);
    } else if (self->gate < 0) {
        start(self, log);
    } else if ((self->log = fcntl(log, F_DUPFD_CLOEXEC, 0)) < 0) {
        message_sendf(self->control, "failed cannot keep the log: %s", strerror(errno));
    }
}

static void run_command(struct instance *self, char *text, size_t length, int output) {
    long number;
    pid_t pid = -EINVAL;
    if (parse_number(text + strlen("run "), &number) < 0) {
        message_send(self->control, "failed not a command", -1);
        return;
    }
    if (self->ending) {
        message_sendf(self->control, "refused %ld the instance is ending", number);
        return;
    }
    errno = EINVAL;
    if (output >= 0 && program_parse(&command, text, length) == 0) {
        pid = start_program(self, &command, output);
    }
    if (pid >= 0 && commands_add(&self->commands, number, pid) < 0) {
        int reason = errno;
        kill(pid, SIGKILL);
        errno = reason;
        pid = -reason;
    }
    if (pid < 0) {
        message_sendf(self->control, "refused %ld %s", number, strerror(errno));
    }
}

static void end_command(struct instance *self, const char *text) {
    long number;
    if (parse_number(text, &number) == 0) {
        commands_end(self->commands, number);
    }
}

static void open_gate(struct instance *self) {
    close(self->gate);
    self->gate = -1;
    if (self->log < 0) {
        return;
    }
    if (self->ending) {
        message_send(self->control, "failed not now", -1); /* SIGTERM would have missed it */
    } else {
        start(self, self->log);
    }
    close(self->log);
    self->log = -1;
}

static void stop(struct instance *self, const char *number) {
    long signal_number;
    if (parse_number(number, &signal_number) < 0 || signal_number < 1 || signal_number > SIGRTMAX) {
        signal_number = SIGTERM;
    }
    self->ending = true;
    if (self->life.program == 0) {
        life_end_the_rest(&self->life);
    } else {
        life_ask_to_end(&self->life, (int)signal_number);
    }
}

static void take_furniture(struct instance *self, char *text, size_t length) {
    char why[512] = "";
    if (furnish(&self->who, text, length, why, sizeof why) < 0) {
        message_sendf(self->control, "unfurnished cannot %s", why);
    } else {
        message_send(self->control, "furnished", -1);
    }
}

static void take_faults(struct instance *self, const char *text) {
    if (!self->faults) {
        self->faults = faults_make();
    }
    int (*take)(struct faults *, const char *) = text[0] == 'f' ? faults_allow : faults_set;
    if (!self->faults || take(self->faults, strchr(text, ' ') + 1) < 0) {
        message_sendf(self->control, "failed cannot have %.40s: %s", text, strerror(errno));
    }
}

static void obey(struct instance *self) {
    static char text[2][MESSAGE_BYTES]; /* the second while the first holds a waiting program */
    char *room = text[self->log >= 0];
    int received;
    ssize_t length = message_receive(self->control, room, MESSAGE_BYTES, &received);
    if (length == 0) {
        _exit(0); /* the driver let go: the kernel kills the rest of the namespace */
    }
    if (length < 0) {
        message_sendf(self->control, "failed cannot receive: %s", strerror(errno));
    } else if (strcmp(room, "start") == 0) {
        order(self, room, (size_t)length, received);
    } else if (strcmp(room, "gate") == 0 && self->gate < 0) {
        self->gate = received;
        return;
    } else if (strcmp(room, "furnish") == 0) {
        take_furniture(self, room, (size_t)length);
    } else if (strncmp(room, "run ", 4) == 0) {
        run_command(self, room, (size_t)length, received);
    } else if (strncmp(room, "end ", 4) == 0) {
        end_command(self, room + 4);
    } else if (strncmp(room, "stop ", 5) == 0) {
        stop(self, room + 5);
    } else if (strcmp(room, "pause") == 0 || strcmp(room, "resume") == 0) {
        life_pause(&self->life, strcmp(room, "pause") == 0);
    } else if (strncmp(room, "faults ", 7) == 0 || strncmp(room, "disk ", 5) == 0) {
        take_faults(self, room);
    } else if (strcmp(room, "syncs") == 0) {
        self->syncs = true;
    } else if (strcmp(room, "kill") == 0) {
        life_kill(&self->life); /* the host stays */
    } else {
        message_sendf(self->control, "failed not a request: %.40s", room);
    }
    if (received >= 0) {
        close(received);
    }
}

static void reap(struct instance *self) {
    int status;
    pid_t ended;
    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
        if (commands_reaped(&self->commands, self->control, ended, status) ||
            ended != self->life.program) {
            continue;
        }
        self->life.program = 0;
        if (WIFSIGNALED(status)) {
            message_sendf(self->control, "signaled %d", WTERMSIG(status));
        } else {
            message_sendf(self->control, "exited %d", WEXITSTATUS(status));
        }
        if (self->ending) {
            life_end_the_rest(&self->life);
        }
    }
    if (self->ending && ended < 0 && errno == ECHILD) {
        _exit(0);
    }
}

_Noreturn void instance_main(int control, const char *hostname, const char *hosts) {
    static const int watched[] = {SIGCHLD};
    struct instance self = {
        .control = control, .signals = signal_fd(watched, 1, 0), .gate = -1, .log = -1};
    if (self.signals < 0) {
        give_up(control, "watch for children");
    }
    prctl(PR_SET_TIMERSLACK, USUAL_SLACK_NS);
    int netlink = separate(control, hostname, hosts);
    message_send(control, "ready", netlink);
    close(netlink);
    struct pollfd watch[] = {{.fd = self.control, .events = POLLIN},
                             {.fd = self.signals, .events = POLLIN},
                             {.fd = -1, .events = POLLIN},
                             {.fd = -1, .events = POLLIN}};
    for (;;) {
        watch[2].fd = self.gate; /* poll(2) passes over a negative one */
        watch[3].fd = self.faults ? faults_descriptor(self.faults) : -1;
        if (life_is_overdue(&self.life)) {
            life_kill(&self.life);
            self.life.kill_ms = 0;
        }
        if (poll(watch, 4, life_patience_ms(&self.life)) < 0) {
            continue;
        }
        if (watch[1].revents) {
            struct signalfd_siginfo info;
            ssize_t length = read(self.signals, &info, sizeof info);
            (void)length; /* the count of signals says nothing: waitpid does */
        }
        if (watch[0].revents) {
            obey(&self);
        }
        if (watch[2].fd >= 0 && watch[2].revents) {
            open_gate(&self);
        }
        if (watch[3].fd >= 0 && watch[3].revents) {
            faults_go_on(self.faults);
        }
        reap(&self);
    }
}
