/* Packets for a group, or for all. */
#ifndef PKTD_MANY_H
#define PKTD_MANY_H

#include "engine.h"

/* A frame whose destination no node has entered at `port` at `at_ns`: reads what it says of groups,
 * and sends it to those that it is for. False: it is for nobody. Takes nothing over. */
bool many_take(struct engine *e, uint32_t port, struct frame *frame, uint64_t at_ns);

/* A piece of a frame with an audience stands at `node`. Takes it over. */
void many_arrive(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns);

/* The piece, which is for many, has come over a link to `node`, a hop: as expire() of obstruct.h.
 */
bool many_expire(struct engine *e, uint32_t node, struct piece *piece);

#endif
