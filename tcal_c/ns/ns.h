/* tstorm-ns: the parts that only a small C program can do safely: entering namespaces, being their
 * PID 1, dying with the process that asked for them. It knows no plans, only processes.
 *
 * Functions return 0 or more, or -errno, which is also in errno for say().
 */
#ifndef TSTORM_NS_H
#define TSTORM_NS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/process.h"

enum {
    MESSAGE_BYTES = 192 * 1024, /* longest message on a control socket (below Linux' sndbuf) */
    MAX_WORDS = 4096            /* most arguments or environment entries of a program */
};

/* Commands (one a file); arguments begin after the command's own name. */
int cmd_sandbox(int argc, char **argv);
int cmd_nursery(int argc, char **argv);
int cmd_enter(int argc, char **argv);
int cmd_in(int argc, char **argv);
int cmd_guest(int argc, char **argv);

/* instance.c: runs as PID 1 of an instance; never returns. */
_Noreturn void instance_main(int control, const char *hostname);

/* parent.c */
struct lifeline { /* a pipe whose write end only the parent holds: end of file = the parent died */
    int read_end;
    int write_end;
};
int lifeline_open(struct lifeline *line);
int die_with_parent(const struct lifeline *line); /* in the child; keeps only the read end */
int die_with_process(pid_t parent);               /* for a parent in the same PID namespace */

/* message.c: datagrams on a SOCK_SEQPACKET socket, each with at most one descriptor. */
int message_send(int socket, const char *text, int descriptor); /* descriptor -1: none */
ssize_t message_receive(int socket, char *buffer, size_t size, int *descriptor);
int message_sendf(int socket, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* program.c: the start of one program. */
struct program {
    char *directory;
    char *argv[MAX_WORDS + 1];
    char *env[MAX_WORDS + 1];
};
/* Takes "start\0DIRECTORY\0ARGC\0ARG…\0NAME=VALUE…\0" apart in place; -EINVAL if malformed. */
int program_parse(struct program *program, char *text, size_t length);
/* Starts it with stdout and stderr to `log`; returns its pid, or -errno with the reason exec gave.
 */
pid_t program_start(const struct program *program, int log);

#endif
