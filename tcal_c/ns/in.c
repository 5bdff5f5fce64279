/* in: runs a program in a network namespace that the caller holds by a descriptor.
 *
 * Input: the descriptor, and the process that is to outlive the program. Output: this process
 * becomes the program (same number, same descriptors), so its caller waits for it and signals it
 * as its own child. It dies with that process.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "ns.h"

struct visit {
    long net;
    long parent;
    char **program;
};

static bool parse(struct visit *visit, int argc, char **argv) {
    static const struct option options[] = {
        {"net", required_argument, NULL, 'n'}, {"parent", required_argument, NULL, 'p'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option != 'n' && option != 'p') {
            return false;
        }
        if (parse_number(optarg, option == 'n' ? &visit->net : &visit->parent) < 0) {
            return false;
        }
    }
    visit->program = argv + optind;
    return visit->net >= 0 && visit->parent >= 0 && optind < argc;
}

int cmd_in(int argc, char **argv) {
    struct visit visit = {.net = -1, .parent = -1};
    if (!parse(&visit, argc, argv)) {
        errno = 0;
        say("in: --net FD, --parent PID and a program are needed");
        return EXIT_REFUSED;
    }
    if (die_with_process((pid_t)visit.parent) < 0) {
        say("in: the process that asked for %s is gone", visit.program[0]);
        return EXIT_REFUSED;
    }
    if (setns((int)visit.net, CLONE_NEWNET) < 0) {
        say("in: cannot enter the network namespace for %s", visit.program[0]);
        return EXIT_REFUSED;
    }
    close((int)visit.net); /* the program itself keeps the namespace alive */
    return process_become(visit.program);
}
