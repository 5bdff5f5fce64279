/* What becomes of a packet that a link refuses, or that is too large for it. */
#ifndef PKTD_OBSTRUCT_H
#define PKTD_OBSTRUCT_H

#include "engine.h"

/* The piece stands at `node`, before a link that obstructs. True: it was refused or too large, and
 * was cut into fragments, or dropped and answered; it is taken over. */
bool obstruct(struct engine *e, uint32_t node, struct link *link, struct piece *piece,
              uint64_t at_ns);

#endif
