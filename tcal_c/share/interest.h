/* The shape of a network, which stays the same while links come and go. */
#ifndef SHARE_INTEREST_H
#define SHARE_INTEREST_H

#include "tsshare.h"

#include <stdbool.h>

#define TILE 32u /* columns that are copied out of the table at once: a cache line and a bit */

struct tsshare_net {
    uint32_t rows, columns, links, instances;
    uint32_t *root;                   /* column -> row */
    uint32_t *out_first;              /* row -> place in out[] */
    uint32_t *out;                    /* links to core nodes */
    uint32_t *head;                   /* link -> row, TSSHARE_NONE behind an anchor */
    uint32_t *row, *column;           /* instance -> where it hangs on the core */
    uint32_t *access_out, *access_in; /* instance -> link or TSSHARE_NONE */

    /* Room to work in. */
    uint16_t *tile;               /* column by column */
    uint32_t *by, *waits, *ready; /* per row */
    uint64_t *passing;            /* per row: what has come down the tree so far */
    uint64_t *own;                /* per row: the hosts of the instances that send from there */
    uint64_t *arrives;            /* per column, from other rows */
    uint64_t *near, *several;     /* per column: hosts with one, with two senders behind it */
    uint32_t *receivers;          /* per column */
    uint8_t *reaches;             /* per row: it has a way to another row with a receiver */
};

#endif
