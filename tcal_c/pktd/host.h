/* What the protocol needs of the world, for real: the loop, devices, the clock. Control thread. */
#ifndef PKTD_HOST_H
#define PKTD_HOST_H

#include "pktd/loop/loop.h"
#include "pktd/protocol/proto.h"

struct host {
    struct loop *loop;
    int program; /* the stamp's, or -1 */
    struct proto *proto;
    uint64_t lost;           /* packets that sockets had no room for */
    struct message *awaited; /* the data thread is to be done with it before anything else */
    struct port *port[PORT_LIMIT];
};

/* To be copied and given its context, a struct host. */
extern const struct proto_host host_functions;

/* Takes what the data thread has done. */
void host_collect(struct host *h);

/* Leaves others' devices as they were. */
void host_restore_ports(struct host *h);

/* Removes the devices. The data thread has ended. */
void host_close_ports(struct host *h);

#endif
