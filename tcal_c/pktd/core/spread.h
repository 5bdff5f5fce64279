/* Groups: links of one node that packets are shared out over, flow by flow. */
#ifndef PKTD_SPREAD_H
#define PKTD_SPREAD_H

#include "engine.h"

/* Control thread: makes sure that the group's memory exists (an undeclared group has no links). */
bool spread_prepare(struct spread *spread, uint32_t group);

/* Data thread; the memory must have been prepared. */
void spread_set(struct spread *spread, uint32_t group, const uint32_t *links, uint32_t count);

void spread_destroy(struct spread *spread);

/* What of a packet decides where it goes: the same for all packets of a flow. */
uint64_t spread_flow(const struct packet_info *info, const uint8_t *frame);

/* The link by which a frame leaves a node whose table says `next`, which is no link itself: one of
 * the group that it stands for. NULL: there is none. */
struct link *spread_link(struct engine *e, uint32_t next, struct frame *frame);

/* Any of those: they are equal in how far they lead. */
const struct link *spread_first(const struct engine *e, uint32_t next);

#endif
