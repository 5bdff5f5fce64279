/* The distances to one destination, made right again after lengths have changed. */
#ifndef ROUTES_REPAIR_H
#define ROUTES_REPAIR_H

#include "heap.h"
#include "network.h"

/* One destination: how far every row is from it. */
struct column {
    distance *far;
    uint32_t root;
};

/* Memory for repairs, one column after the other. A row whose mark is the current one is in the
 * set; the next column has another mark, so that nothing needs to be cleared. */
struct repair {
    const struct network *net;
    struct heap heap;
    uint32_t mark;
    uint32_t *cut;    /* row -> mark: nothing leads on from it any more */
    uint32_t *seen;   /* row -> mark: its distance was touched */
    distance *before; /* row -> the distance it had, where seen */
    uint32_t *moved;  /* the rows seen */
    uint32_t moved_count;
};

/* 0 or -ENOMEM; in both cases repair_destroy() may be called. */
int repair_init(struct repair *repair, const struct network *net);
void repair_destroy(struct repair *repair);

/* Begins with the next column: no row is cut or seen. */
void repair_begin(struct repair *repair);

/* These rows have lost the link that they used: finds all that now have to be searched for, and
 * what their neighbours make of them. */
void repair_cut(struct repair *repair, const struct column *column, const uint32_t *lost,
                uint32_t count);

/* Nothing is known of any row but the root. */
void repair_forget(struct repair *repair, const struct column *column);

/* `row` can be reached by a link of this length from a row that is `rest` away. */
void repair_offer(struct repair *repair, const struct column *column, uint32_t row, distance rest,
                  distance length);

/* Carries on until every distance is right. */
void repair_settle(struct repair *repair, const struct column *column);

#endif
