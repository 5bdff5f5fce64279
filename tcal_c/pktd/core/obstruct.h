/* What becomes of a packet that a link refuses, that is too large for it, or whose TTL is used up.
 */
#ifndef PKTD_OBSTRUCT_H
#define PKTD_OBSTRUCT_H

#include "engine.h"

/* The piece stands at `node`, before a link that obstructs. True: it was refused or too large, and
 * was cut into fragments, or dropped and answered; it is taken over. */
bool obstruct(struct engine *e, uint32_t node, struct link *link, struct piece *piece,
              uint64_t at_ns);

/* The piece has come over a link to `node`, a hop that it passes, which takes one from its TTL.
 * True: it had no more, and was dropped and answered; it is taken over. */
bool expire(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns);

#endif
