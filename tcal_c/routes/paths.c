/* The object that paths are composed with: made from the shape of a network, told the links'
 * states. */
#include "paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool all_below(const uint32_t *numbers, size_t count, uint32_t limit, bool or_nowhere) {
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] >= limit && !(or_nowhere && numbers[i] == NOWHERE)) {
            return false;
        }
    }
    return true;
}

/* A copy of its own; `ok` becomes false where there is no memory. */
static uint32_t *copy(const uint32_t *numbers, size_t count, bool *ok) {
    uint32_t *own = malloc((count + 1) * sizeof *own);
    *ok = *ok && own;
    if (own && count) {
        memcpy(own, numbers, count * sizeof *own);
    }
    return own;
}

static bool ascending(const uint32_t *first, uint32_t rows) {
    for (uint32_t row = 0; row < rows; row++) {
        if (first[row] > first[row + 1]) {
            return false;
        }
    }
    return first[0] == 0;
}

static bool make_room(struct tsroutes_paths *p) {
    size_t rows = (size_t)p->rows + 1;
    size_t columns = (size_t)p->columns + 1;
    p->place = calloc((size_t)p->instances + 1, sizeof *p->place);
    p->link = calloc((size_t)p->links + 1, sizeof *p->link);
    p->link_brief = calloc((size_t)p->links + 1, sizeof *p->link_brief);
    p->visit = calloc(rows, sizeof *p->visit);
    p->walk = malloc(rows * sizeof *p->walk);
    p->block_row = malloc(rows * sizeof *p->block_row);
    p->block_column = malloc(columns * sizeof *p->block_column);
    p->begun = malloc(columns * sizeof *p->begun);
    return p->place && p->link && p->link_brief && p->visit && p->walk && p->block_row &&
           p->block_column && p->begun;
}

static int start(struct tsroutes_paths *p, const uint32_t *roots, const uint32_t *out_first,
                 const uint32_t *out, const uint32_t *heads) {
    bool ok = true;
    if (p->rows > ROW_LIMIT || !ascending(out_first, p->rows) ||
        !all_below(roots, p->columns, p->rows, false) ||
        !all_below(out, out_first[p->rows], p->links, false) ||
        !all_below(heads, p->links, p->rows, true)) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < out_first[p->rows]; i++) {
        if (heads[out[i]] == NOWHERE) {
            return -EINVAL;
        }
    }
    p->root = copy(roots, p->columns, &ok);
    p->out_first = copy(out_first, (size_t)p->rows + 1, &ok);
    p->out = copy(out, out_first[p->rows], &ok);
    p->head = copy(heads, p->links, &ok);
    return make_room(p) && ok ? 0 : -ENOMEM;
}

static int settle_instances(struct tsroutes_paths *p, const uint32_t *rows, const uint32_t *columns,
                            const uint32_t *access_out, const uint32_t *access_in) {
    if (!all_below(rows, p->instances, p->rows, false) ||
        !all_below(columns, p->instances, p->columns, false) ||
        !all_below(access_out, p->instances, p->links, true) ||
        !all_below(access_in, p->instances, p->links, true)) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < p->instances; i++) {
        p->place[i] = (struct place){rows[i], columns[i], access_out[i], access_in[i]};
    }
    return 0;
}

struct tsroutes_paths *tsroutes_paths_new(uint32_t rows, uint32_t columns, uint32_t links,
                                          uint32_t instances, const uint32_t *roots,
                                          const uint32_t *out_first, const uint32_t *out,
                                          const uint32_t *heads, const uint32_t *instance_rows,
                                          const uint32_t *instance_columns,
                                          const uint32_t *access_out, const uint32_t *access_in) {
    struct tsroutes_paths *p = calloc(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    p->rows = rows;
    p->columns = columns;
    p->links = links;
    p->instances = instances;
    int error = start(p, roots, out_first, out, heads);
    error =
        error ? error : settle_instances(p, instance_rows, instance_columns, access_out, access_in);
    if (error) {
        tsroutes_paths_free(p);
        errno = -error;
        return NULL;
    }
    return p;
}

void tsroutes_paths_free(struct tsroutes_paths *p) {
    if (!p) {
        return;
    }
    free(p->root);
    free(p->out_first);
    free(p->out);
    free(p->head);
    free(p->place);
    free(p->link);
    free(p->link_brief);
    free(p->visit);
    free(p->walk);
    free(p->block_row);
    free(p->block_column);
    free(p->block);
    free(p->begun);
    free(p);
}

int32_t tsroutes_paths_set(struct tsroutes_paths *p, const uint8_t *up, const uint64_t *delays_ns,
                           const uint64_t *jitters_ns, const uint32_t *losses_ppb,
                           const uint64_t *rates_bps) {
    for (uint32_t i = 0; i < p->links; i++) {
        if (losses_ppb[i] > PPB) {
            return -EINVAL;
        }
    }
    for (uint32_t i = 0; i < p->links; i++) {
        p->link[i] = stretch_of_link(delays_ns[i], jitters_ns[i], losses_ppb[i], rates_bps[i]);
        if (!up[i]) {
            p->link[i].kind = STRETCH_NONE;
        }
        p->link_brief[i] = brief_of(&p->link[i]);
    }
    return 0;
}
