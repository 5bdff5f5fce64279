/* The data thread: the engine, the ports and the clock. */
#ifndef PKTD_LOOP_H
#define PKTD_LOOP_H

#include "pktd/core/batch.h"
#include "pktd/core/engine.h"
#include "pktd/core/structures/histogram.h"
#include "pktd/core/pace.h"
#include "pktd/ports/port.h"

#include <pthread.h>

enum message_kind {
    MESSAGE_BATCH,
    MESSAGE_RESERVE,
    MESSAGE_OPEN,
    MESSAGE_CLOSE,
    MESSAGE_LEASE,
    MESSAGE_STOP
};

/* From the control thread to the data thread and, done, back again. */
struct message {
    struct message *next;
    enum message_kind kind;
    union {
        struct batch *batch;
        struct engine_room room;
        struct port *port;
        bool expired;
    };
};

struct loop_options {
    bool fifo;
    bool lock;
    uint64_t pool_bytes;
    uint32_t sharers; /* pktds on this machine */
    bool any_source;  /* see engine_take_any_source */
};

struct loop {
    struct engine *engine;
    struct pace pace;
    struct histogram late;
    int epoll;
    int wake;   /* eventfd: there are messages for the data thread */
    int report; /* eventfd: there are messages for the control thread */
    _Atomic(struct message *) inbox;
    _Atomic(struct message *) outbox;
    struct message *pending; /* batches, by time and number */
    struct frame *scratch;   /* the next read goes here */
    struct port **port;
    uint64_t now_ns; /* as of the last look at the clock */
    bool stop;
    bool is_fifo;
    bool is_locked;
    pthread_t thread;
    _Atomic int started;
};

/* Starts the data thread and waits until it runs: 0 or -errno. */
int loop_start(struct loop *loop, const struct loop_options *options);

/* Hands a message over and never waits. The loop gives it back through loop_collect. */
void loop_post(struct loop *loop, struct message *message);

/* Messages that are done, oldest first. Reading `report` to empty is the caller's. */
struct message *loop_collect(struct loop *loop);

/* Ends the data thread and frees everything but the ports. */
void loop_stop(struct loop *loop);

#endif
