/* Reading from ports. Data thread. */
#ifndef PKTD_READING_H
#define PKTD_READING_H

#include "loop.h"

/* So many ports are ready: where there are many each has its turn soon. */
void reading_take_turns(struct loop *loop, int ports);

/* Reads what the port has, no more than its part of this round; `events` are those of epoll(7). */
void reading_port(struct loop *loop, struct port *port, uint32_t events);

/* In virtual time: `result` bytes have been read into the port's buffer, or -errno. */
void reading_frame(struct loop *loop, struct port *port, int result);

/* A frame, which becomes the engine's. */
void reading_input(struct loop *loop, const struct port *port, struct frame *frame,
                   const struct port_frame *got);

/* The port is not read any more: it is gone, and the client will close it. */
void reading_end(struct loop *loop, struct port *port);

#endif
