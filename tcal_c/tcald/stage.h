/* What the client has declared, what it is putting together, and the batches that wait. */
#ifndef TCALD_STAGE_H
#define TCALD_STAGE_H

#include "common/session.h"
#include "tcal/tcal.h"

struct batch {
    uint64_t number;
    uint64_t at_ns;
    struct tcal_change *change;
    size_t changes;
    size_t room;
    struct batch *next;
};

struct declared {
    bool known;
    struct addr addr[2];
};

struct stage {
    struct tcal *tcal;
    /* Everything declared, staged or not: what checks are made against. */
    struct declared *node;
    struct addr_table addrs;
    uint32_t addr_count;
    uint64_t *path; /* hash set of source << 16 | dest, plus 1 */
    size_t paths;
    size_t path_room;
    struct batch *batch;   /* being put together */
    struct batch *waiting; /* by time, then number */
    uint64_t commits;
};

bool stage_init(struct stage *s, struct tcal *tcal);
void stage_destroy(struct stage *s);

/* Checks one change against all that is declared and stages it, or refuses and stages nothing. */
bool stage_change(struct stage *s, const struct tcal_change *change, struct refusal *r);

/* The staged changes wait for their time; NULL: refused. */
const struct batch *stage_commit(struct stage *s, uint64_t at_ns, struct refusal *r);

/* Forgets what was staged since the last commit. */
void stage_abort(struct stage *s);

/* The first batch if it is due, taken off the list; free it with batch_free. */
struct batch *stage_due(struct stage *s, uint64_t now_ns);

/* After a batch that failed: declarations are again what is in force and what waits. */
void stage_failed(struct stage *s);

void batch_free(struct batch *batch);

#endif
