/* The data thread's dealings with its hands. Data thread. */
#ifndef PKTD_TURNS_H
#define PKTD_TURNS_H

#include "loop.h"

/* Takes what hands have done, and decides now and then whether they are to go on. */
void turns_look(struct loop *loop);

/* Reads the ports of a hand that does not have the turn. */
void turns_read(struct loop *loop, struct hand *hand);

/* Every port is the data thread's again, and what hands had read of it is in the engine. */
void turns_recall(struct loop *loop);

#endif
