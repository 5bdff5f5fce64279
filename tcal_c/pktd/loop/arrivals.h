/* Frames that have come over lines before they are there. Data thread, in virtual time. */
#ifndef PKTD_ARRIVALS_H
#define PKTD_ARRIVALS_H

#include "loop.h"

/* A line is read from now on, or no longer: what has not arrived by then never does. */
void arrivals_add(struct loop *loop, struct port *port);
void arrivals_remove(struct loop *loop, struct port *port);

/* Takes `got` bytes that were read from the line. False when they are no frames: the line is of no
 * use any more. */
bool arrivals_take(struct loop *loop, struct port *port, size_t got);

/* When the next frame arrives, or TIME_NEVER. */
uint64_t arrivals_next(const struct loop *loop);

/* Lets it in. There must be one. */
void arrivals_step(struct loop *loop);

#endif
