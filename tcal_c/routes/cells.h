/* The cells of the table that one apply has changed: found column by column, told by number. */
#ifndef ROUTES_CELLS_H
#define ROUTES_CELLS_H

#include "common.h"

struct cells {
    uint32_t *cell;
    size_t count;
    size_t room;
};

/* 0 or -ENOMEM. Columns must come in ascending order. */
int cells_add(struct cells *cells, uint32_t cell);

/* Copies the cells in ascending order. `first` is memory for rows + 1 counts, `columns` the width
 * of the table. */
void cells_sorted(const struct cells *cells, uint32_t rows, uint32_t columns, size_t *first,
                  uint32_t *sorted);

void cells_destroy(struct cells *cells);

#endif
