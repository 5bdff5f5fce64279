/* A thread that reads some of the ports and writes to them while there is much to do. */
#ifndef PKTD_HAND_H
#define PKTD_HAND_H

#include "pktd/core/engine.h"
#include "pktd/core/structures/spsc.h"
#include "pktd/ports/port.h"

#include <pthread.h>

#define HAND_SLOTS 512u /* of each queue */
#define HAND_SMALL 384u /* frames that a hand may have read: small ones, and those of any size */
#define HAND_LARGE 24u
#define HAND_SMALL_BYTES 2048u

/* What a hand has read, or that there is no more to read: no frame. No port: a device is down. */
struct hand_input {
    struct port *port;
    struct frame *frame;
    size_t bytes;
    uint64_t at_ns;
};

/* What a hand shall write. The payload stands in the frame, which stays until the hand is done. */
struct hand_job {
    struct leaving leaving;
    struct port *port;
    uint64_t due_ns;
    struct virtio_net_hdr vnet;
    uint32_t header_bytes;
    uint8_t header[HEADER_LIMIT];
    uint8_t *payload;
    size_t payload_bytes;
};

struct hand_done {
    struct leaving leaving;
    int error;
    uint64_t late_ns;
};

struct hand {
    /* From the core (`out`, `stock`: empty frames) and to it. */
    struct spsc in, out, done, stock;
    int ports; /* epoll: the ports that are this hand's; whoever has the turn looks at it */
    int wake;  /* eventfd */
    int core;  /* eventfd that wakes the core */
    atomic_bool *core_sleeps;
    atomic_bool turn;   /* the ports are the hand's now, not the core's */
    atomic_bool recall; /* they are wanted back */
    atomic_bool sleeps; /* it waits for `wake` */
    atomic_bool ends;
    /* Who has the turn: empty frames, and where the next is read to. */
    struct frame *small;
    struct frame *large;
    pthread_t thread;
    bool is_given;  /* the core's own view of `turn`, until everything has come back */
    counter frames; /* that the hand has read and written */
};

/* 0 or -errno. */
int hand_start(struct hand *h, int core, atomic_bool *core_sleeps);
void hand_end(struct hand *h);

/* Ends the hand's sleep, or its next one. Any thread. */
void hand_ring(struct hand *h);

/* Writes what there is to write, as the hand does: how much. Who has the turn. */
uint32_t hand_write(struct hand *h, uint32_t most);

#endif
