/* The file in which the kernel is told where to do the protocol work of what is written to a TAP
 * (rps_cpus). */
#ifndef PKTD_STEERING_H
#define PKTD_STEERING_H

#include "port.h"

/* Any port. A TAP's work is done by the processors of `mask` from now on, or "0": by the one that
 * writes. 0 or -errno, for other kinds -EOPNOTSUPP. The first call opens the file, which is the
 * control thread's; after it the data thread may call, too, which does not wait. */
int port_steer(struct port *port, const char *mask);

#endif
