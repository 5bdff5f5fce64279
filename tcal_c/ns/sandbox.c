/* sandbox: the namespaces of one run, and the guarantee that nothing in them outlives it.
 *
 *   tstorm ── keeper (this process) ── init (PID 1 of the run) ── PROGRAM and all it starts
 *
 * The keeper dies with tstorm, init dies with the keeper, the kernel kills the rest with init
 * (pid_namespaces(7)); init also ends when PROGRAM does. Network namespaces have no names, so they
 * are gone with their processes.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/prefer.h"
#include "ns.h"

static const int WATCHED[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
enum { WATCHED_COUNT = sizeof WATCHED / sizeof *WATCHED, MAX_SHOWN = 64 };

struct sandbox {
    pid_t parent;
    bool userns;
    const char *uids; /* for newuidmap and newgidmap, NULL: one number only */
    const char *gids;
    const char *hosts; /* bound over /etc/hosts, NULL: leave it */
    const char *gai;   /* bound over /etc/gai.conf if there is one, NULL: leave it */
    struct confinement confined;
    char **shown; /* to a confined program */
    size_t shown_count;
    char **program;
};

static bool prepare_mounts(const struct sandbox *box) {
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        say("cannot make the mounts private");
        return false;
    }
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        say("cannot mount a /proc of the run's own");
        return false;
    }
    if (box->hosts && mount(box->hosts, "/etc/hosts", NULL, MS_BIND, NULL) < 0) {
        say("cannot bind %s over /etc/hosts", box->hosts);
        return false;
    }
    if (box->gai && mount(box->gai, "/etc/gai.conf", NULL, MS_BIND, NULL) < 0 && errno != ENOENT) {
        say("cannot bind %s over /etc/gai.conf", box->gai);
        return false;
    }
    return true;
}

/* Waits until `child` ends and passes signals on to it. Reaps whatever else is handed to us. */
static int supervise(pid_t child, int signals, int parent) {
    struct pollfd watch[] = {{.fd = signals, .events = POLLIN}, {.fd = parent, .events = POLLIN}};
    for (;;) {
        struct signalfd_siginfo info;
        if (poll(watch, 2, -1) < 0) {
            continue;
        }
        if (watch[1].revents) { /* tstorm is gone */
            kill(child, SIGKILL);
            return EXIT_REFUSED;
        }
        if (read(signals, &info, sizeof info) != (ssize_t)sizeof info) {
            continue;
        }
        if (info.ssi_signo != SIGCHLD) {
            kill(child, (int)info.ssi_signo);
            continue;
        }
        int status;
        pid_t ended;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
            if (ended == child) {
                return exit_status(status);
            }
        }
    }
}

/* PID 1 of the run. Signals reach it from the keeper only while they are blocked or handled. */
static _Noreturn void init_main(const struct sandbox *box, const struct lifeline *line,
                                int signals) {
    if (die_with_parent(line) < 0) {
        _exit(EXIT_REFUSED);
    }
    if (!(box->confined.wanted ? confine_view(box->shown, box->shown_count)
                               : prepare_mounts(box))) {
        _exit(EXIT_REFUSED);
    }
    pid_t program = fork();
    if (program < 0) {
        say("cannot fork");
        _exit(EXIT_REFUSED);
    }
    if (program == 0) {
        if (box->confined.wanted && !confine_self(&box->confined)) {
            _exit(EXIT_REFUSED);
        }
        ask_for_short_slices(0, false); /* the driver does little, at exact moments */
        _exit(process_become(box->program));
    }
    _exit(supervise(program, signals, -1));
}

static bool parse(struct sandbox *box, int argc, char **argv) {
    static const struct option options[] = {
        {"parent", required_argument, NULL, 'p'}, {"userns", no_argument, NULL, 'u'},
        {"hosts", required_argument, NULL, 'h'},  {"gai", required_argument, NULL, 'a'},
        {"uids", required_argument, NULL, 'U'},   {"gids", required_argument, NULL, 'G'},
        {"memory", required_argument, NULL, 'm'}, {"cpu", required_argument, NULL, 'c'},
        {"show", required_argument, NULL, 's'},   {0}};
    long number = -1;
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'p' && parse_number(optarg, &number) == 0) {
            box->parent = (pid_t)number;
        } else if (option == 'u') {
            box->userns = true;
        } else if (option == 'h') {
            box->hosts = optarg;
        } else if (option == 'a') {
            box->gai = optarg;
        } else if (option == 'U') {
            box->uids = optarg;
        } else if (option == 'G') {
            box->gids = optarg;
        } else if (option == 'm' && parse_number(optarg, &box->confined.memory_mib) == 0) {
            box->confined.wanted = true;
        } else if (option == 'c' && parse_number(optarg, &box->confined.cpu_seconds) == 0) {
            box->confined.wanted = true;
        } else if (option == 's' && box->shown_count < MAX_SHOWN) {
            box->shown[box->shown_count++] = optarg;
        } else {
            return false;
        }
    }
    box->program = argv + optind;
    bool whole = !box->confined.wanted || (box->confined.memory_mib && box->confined.cpu_seconds);
    return number >= 0 && optind < argc && whole;
}

/* Namespaces of the run, entered by the next child. The death signal is set twice because a change
 * of credentials clears it (prctl(2)). */
static bool separate(const struct sandbox *box) {
    if (die_with_process(box->parent) < 0) {
        say("the process that started the run is gone");
        return false;
    }
    if (box->userns && !ids_separate(box->uids, box->gids)) {
        return false;
    }
    if (die_with_process(box->parent) < 0) {
        return false;
    }
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) < 0) {
        say("cannot create mount, network, UTS, IPC and PID namespaces");
        return false;
    }
    return true;
}

int cmd_sandbox(int argc, char **argv) {
    char *shown[MAX_SHOWN];
    struct sandbox box = {.parent = -1, .shown = shown};
    struct lifeline line;
    if (!parse(&box, argc, argv)) {
        errno = 0;
        say("sandbox: --parent PID and a program are needed, and for a confined one both limits");
        return EXIT_REFUSED;
    }
    /* Watched besides the death signal: that one follows the thread that started us, not tstorm. */
    int parent = (int)syscall(SYS_pidfd_open, box.parent, 0);
    int signals = signal_fd(WATCHED, WATCHED_COUNT, 0);
    if (signals < 0 || !separate(&box) || lifeline_open(&line) < 0) {
        return EXIT_REFUSED;
    }
    pid_t init = fork();
    if (init < 0) {
        say("cannot fork into the new namespaces");
        return EXIT_REFUSED;
    }
    if (init == 0) {
        init_main(&box, &line, signals);
    }
    close(line.read_end);
    return supervise(init, signals, parent);
}
