/* Steering receivers' protocol work to other processors, where core/steer.h says so. */
#ifndef PKTD_STEERS_H
#define PKTD_STEERS_H

#include "loop.h"

/* Finds out whether there is anywhere to steer to. Data thread, like what follows. */
void steers_open(struct loop *loop, const struct loop_options *options);

/* After its end. */
void steers_close(struct loop *loop);

/* The port is there from now on. */
static inline void steers_add(struct loop *loop, const struct port *port) {
    uint32_t end = port->number + 1;
    loop->steers.ports = loop->steers.ports > end ? loop->steers.ports : end;
}

/* A frame was written to the port. */
static inline void steers_wrote(struct port *port) {
    port->window_frames++;
}

/* Decides now and then, and takes back what is not wanted any more. */
void steers_look(struct loop *loop, uint64_t now_ns);

/* Does what the data thread has asked for, some of it at a time. Control thread. */
void steers_apply(struct loop *loop, struct port *const *ports, uint32_t end);

#endif
