/* Adds up the stretches from some rows to some destinations, along a table of next hops.
 *
 * A walk from a row ends at the destination or where an earlier walk has been, and is then added up
 * backwards: every row of a column is added once.
 */
#include "paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void next_mark(struct tsroutes_paths *p) {
    if (++p->mark == 0) {
        for (uint32_t row = 0; row < p->rows; row++) {
            p->visit[row].met = 0;
            p->visit[row].known = 0;
        }
        p->mark = 1;
    }
}

static void know(struct tsroutes_paths *p, uint32_t row, const struct stretch *rest) {
    p->visit[row].rest = *rest;
    p->visit[row].met = p->mark;
    p->visit[row].known = p->mark;
}

/* From the last row of the walk back to its first. */
static void add_up(struct tsroutes_paths *p, const uint16_t *table, uint32_t column, uint32_t count,
                   uint32_t end) {
    struct stretch rest = p->visit[end].rest;
    while (count--) {
        uint32_t row = p->walk[count];
        uint16_t choice = table[(size_t)row * p->columns + column];
        rest = stretch_join(&p->link[p->out[p->out_first[row] + choice - 1]], &rest);
        know(p, row, &rest);
    }
}

/* 0, or -EINVAL when the table leads in a circle, over a link that is down, or nowhere. */
static int walk(struct tsroutes_paths *p, const uint16_t *table, uint32_t column, uint32_t row) {
    static const struct stretch none = {.kind = STRETCH_NONE};
    uint32_t count = 0;
    uint32_t link;
    while (p->visit[row].known != p->mark) {
        if (p->visit[row].met == p->mark ||
            !next_link(p, row, table[(size_t)row * p->columns + column], &link)) {
            return -EINVAL;
        }
        if (link == NOWHERE) {
            know(p, row, &none);
            break;
        }
        p->visit[row].met = p->mark;
        p->walk[count++] = row;
        row = p->head[link];
    }
    add_up(p, table, column, count, row);
    return 0;
}

static int compose_column(struct tsroutes_paths *p, const uint16_t *table, uint32_t column,
                          uint32_t place, uint32_t count, const uint32_t *rows) {
    struct stretch nothing = stretch_nothing();
    next_mark(p);
    know(p, p->root[column], &nothing);
    for (uint32_t i = 0; i < count; i++) {
        int error = walk(p, table, column, rows[i]);
        if (error) {
            return error;
        }
        p->block[(size_t)i * p->width + place] = p->visit[rows[i]].rest;
    }
    return 0;
}

static int make_block(struct tsroutes_paths *p, uint32_t row_count, const uint32_t *rows,
                      uint32_t column_count, const uint32_t *columns) {
    size_t need = (size_t)row_count * column_count;
    memset(p->block_row, 0xff, p->rows * sizeof *p->block_row);
    memset(p->block_column, 0xff, p->columns * sizeof *p->block_column);
    if (need > p->block_room) {
        free(p->block);
        p->block = malloc(need * sizeof *p->block);
        p->block_room = p->block ? need : 0;
        if (!p->block) {
            return -ENOMEM;
        }
    }
    p->width = column_count;
    for (uint32_t i = 0; i < row_count; i++) {
        p->block_row[rows[i]] = i;
    }
    for (uint32_t i = 0; i < column_count; i++) {
        p->block_column[columns[i]] = i;
    }
    return 0;
}

int32_t tsroutes_paths_compose(struct tsroutes_paths *p, const uint16_t *table, uint32_t row_count,
                               const uint32_t *rows, uint32_t column_count,
                               const uint32_t *columns) {
    if (row_count > p->rows || !all_below(rows, row_count, p->rows, false) ||
        column_count > p->columns || !all_below(columns, column_count, p->columns, false)) {
        return -EINVAL;
    }
    int error = make_block(p, row_count, rows, column_count, columns);
    for (uint32_t i = 0; !error && i < column_count; i++) {
        error = compose_column(p, table, columns[i], i, row_count, rows);
    }
    if (error) { /* nothing can be asked for */
        memset(p->block_row, 0xff, p->rows * sizeof *p->block_row);
    }
    return error;
}
