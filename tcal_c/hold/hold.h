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
    HOLD_SIGNAL = 35,         /* SIGRTMIN + 1 of glibc, SIGRTMIN of musl */
    GRACE_MS = 5000,          /* from the stop signal to SIGKILL unless stated, as in a local run */
    READY_TIMEOUT_MS = 60000, /* unless stated */
    REPORT_BYTES = 4096,      /* longest line of a report */
    MAX_GROUPS = 64,          /* of a user beside the first; Linux takes more, nobody is in more */
};

/* Exit status beside those of common/process.h. */
enum {
    EXIT_NOT_WAITING = 1,  /* signal: the process does not wait for orders (yet) */
    EXIT_TERMINATED = 143, /* 128 + SIGTERM */
};

enum order {
    ORDER_NONE = 0,
    ORDER_JOIN = 1,
    ORDER_LEAVE = 2,
    ORDER_CRASH = 3,
    ORDER_PAUSE = 4,
    ORDER_RESUME = 5,
    ORDER_SETUP = 6,
    ORDER_KILL = 7,
    ORDER_LAST = ORDER_KILL
};

/* Commands (one a file); arguments begin after the command's own name. */
int cmd_run(int argc, char **argv);
int cmd_gate(int argc, char **argv);
int cmd_signal(int argc, char **argv);
int cmd_install(int argc, char **argv);

/* order.c */
enum order order_named(const char *name); /* ORDER_NONE if it is none */
const char *order_name(enum order order);
int signals_read(int descriptor, int *number, enum order *order); /* 0: nothing left to read */

/* identity.c: who a program runs as. */
struct identity {
    uid_t uid;
    gid_t gid;
    gid_t groups[MAX_GROUPS];
    size_t count;
    char home[256]; /* "" where passwd does not know the user */
};
/* From USER[:GROUP], names or numbers, and files as /etc/passwd and /etc/group; -EINVAL if a name
 * is in none of them. */
int identity_find(struct identity *found, const char *words, const char *passwd, const char *group);
bool identity_is_ours(const struct identity *wanted); /* nothing has to be changed for it */
int identity_assume(const struct identity *wanted);   /* in a child; 0 or -errno */

/* variables.c */
char *variables_expanded(const char *word); /* with $TSTORM_NAME replaced; on the heap */
int variables_of_addresses(void);           /* TSTORM_IPV4 and _IPV6 out of TSTORM_ADDRESSES */

/* options.c: what `run` was asked for. Words are on the heap, expanded, and end with NULL. */
struct options {
    const char *reports;
    int stop;
    int64_t grace_ms;
    const struct identity *user; /* NULL: as we are */
    const char *cwd;             /* NULL: the one that we are in */
    char **setup;                /* NULL: none */
    char **ready;                /* NULL: none; or a port: */
    int ready_port;              /* 0: none */
    int64_t ready_timeout_ms;
    char **argv; /* the program */
};
/* 0, or the exit status after saying what is wrong. */
int options_parse(struct options *found, int argc, char **argv);
int signal_named(const char *name); /* SIGINT, SIGRTMIN+3; 0 if there is none */

/* program.c */
int program_find(const char *name); /* 0, or the exit status a shell would give */
/* Its pid, or -errno with the reason that exec gave. `quiet`: what it writes is nobody's. */
pid_t program_start(char **argv, const struct identity *user, bool quiet);

/* readiness.c: whether a program that runs is ready, found out by a command or a connection. */
struct readiness {
    char **argv; /* NULL: `port` */
    int port;
    const struct identity *user;
    bool watching;
    pid_t check; /* the command that runs now; 0: none */
    int64_t next_ms;
    int64_t pause_ms;
    int64_t give_up_ms;
};
void readiness_begin(struct readiness *self, const struct options *wanted, int64_t now_ms);
void readiness_end(struct readiness *self);
int64_t readiness_due_ms(const struct readiness *self); /* -1: never */
void readiness_act(struct readiness *self, int64_t now_ms);
bool readiness_reaped(struct readiness *self, pid_t ended, int wait_status, int64_t now_ms);

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
