/* What is due: packets that leave, batches, frames of lines. Data thread. */
#ifndef PKTD_DUE_H
#define PKTD_DUE_H

#include "loop.h"

/* Does what is due by now, but no more than a bounded number of steps. */
void due_work(struct loop *loop);

/* How packets leave the engine (engine_deliver and engine_hand_over); the context is the loop. */
int due_deliver(void *context, uint32_t number, uint64_t at_ns, const struct iovec *io, int count);
bool due_hand_over(void *context, uint32_t number, uint64_t at_ns, const struct leaving *leaving,
                   const struct iovec *io, int count);

#endif
