/* The data thread's dealings with its I/O threads. Data thread. */
#ifndef PKTD_TURNS_H
#define PKTD_TURNS_H

#include "loop.h"

/* Takes what I/O threads have done, and decides now and then whether they are to go on. */
void turns_look(struct loop *loop);

/* Reads the ports of an I/O thread that does not have the turn. */
void turns_read(struct loop *loop, struct io_thread *io_thread);

/* Every port is the data thread's again, and what I/O threads had read of it is in the engine. */
void turns_recall(struct loop *loop);

#endif
