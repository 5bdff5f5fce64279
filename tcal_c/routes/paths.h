/* What composing paths in bulk works on: the shape of a network, its links' figures, and a block of
 * stretches between core rows and destinations. */
#ifndef ROUTES_PATHS_H
#define ROUTES_PATHS_H

#include "stretch.h"
#include "tsroutes.h"

#define NOWHERE UINT32_MAX

/* What of a stretch is needed where nothing is large and no rounding is near a half. */
struct brief {
    uint64_t kept; /* the upper half of a stretch's */
    uint64_t jitter_square;
    uint64_t delay_ns;
    uint64_t rate_bps;
    uint32_t hops;
    bool enough; /* false: there is no way, or the whole stretch has to be looked at */
};

/* A walk's view of a row, in the column at hand. */
struct visit {
    struct stretch rest; /* from here to the destination, once `known` is the mark */
    uint32_t met;        /* mark: this row is on the walk at hand, or known */
    uint32_t known;
};

/* Members of an instance: where it hangs on the core. */
struct place {
    uint32_t row;
    uint32_t column;
    uint32_t access_out; /* links; NOWHERE for an instance of the core */
    uint32_t access_in;
};

struct tsroutes_paths {
    uint32_t rows;
    uint32_t columns;
    uint32_t links;
    uint32_t instances;
    uint32_t *root;      /* column -> row */
    uint32_t *out_first; /* row -> its first of `out`; rows + 1 entries */
    uint32_t *out;       /* links in the order in which the table numbers them */
    uint32_t *head;      /* link -> row; NOWHERE if it does not lead to the core */
    struct place *place; /* instance -> */
    struct stretch *link;
    struct brief *link_brief;
    struct visit *visit; /* row -> */
    uint32_t *walk;      /* rows on the walk at hand */
    uint32_t mark;
    uint32_t *block_row;    /* row -> its line in the block, or NOWHERE */
    uint32_t *block_column; /* column -> its place in a line, or NOWHERE */
    uint32_t width;         /* of a line */
    struct stretch *block;
    size_t block_room;
    struct brief *begun; /* a line of the block, with the source's access link in front */
};

struct brief brief_of(const struct stretch *stretch);

bool all_below(const uint32_t *numbers, size_t count, uint32_t limit, bool or_nowhere);

/* The link that the table names, NOWHERE if there is none. False: the table cannot be followed. */
static inline bool next_link(const struct tsroutes_paths *p, uint32_t row, uint16_t choice,
                             uint32_t *link) {
    *link = NOWHERE;
    if (!choice) {
        return true;
    }
    if (choice > p->out_first[row + 1] - p->out_first[row]) {
        return false;
    }
    *link = p->out[p->out_first[row] + choice - 1];
    return p->link[*link].kind != STRETCH_NONE;
}

#endif
