/* tstorm-ns: namespaces for a run and its instances. Dispatches to one command a file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ns.h"

static const char USAGE[] =
    "usage: tstorm-ns COMMAND …   (started by tstorm, not by hand)\n"
    "  sandbox --parent PID [--userns [--uids MAP --gids MAP]] [--hosts FILE] [--gai FILE] --\n"
    "          PROGRAM ARG…\n"
    "          runs PROGRAM in namespaces of its own that end with process PID\n"
    "  sandbox --parent PID [--userns] --memory MIB --cpu SECONDS [--show PATH]… -- PROGRAM ARG…\n"
    "          the same, confined: PROGRAM sees these paths alone and can only read and calculate\n"
    "  nursery --parent PID --control FD\n"
    "          makes instances (PID, network, mount, UTS and IPC namespaces) on request, and\n"
    "          machines, each a nursery in a PID namespace of its own\n"
    "  enter   --pidfd FD [--userns] [--terminal] [--apart] [--user UID:GID[:GROUP…]]\n"
    "          --directory DIR -- PROGRAM ARG…\n"
    "          runs PROGRAM in the namespaces of the process behind FD\n"
    "  in      --net FD --parent PID -- PROGRAM ARG…\n"
    "          becomes PROGRAM in the network namespace behind FD; dies with process PID\n"
    "  guest   BOOT RUN START\n"
    "          is PID 1 of a kernel in virtual time: does what BOOT/boot says, switches it off\n"
    "Exit status: the program's own; 125 tstorm-ns failed, 126 not executable, 127 not found.\n";

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int, char **);
    } commands[] = {{"sandbox", cmd_sandbox},
                    {"nursery", cmd_nursery},
                    {"enter", cmd_enter},
                    {"in", cmd_in},
                    {"guest", cmd_guest}};
    if (argc >= 2 && strcmp(argv[1], "--help") == 0) {
        fputs(USAGE, stdout);
        return 0;
    }
    for (size_t i = 0; argc >= 2 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fputs(USAGE, stderr);
    return EXIT_REFUSED;
}
