/* tstorm-ns: the parts that only a small C program can do safely: entering namespaces, being their
 * PID 1, dying with the process that asked for them. It knows no plans, only processes.
 *
 * Functions return 0 or more, or -errno, which is also in errno for say().
 */
#ifndef TSTORM_NS_H
#define TSTORM_NS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/process.h"

enum {
    MESSAGE_BYTES = 192 * 1024, /* longest message on a control socket (below Linux' sndbuf) */
    MAX_WORDS = 4096,           /* most arguments or environment entries of a program */
    MAX_GROUPS = 64             /* most groups of a program beside its own */
};

/* Commands (one a file); arguments begin after the command's own name. */
int cmd_sandbox(int argc, char **argv);
int cmd_nursery(int argc, char **argv);
int cmd_enter(int argc, char **argv);
int cmd_in(int argc, char **argv);
int cmd_guest(int argc, char **argv);

/* instance.c: runs as PID 1 of an instance; never returns. */
_Noreturn void instance_main(int control, const char *hostname, const char *hosts);

/* parent.c */
struct lifeline { /* a pipe whose write end only the parent holds: end of file = the parent died */
    int read_end;
    int write_end;
};
int lifeline_open(struct lifeline *line);
int die_with_parent(const struct lifeline *line); /* in the child; keeps only the read end */
int die_with_process(pid_t parent);               /* for a parent in the same PID namespace */

/* ids.c: the caller becomes root in a user namespace of its own. `users` and `groups` are arguments
 * of newuidmap and newgidmap after the process, NULL: one number only. False with errno, said. */
bool ids_separate(const char *users, const char *groups);
/* The caller is `user` and `group` in a user namespace of its own, and who it was outside. */
int ids_become(uid_t user, gid_t group);

/* confine.c: for a program that is not to be trusted. False with errno, said. */
struct confinement {
    bool wanted;
    long memory_mib;  /* address space */
    long cpu_seconds; /* of a processor */
};
/* In a mount namespace of its own: the root has these paths and nothing else, and is read-only. */
bool confine_view(char **shown, size_t count);
/* Right before exec: limits, no privileges, no calls that a calculation does not need. */
bool confine_self(const struct confinement *confined);

/* message.c: datagrams on a SOCK_SEQPACKET socket, each with at most one descriptor. */
int message_send(int socket, const char *text, int descriptor); /* descriptor -1: none */
ssize_t message_receive(int socket, char *buffer, size_t size, int *descriptor);
int message_sendf(int socket, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* identity.c: who a program is. Not stated: who we are. */
struct identity {
    bool stated;
    bool mapped; /* user and group are only names for ours, in a user namespace of the program's */
    uid_t user;
    gid_t group;
    size_t count;
    gid_t groups[MAX_GROUPS];
};
int identity_parse(struct identity *who, const char *text); /* [map:]UID:GID[:GROUP…] */
int identity_become(const struct identity *who);

/* program.c: the start of one program. */
struct program {
    char *directory;
    char *argv[MAX_WORDS + 1];
    char *env[MAX_WORDS + 1];
};
/* Takes "VERB\0DIRECTORY\0ARGC\0ARG…\0NAME=VALUE…\0" apart in place; -EINVAL if malformed. */
int program_parse(struct program *program, char *text, size_t length);
/* Who is told what a program asks of its disk, and what of that beside its syncs. */
struct hearing {
    int socket; /* to which `syncs` goes with a descriptor that tells it (syncs.c); -1: nobody is */
    const int *more;
    size_t count;
};
/* Starts it as `who` with stdout and stderr to `log`. Its pid, or -errno with the reason. */
pid_t program_start(const struct program *program, const struct identity *who, int log,
                    const struct hearing *hearing);

/* commands.c: those that go on, NULL: none. */
struct command;
int commands_add(struct command **commands, long number, pid_t pid); /* 0 or -errno */
/* SIGKILL to it and to all of its session; nothing if it has ended. */
void commands_end(const struct command *commands, long number);
/* Whether it was one of them: its end is told then. */
bool commands_reaped(struct command **commands, int control, pid_t pid, int wait_status);

/* syncs.c: from now on the caller is heard, these system calls as well. A descriptor for who hears
 * it, or -errno. */
int syncs_watch(const int *more, size_t count);

/* faults.c: a disk of an instance that is slow, full, or fails now and then. */
struct faults;
struct faults *faults_make(void); /* without one; NULL with errno */
/* Of programs from now on, in files below ROOT: "writes ROOT", "reads ROOT". -errno: malformed. */
int faults_allow(struct faults *faults, const char *text);
/* "ok", "full", "slow NS", "error PPB SEED". -errno if malformed. */
int faults_set(struct faults *faults, const char *text);
bool faults_are_allowed(const struct faults *faults);
/* Which system calls have to be heard for that. */
struct hearing faults_hearing(const struct faults *faults, int socket);
/* A program has begun. `listener` tells what it asks for; `relay`, if it is not -1, a socket to one
 * who hears syncs after us and answers each. Both are closed when they are over. */
int faults_hear(struct faults *faults, int listener, int relay);
int faults_descriptor(const struct faults *faults); /* readable: there is something to do */
void faults_go_on(struct faults *faults);
/* Whether the call numbered `number` after `disk error PPB SEED` fails. */
bool faults_fails(uint64_t seed, uint64_t number, uint64_t share_ppb);
/* The next NUL-terminated word of [*at, end), NULL when there is none. */
char *next_word(char **at, char *end);

/* place.c: a copy of what `source` has, with these rights, in the directory `parent`; what has its
 * name there goes. */
struct rights {
    mode_t mode;
    uid_t user;
    gid_t group;
};
int rights_parse(struct rights *rights, char **words); /* MODE (octal), UID, GID */
int place_copy(int source, int parent, const char *name, const struct rights *rights);

/* furnish.c: carries out "furnish\0OPERATION\0ARGUMENT…\0…" in our own namespaces; what it says of
 * the user goes to `who`. -errno with `why` if something is refused; the instance is then of no
 * use. */
int furnish(struct identity *who, char *text, size_t length, char *why, size_t room);

#endif
