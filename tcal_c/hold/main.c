/* tstorm-hold: holds a container's program until its instance joins. One command a file. */
#include <stdio.h>
#include <string.h>

#include "hold.h"

static const char USAGE[] =
    "usage: tstorm-hold COMMAND …   (in containers; docs/hold.md)\n"
    "  run [OPTION…] -- PROGRAM ARG…\n"
    "          as process 1: starts PROGRAM when the instance joins, ends it when it leaves or\n"
    "          crashes, waits for the next join\n"
    "          --reports FILE      where it says what happens, too (/tstorm/reports)\n"
    "          --stop SIGNAL       what a leave sends to PROGRAM (SIGTERM)\n"
    "          --grace MS          from there to SIGKILL (5000)\n"
    "          --user USER[:GROUP] names or numbers of this container\n"
    "          --cwd DIR           where commands run; made if it is not there, and USER's\n"
    "          --setup N WORD…     a command of N words to run once, before the first start\n"
    "          --ready N WORD…     a command that ends with 0 when PROGRAM is ready\n"
    "          --ready-port PORT   it is ready when it takes connections there\n"
    "          --ready-timeout MS  when it is given up (60000)\n"
    "  gate    ends with 0 when the instance joins\n"
    "  signal PID join|leave|crash|pause|resume|setup\n"
    "          gives an order to the tstorm-hold that is process PID\n"
    "  install DIR\n"
    "          copies itself to DIR/tstorm-hold\n"
    "Exit status: run: the program's own; 125 tstorm-hold failed, 126 not executable, 127 not\n"
    "found, 143 ended by SIGTERM before any join. signal: 1 the process takes no orders (yet).\n";

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int, char **);
    } commands[] = {
        {"run", cmd_run}, {"gate", cmd_gate}, {"signal", cmd_signal}, {"install", cmd_install}};
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
