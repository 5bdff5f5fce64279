/* CoDel: packets that have waited too long for too long are dropped when they are to be sent. */
#ifndef PKTD_CODEL_H
#define PKTD_CODEL_H

#include "fifo.h"

struct aqm;

struct codel {
    bool dropping;
    uint32_t count;      /* drops since dropping began */
    uint32_t last_count; /* with how many it began */
    uint16_t root;       /* about 2^16 / sqrt(count) */
    uint64_t above_ns; /* when packets will have waited too long for an interval; 0: they do not */
    uint64_t next_ns;  /* of the next drop */
};

/* The packet of `fifo`, a part of what `aqm` holds, that is sent from `at_ns` on; NULL when none is
 * left. Others are lost or marked by that. */
struct piece *codel_take(struct aqm *aqm, struct codel *codel, struct fifo *fifo, uint64_t at_ns);

#endif
