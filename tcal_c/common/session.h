/* A client's session: the table of commands, those that every datapath has, and the lease. A line
 * in, one answer out; what clients rely on is in docs/pktd.md. */
#ifndef COMMON_SESSION_H
#define COMMON_SESSION_H

#include "limits.h"
#include "text.h"
#include "words.h"

#define PROTO_LINE_LIMIT 65536u
#define PROTO_VERSION 1

/* Why a command was refused. The text is complete and in the client's terms. */
struct refusal {
    const char *code; /* NULL: not refused */
    char text[480];
};

bool refuse(struct refusal *r, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A program's own; a struct session is its first member. */
struct proto;

/* Answers with `ok` and returns true, or refuses and returns false. Each parses its line completely
 * before it stages anything. */
typedef bool command(struct proto *p, struct words *w, struct refusal *r);

struct command_row {
    const char *name;
    command *run;
    int mode; /* the program's own */
};

/* What a program is to its sessions. */
struct session_program {
    const char *name;
    const struct command_row *commands;
    size_t command_count;
    uint64_t (*clock)(struct proto *p);
    void (*describe)(struct proto *p, struct text *out); /* KEY=VALUE… of hello */
    void (*abort)(struct proto *p);
    bool (*commit)(struct proto *p, uint64_t at_ns, struct refusal *r);
    /* Closes every path, or opens them again. False: not all, and why. */
    bool (*close)(struct proto *p, bool closed, struct refusal *r);
    /* Each of these may be NULL. */
    bool (*ready)(struct proto *p, struct refusal *r); /* whether hello is answered with ok */
    bool (*run)(struct proto *p, const struct command_row *row, struct words *w,
                struct refusal *r);                /* instead of row->run */
    uint64_t (*next)(const struct proto *p);       /* when something is due; TIME_NEVER */
    void (*due)(struct proto *p, uint64_t now_ns); /* does what is due */
};

struct session {
    const struct session_program *program;
    struct text *out;
    bool greeted;
    bool quit;
    bool expired;      /* the lease: paths are closed */
    uint64_t lease_ns; /* 0: none */
    uint64_t heard_ns; /* when the last line came */
};

/* Handles one line of `length` bytes without its newline; `line` is overwritten. line[length] is 0.
 */
void session_line(struct session *s, char *line, size_t length);

/* A line that was longer than PROTO_LINE_LIMIT. */
void session_too_long(struct session *s);

/* When the lease ends or something is due; TIME_NEVER. */
uint64_t session_next(const struct session *s);

/* Does what is due. */
void session_due(struct session *s);

/* No line that had come by `now_ns` is left unread: ends the lease if it was over then. Applying a
 * large batch may take longer than a lease. */
void session_judge(struct session *s, uint64_t now_ns);

/* -- for commands ------------------------------------------------------------------------------ */

/* For the tables of programs. */
command do_hello, do_sync, do_commit, do_abort, do_lease, do_clock, do_quit;

bool syntax(struct refusal *r, const char *usage);

/* A number of at most `limit`; `what` is what it is one of. */
bool take_number(const char *what, const char *word, uint64_t limit, uint64_t *to,
                 struct refusal *r);

/* A prefix, refused with the one that was probably meant. */
bool take_prefix(char *word, struct prefix *prefix, struct refusal *r);

/* A number of a node, port or link as the next word. */
bool take_index(struct words *w, const char *what, uint64_t limit, uint32_t *index,
                const char *usage, struct refusal *r);
bool take_end(struct words *w, const char *usage, struct refusal *r);

/* The answer `ok`; true. */
bool done(struct proto *p);

#endif
