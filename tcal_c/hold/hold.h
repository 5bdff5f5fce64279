/* tstorm-hold: keeps the program of a container until its agent says that the instance joins.
 *
 * An order is a queued signal (sigqueue(3)) with a value, so orders are neither merged nor
 * reordered. The number is fixed and not SIGRTMIN + 1, which differs between C libraries.
 *
 * Functions return 0 or more, or -errno, which is also in errno, unless stated.
 */
#ifndef TSTORM_HOLD_H
#define TSTORM_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/process.h"

enum {
    HOLD_SIGNAL = 35,    /* SIGRTMIN + 1 of glibc, SIGRTMIN of musl */
    GRACE_MS = 5000,     /* from SIGTERM to SIGKILL, as in a local run */
    REPORT_BYTES = 4096, /* longest line of a report */
};

/* Exit status beside those of common/process.h. */
enum {
    EXIT_NOT_WAITING = 1,  /* signal: the process does not wait for orders (yet) */
    EXIT_TERMINATED = 143, /* 128 + SIGTERM */
};

enum order { ORDER_NONE = 0, ORDER_JOIN = 1, ORDER_LEAVE = 2, ORDER_CRASH = 3 };

/* Commands (one a file); arguments begin after the command's own name. */
int cmd_run(int argc, char **argv);
int cmd_gate(int argc, char **argv);
int cmd_signal(int argc, char **argv);
int cmd_install(int argc, char **argv);

/* order.c */
enum order order_named(const char *name); /* ORDER_NONE if it is none */
const char *order_name(enum order order);
int signals_read(int descriptor, int *number, enum order *order); /* 0: nothing left to read */

/* program.c */
int program_find(const char *name); /* 0, or the exit status a shell would give */
pid_t program_start(char **argv);   /* its pid, or -errno with the reason that exec gave */

/* report.c: a line of JSON for everything that happens, on stderr and at the end of a file. */
struct field {
    const char *name;
    const char *text; /* NULL: `number` counts */
    long long number;
};
struct moment {
    int64_t unix_ns;
    int64_t monotonic_ns;
};
size_t report_format(char *line, size_t size, const char *event, struct moment at,
                     const struct field *fields, size_t count);
void report_to(const char *path); /* before this: stderr only */
void report(const char *event, const struct field *fields, size_t count);
void report_text(const char *event, const char *name, const char *text);
void report_number(const char *event, const char *name, long long number);

/* send.c: whether the text of /proc/PID/status is that of a tstorm-hold that takes orders. */
bool waits_for_orders(const char *status);

#endif
