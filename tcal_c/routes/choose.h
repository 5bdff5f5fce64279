/* The next hops of one destination, made right again after its distances have changed. */
#ifndef ROUTES_CHOOSE_H
#define ROUTES_CHOOSE_H

#include "groups.h"
#include "repair.h"

/* Rows whose next hop has to be looked at, each once; the same kind of marks as in a repair. */
struct chooser {
    const struct network *net;
    uint32_t mark;
    uint32_t *stale; /* row -> mark */
    uint32_t *row;
    uint32_t count;
};

/* 0 or -ENOMEM; in both cases chooser_destroy() may be called. */
int chooser_init(struct chooser *chooser, const struct network *net);
void chooser_destroy(struct chooser *chooser);

void chooser_begin(struct chooser *chooser);
void chooser_add(struct chooser *chooser, uint32_t row);
void chooser_add_all(struct chooser *chooser);

/* Adds the rows that a repair has moved. */
void chooser_add_moved(struct chooser *chooser, const struct repair *repair,
                       const struct column *column);

/* Adds the neighbours of those rows that have other tight links now. */
void chooser_add_neighbours(struct chooser *chooser, const struct repair *repair,
                            const struct column *column);

/* What stands in the table for this row: its first tight link, 0 if there is none. */
uint16_t choose(const struct network *net, const struct column *column, uint32_t row);

/* What stands in the table for each of its tight links, ascending: the first GROUP_MOST of them, in
 * the order in which next hops are preferred. How many there are. */
uint32_t choose_all(const struct network *net, const struct column *column, uint32_t row,
                    uint16_t *links);

#endif
