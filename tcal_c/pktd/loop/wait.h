/* How the data thread waits for the next due time, packet or message. */
#ifndef PKTD_WAIT_H
#define PKTD_WAIT_H

#include "loop.h"

#define WAIT_EVENTS 64
#define WAKE_TAG                                                                                   \
    UINT32_MAX /* of what is ready: messages; otherwise its low half is a port's number */

#define IO_THREAD_TAG                                                                              \
    (UINT32_MAX - 1) /* of the ports of I/O thread 0; downwards those of the others */

/* What may be read; in virtual time, what has been read into the port's buffer. */
struct ready {
    uint64_t tag;
    uint32_t events; /* real time: epoll(7) */
    int result;      /* virtual time: bytes or -errno */
};

/* 0 or -errno. */
int wait_open(struct loop *loop);
void wait_close(struct loop *loop);

/* Waits until something is due or ready: how much is ready. Data thread, like all that follows. */
int loop_wait(struct loop *loop, struct ready *ready);

/* The port is looked at from now on (0 or -errno), or no longer. */
int wait_add(struct loop *loop, struct port *port);
void wait_remove(struct loop *loop, struct port *port);

/* wait_virtual.c: the same in virtual time. */
int virtual_open(struct loop *loop);
void virtual_close(struct loop *loop);
int virtual_wait(struct loop *loop, struct ready *ready);
int virtual_add(struct loop *loop, struct port *port);
void virtual_remove(struct loop *loop, struct port *port);

/* What was ready has been used: the next may be read. */
void virtual_again(struct loop *loop, uint64_t tag);

/* When the engine has something to do next. */
uint64_t wait_next_due(const struct loop *loop);

#endif
