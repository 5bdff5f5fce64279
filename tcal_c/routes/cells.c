/* Sorting by counting: cells come by column, so that putting each behind the ones of its row before
 * it leaves every row in the order of columns. Linear in cells and rows. */
#include "cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int cells_add(struct cells *cells, uint32_t cell) {
    if (cells->count == cells->room) {
        size_t room = cells->room ? 2 * cells->room : 1024;
        uint32_t *more = realloc(cells->cell, room * sizeof *more);
        if (!more) {
            return -ENOMEM;
        }
        cells->cell = more;
        cells->room = room;
    }
    cells->cell[cells->count++] = cell;
    return 0;
}

void cells_sorted(const struct cells *cells, uint32_t rows, uint32_t columns, size_t *first,
                  uint32_t *sorted) {
    memset(first, 0, ((size_t)rows + 1) * sizeof *first);
    for (size_t i = 0; i < cells->count; i++) {
        first[cells->cell[i] / columns + 1]++;
    }
    for (uint32_t row = 0; row < rows; row++) {
        first[row + 1] += first[row];
    }
    for (size_t i = 0; i < cells->count; i++) {
        sorted[first[cells->cell[i] / columns]++] = cells->cell[i];
    }
}

void cells_destroy(struct cells *cells) {
    free(cells->cell);
    *cells = (struct cells){0};
}
