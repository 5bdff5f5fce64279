/* How a datapath starts: its options, and what it asks of the system. */
#ifndef COMMON_STARTUP_H
#define COMMON_STARTUP_H

#include <stdbool.h>
#include <stdint.h>

/* An option: `--NAME` sets `flag` to `value`, or `--NAME N` sets `number`. */
struct setting {
    const char *name; /* NULL: the end */
    bool *flag;       /* NULL: a number */
    bool value;
    uint64_t *number;
    uint64_t low;
    uint64_t high;
};

/* Reads the options, --help and --version too: -1 to go on, otherwise the exit status. */
int startup_options(int argc, char **argv, const char *program, const char *usage,
                    const struct setting *settings);

/* Ends with the process that started it, asks for as many descriptors as there may be and gives up
 * whatever a program that it starts could gain. False: that process has ended already. */
bool startup_system(void);

#endif
