/* Sets of links of a row that packets are shared out over, each set once. */
#ifndef ROUTES_GROUPS_H
#define ROUTES_GROUPS_H

#include "common.h"

#define GROUP_MOST 64u /* links of a set */

/* Sets are numbered in the order in which they were added, from 1 within their row. */
struct groups {
    uint16_t *number; /* of each set its row, how many links it has, and these, ascending */
    size_t count;
    size_t room;
    struct group *group;
    uint32_t group_count;
    uint32_t group_room;
    uint32_t *slot; /* set + 1 by the hash of what `number` has of it; 0 = none */
    uint32_t slots; /* a power of two, more than twice the sets */
    uint32_t *of_row;
};

/* 0 or -ENOMEM; in both cases groups_destroy() may be called. */
int groups_init(struct groups *groups, uint32_t rows);
void groups_destroy(struct groups *groups);

/* The number of a set among those of its row. A set that is new is added. -ENOMEM, or -ERANGE where
 * its row would have more than `most`. */
int32_t groups_number(struct groups *groups, uint32_t row, const uint16_t *links, uint32_t count,
                      uint32_t most);

#endif
