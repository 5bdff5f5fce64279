/* A thread that reads some of the ports and writes to them while there is much to do. */
#ifndef PKTD_IO_THREAD_H
#define PKTD_IO_THREAD_H

#include "pktd/core/engine.h"
#include "pktd/core/structures/spsc.h"
#include "pktd/ports/port.h"

#include <pthread.h>

#define IO_THREAD_SLOTS 512u /* of each queue */
#define IO_THREAD_SMALL                                                                            \
    384u /* frames that an I/O thread may have read: small ones, and those of any size */
#define IO_THREAD_LARGE 24u
#define IO_THREAD_SMALL_BYTES 2048u

/* What an I/O thread has read, or that there is no more to read: no frame. No port: a device is
 * down. */
struct io_thread_input {
    struct port *port;
    struct frame *frame;
    size_t bytes;
    uint64_t at_ns;
};

/* What an I/O thread shall write. The payload stands in the frame, which stays until the I/O thread
 * is done. */
struct io_thread_job {
    struct leaving leaving;
    struct port *port;
    uint64_t due_ns;
    struct virtio_net_hdr vnet;
    uint32_t header_bytes;
    uint8_t header[HEADER_LIMIT];
    uint8_t *payload;
    size_t payload_bytes;
};

struct io_thread_done {
    struct leaving leaving;
    int error;
    uint64_t late_ns;
};

struct io_thread {
    /* From the core (`out`, `stock`: empty frames) and to it. */
    struct spsc in, out, done, stock;
    int ports; /* epoll: the ports that are this I/O thread's; whoever has the turn looks at it */
    int wake;  /* eventfd */
    int core;  /* eventfd that wakes the core */
    atomic_bool *core_sleeps;
    atomic_bool turn;   /* the ports are the I/O thread's now, not the core's */
    atomic_bool recall; /* they are wanted back */
    atomic_bool sleeps; /* it waits for `wake` */
    atomic_bool ends;
    /* Who has the turn: empty frames, and where the next is read to. */
    struct frame *small;
    struct frame *large;
    pthread_t thread;
    bool is_given;  /* the core's own view of `turn`, until everything has come back */
    counter frames; /* that the I/O thread has read and written */
};

/* 0 or -errno. */
int io_thread_start(struct io_thread *h, int core, atomic_bool *core_sleeps);
void io_thread_end(struct io_thread *h);

/* Ends the I/O thread's sleep, or its next one. Any thread. */
void io_thread_ring(struct io_thread *h);

/* Writes what there is to write, as the I/O thread does: how much. Who has the turn. */
uint32_t io_thread_write(struct io_thread *h, uint32_t most);

#endif
