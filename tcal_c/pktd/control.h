/* The control thread: commands in, answers out, and the data thread's replies between them. */
#ifndef PKTD_CONTROL_H
#define PKTD_CONTROL_H

#include "pktd/loop/loop.h"

/* Serves the client on descriptors `in` and `out` until it is gone or says quit: 0 or -errno. */
int control_serve(struct loop *loop, int program, int in, int out);

#endif
