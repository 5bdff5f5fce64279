/* The data thread: the engine, the ports and the clock. */
#ifndef PKTD_LOOP_H
#define PKTD_LOOP_H

#include "common/clock.h"
#include "pktd/capture/capture.h"
#include "pktd/core/batch.h"
#include "pktd/core/engine.h"
#include "pktd/core/structures/histogram.h"
#include "pktd/core/load.h"
#include "pktd/core/pace.h"
#include "pktd/steer/steer.h"
#include "pktd/io_threads/io_threads.h"
#include "pktd/ports/port.h"
#include "uring.h"

#include <pthread.h>

enum message_kind {
    MESSAGE_BATCH,
    MESSAGE_RESERVE,
    MESSAGE_OPEN,
    MESSAGE_CLOSE,
    MESSAGE_LEASE,
    MESSAGE_BURDEN,
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
        uint32_t burden_permille;
    };
};

struct loop_options {
    bool fifo;
    bool lock;
    uint64_t pool_bytes;
    uint32_t sharers;       /* pktds on this machine */
    uint32_t threads;       /* that read and write; 0: as many as the machine has cores for */
    bool always_threads;    /* also when one would do */
    bool any_source;        /* see engine_take_any_source */
    bool digests;           /* of what links carry */
    bool times;             /* are part of the digests */
    bool is_virtual;        /* time stands still while this process runs */
    int captures;           /* directory of captures; -1 = none */
    uint64_t capture_bytes; /* room for packets that are to be written */
};

/* A planted load, for tests: so much of every millisecond is computed away. */
struct burden {
    uint32_t permille;
    uint64_t next_ns;
};

/* See steers.c. The data thread's, but for what is the control thread's or atomic. */
struct steers {
    bool may; /* set once, before the control thread looks */
    bool is_pinned;
    bool is_unable; /* to stay on one processor */
    struct steer steer;
    cpu_set_t set;     /* the processors of this process */
    _Atomic int cpu;   /* the data thread's own */
    atomic_bool asked; /* ports wait for the control thread */
    int backlog;       /* softnet_stat; -1: not open */
    uint64_t looked_ns;
    uint64_t off_ns; /* when steering last went off */
    uint32_t ports;  /* that have ever been opened */
    uint32_t turn;   /* control thread, like the next two */
    counter refused;
    counter ports_steered;
};

struct loop {
    struct engine *engine;
    struct pace pace;
    struct load load;
    struct burden burden;
    struct histogram late;
    struct io_threads io_threads;
    struct steers steers;
    int epoll;
    int wake;   /* eventfd: there are messages for the data thread */
    int report; /* eventfd: there are messages for the control thread */
    _Atomic(struct message *) inbox;
    _Atomic(struct message *) outbox;
    struct message *pending; /* batches, by time and number */
    struct message *last;    /* what ends the data thread: made before, there may be no memory */
    struct frame *scratch;   /* the next read goes here */
    struct port **port;
    struct port *lines; /* the ports that are lines, in the order in which they were opened */
    uint64_t now_ns;   /* as of the last look at the clock; in virtual time never later than that */
    uint64_t after_ns; /* after the last write, or before the first */
    uint64_t round_ns; /* when the last wait was over */
    uint64_t awake_ns; /* since when the thread has not slept; 0 before it first has */
    counter longest_slice_ns; /* it went on for, in the real-time class */
    uint64_t spun_ns;         /* CPU time for waiting, all in all */
    int reads;                /* of one port in this round */
    bool stop;
    bool may_fifo;       /* the real-time class is permitted */
    atomic_bool is_fifo; /* and taken now */
    bool is_locked;
    bool is_virtual;
    bool has_captures;
    struct captures captures;
    pthread_t thread;
    _Atomic int started;
    bool was_idle;       /* nothing was done in the last turn */
    bool worked;         /* since it was last asked: something may have moved */
    atomic_bool awaited; /* the control thread wants to know when it does */
    atomic_bool moved;   /* it has */
    /* In virtual time, see wait_virtual.c: */
    struct uring uring;
    uint64_t woken;                    /* read from `wake` */
    uint32_t ports;                    /* that have ever been opened */
    uint64_t timer_ns;                 /* when the timer ends, 0 if it does not */
    uint64_t timer_first_ns;           /* the earliest time that this one was set to */
    struct __kernel_timespec timer_at; /* timer_ns */
};

/* The time as the engine is to take it, without another look at the clock: in virtual time that
 * costs a system call and moves the clock, and time stands still anyway. */
static inline uint64_t loop_time(const struct loop *loop) {
    return loop->is_virtual ? loop->now_ns : loop->after_ns;
}

/* Starts the data thread and waits until it runs: 0 or -errno. */
int loop_start(struct loop *loop, const struct loop_options *options);

/* Hands a message over and never waits. The loop gives it back through loop_collect. */
void loop_post(struct loop *loop, struct message *message);

/* Messages that are done, oldest first. Reading `report` to empty is the caller's. */
struct message *loop_collect(struct loop *loop);

/* Rings `report` once packets have moved; then loop_moved is true, once. What has moved before is
 * not told. Control thread. */
void loop_await(struct loop *loop);
bool loop_moved(struct loop *loop);

/* Ends the data thread and frees everything but the ports. */
void loop_stop(struct loop *loop);

/* Steering receivers' protocol work to other processors, where steer/steer.h says so (steers.c).
 */

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
static inline void steers_wrote(struct port *port, uint64_t now_ns) {
    port->window_frames++;
    port->wrote_ns = now_ns;
}

/* Decides now and then, and takes back what is not wanted any more. */
void steers_look(struct loop *loop, uint64_t now_ns);

/* Does what the data thread has asked for, some of it at a time. Control thread. */
void steers_apply(struct loop *loop, struct port *const *ports, uint32_t end);

#endif
