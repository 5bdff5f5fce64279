/* enter: runs a program inside an instance, on the caller's terminal.
 *
 * Input: a pidfd of the instance's PID 1 (handed over by the driver, so no process number can be
 * mistaken). Output: the program's exit status. The program dies with us and with the instance.
 * With --terminal stdin becomes the terminal of a session of the program's own: a shell must find
 * the leader of its session among the instance's processes. With --apart it is PID 1 of a machine,
 * which has no network of its own: the program gets one in which there is nothing.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ns.h"

struct entry {
    long pidfd;
    bool userns;
    bool terminal;
    bool apart;
    const char *directory;
    struct identity who;
    char **program;
};

static volatile sig_atomic_t child_pid;

static void pass_on(int number) {
    if (child_pid > 0) {
        kill(child_pid, number);
    }
}

static bool parse(struct entry *entry, int argc, char **argv) {
    static const struct option options[] = {{"pidfd", required_argument, NULL, 'p'},
                                            {"userns", no_argument, NULL, 'u'},
                                            {"terminal", no_argument, NULL, 't'},
                                            {"directory", required_argument, NULL, 'd'},
                                            {"user", required_argument, NULL, 'i'},
                                            {"apart", no_argument, NULL, 'a'},
                                            {0}};
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'p' && parse_number(optarg, &entry->pidfd) == 0) {
            continue;
        }
        if (option == 'u') {
            entry->userns = true;
        } else if (option == 't') {
            entry->terminal = true;
        } else if (option == 'a') {
            entry->apart = true;
        } else if (option == 'd') {
            entry->directory = optarg;
        } else if (option == 'i' && identity_parse(&entry->who, optarg) == 0) {
            continue;
        } else {
            return false;
        }
    }
    entry->program = argv + optind;
    return entry->pidfd >= 0 && entry->directory && optind < argc;
}

/* setns(2) on a pidfd (Linux 5.8) enters all of them or none. */
static bool join_namespaces(const struct entry *entry) {
    const int own = CLONE_NEWNET | CLONE_NEWIPC;
    int kinds = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID | (entry->apart ? 0 : own);
    if (setns((int)entry->pidfd, entry->userns ? kinds | CLONE_NEWUSER : kinds) < 0) {
        say("cannot enter the instance's namespaces");
        return false;
    }
    if (entry->userns && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)) {
        say("cannot become root of the instance");
        return false;
    }
    if (entry->apart && unshare(own) < 0) {
        say("cannot create a network and an IPC namespace");
        return false;
    }
    return true;
}

static _Noreturn void become(const struct entry *entry, const struct lifeline *line) {
    if (identity_become(&entry->who) < 0) {
        say("cannot be the instance's user");
        _exit(EXIT_REFUSED);
    }
    if (die_with_parent(line) < 0) { /* after it: a change of credentials clears the signal */
        _exit(EXIT_REFUSED);
    }
    close((int)entry->pidfd); /* the program has stdin, stdout and stderr, nothing of ours */
    if (entry->terminal && (setsid() < 0 || ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)) {
        say("cannot take the terminal");
        _exit(EXIT_REFUSED);
    }
    if (chdir(entry->directory) < 0) {
        say("cannot enter %s", entry->directory);
        _exit(EXIT_REFUSED);
    }
    _exit(process_become(entry->program));
}

/* Stops when the program stops, so that ^Z works on the shell that called us; not by SIGSTOP, which
 * a pause of the instance sends: it goes on with that, and nobody would continue us. */
static int wait_for(pid_t child) {
    int status;
    for (;;) {
        if (waitpid(child, &status, WUNTRACED) < 0) {
            if (errno == EINTR) {
                continue;
            }
            return EXIT_REFUSED;
        }
        if (!WIFSTOPPED(status)) {
            return exit_status(status);
        }
        if (WSTOPSIG(status) != SIGSTOP) {
            raise(SIGSTOP);
            kill(child, SIGCONT);
        }
    }
}

int cmd_enter(int argc, char **argv) {
    struct entry entry = {.pidfd = -1};
    struct lifeline line;
    if (!parse(&entry, argc, argv)) {
        errno = 0;
        say("enter: --pidfd FD, --directory DIR and a program are needed");
        return EXIT_REFUSED;
    }
    if (!join_namespaces(&entry) || lifeline_open(&line) < 0) {
        return EXIT_REFUSED;
    }
    signal(SIGINT, SIG_IGN); /* the terminal sends these to the program as well */
    signal(SIGQUIT, SIG_IGN);
    pid_t child = fork();
    if (child < 0) {
        say("cannot fork into the instance");
        return EXIT_REFUSED;
    }
    if (child == 0) {
        become(&entry, &line);
    }
    child_pid = child;
    close(line.read_end);
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    return wait_for(child);
}
