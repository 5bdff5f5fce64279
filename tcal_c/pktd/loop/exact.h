/* What makes the data thread exact. */
#ifndef PKTD_EXACT_H
#define PKTD_EXACT_H

#include "loop.h"

/* Takes for the calling thread what the options allow and the machine permits; the loop is told. */
void be_exact(struct loop *loop, const struct loop_options *options);

/* Takes the real-time class or leaves it, where the data thread may have it. Data thread. */
void take_class(struct loop *loop, enum load_class wanted);

#endif
