/* Distributions of the delay as netem takes them: tables of draws, one of which is picked. */
#ifndef TCAL_DIST_H
#define TCAL_DIST_H

#include "tcal/tcal.h"

#define TCAL_TABLE_SIZE 4096

/* Builds the tables; before any of the following. */
void tcal_dist_init(void);

/* Entries are deviations in units of jitter / 8192 / scale. */
const int16_t *tcal_dist_table(enum tcal_dist dist);

/* The jitter given to netem is the path's times this: a table reaches 4 jitters, which is too short
 * for the tail of a Pareto distribution. */
uint32_t tcal_dist_scale(enum tcal_dist dist);

#endif
