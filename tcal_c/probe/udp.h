/* Paced or unpaced datagrams to tprobe serve, counted there. */
#ifndef TPROBE_UDP_H
#define TPROBE_UDP_H

#include "options.h"

/* Sends datagrams of o->size bytes at layer 3 for o->seconds_ns: o->pps a second, or as fast as
 * the socket takes them when pps is 0. Prints a line every o->interval_ns (0 = none) and a summary
 * with the receiver's count. Exit code. */
int udp_run(const struct options *o);

#endif
