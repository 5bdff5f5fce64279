/* Groups: links of one node that packets are shared out over, flow by flow. */
#ifndef PKTD_SPREAD_H
#define PKTD_SPREAD_H

#include "common/limits.h"

#include <stdatomic.h>

#define SPREAD_FAN 256u

struct spread_group {
    uint32_t count; /* 0: never declared */
    uint32_t link[SPREAD_MOST];
};

struct spread_page {
    struct spread_group group[SPREAD_FAN];
};

/* Pages of groups. The control thread adds empty ones, the data thread alone writes groups. */
struct spread {
    _Atomic(struct spread_page *) page[SPREAD_LIMIT / SPREAD_FAN];
};

/* Control thread: makes sure that the group's memory exists. False: out of memory. */
bool spread_prepare(struct spread *spread, uint32_t group);

/* Data thread; the memory must have been prepared. */
void spread_set(struct spread *spread, uint32_t group, const uint32_t *links, uint32_t count);

/* What stands in a table of links as `next`, which is no link; NULL: it is no group either. */
const struct spread_group *spread_find(const struct spread *spread, uint32_t next);

void spread_destroy(struct spread *spread);

#endif
