/* What is due is done; then wait for the next due time or for a packet.
 *
 * This thread alone touches the engine's state and the ports. It takes no locks and does not enter
 * malloc. Messages travel on two lock-free stacks (push by one side, taken whole by the other) with
 * an eventfd each as the bell. A batch is applied between two packets at its exact place in virtual
 * time: what was due before it is done first, what is due after it waits.
 */
#include "loop.h"

#include "arrivals.h"
#include "common/clock.h"
#include "exact.h"
#include "wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READS_PER_PORT 16  /* before the next port has its turn */
#define STEPS_PER_READ 256 /* due packets first: what comes in is stamped and can wait */
#define SMALL_BYTES 2048u
#define UNMEASURED 63 /* of 64 frames, in virtual time */

/* -- messages ---------------------------------------------------------------------------------- */

static void push(_Atomic(struct message *) *stack, struct message *message) {
    struct message *top = atomic_load_explicit(stack, memory_order_relaxed);
    do {
        message->next = top;
    } while (!atomic_compare_exchange_weak_explicit(stack, &top, message, memory_order_release,
                                                    memory_order_relaxed));
}

static struct message *take_all(_Atomic(struct message *) *stack) {
    struct message *top = atomic_exchange_explicit(stack, NULL, memory_order_acquire);
    struct message *first = NULL;
    while (top) {
        struct message *next = top->next;
        top->next = first;
        first = top;
        top = next;
    }
    return first;
}

static void ring(int fd) {
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

void loop_post(struct loop *loop, struct message *message) {
    push(&loop->inbox, message);
    ring(loop->wake);
}

struct message *loop_collect(struct loop *loop) {
    return take_all(&loop->outbox);
}

void loop_await(struct loop *loop) {
    /* Sequentially consistent: counters that are read after it have what is not told. */
    atomic_store(&loop->awaited, true);
}

bool loop_moved(struct loop *loop) {
    return atomic_exchange(&loop->moved, false);
}

/* The other half: counters were written before it is looked who waits for that. */
static void tell_moved(struct loop *loop) {
    if (!loop->worked) {
        return;
    }
    loop->worked = false;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&loop->awaited, memory_order_relaxed)) {
        atomic_store(&loop->awaited, false);
        atomic_store(&loop->moved, true);
        ring(loop->report);
    }
}

static void hand_back(struct loop *loop, struct message *message) {
    push(&loop->outbox, message);
    ring(loop->report);
}

static void add_pending(struct loop *loop, struct message *message) {
    struct batch *batch = message->batch;
    /* A time that has passed means now: the past cannot be changed any more. */
    batch->due_ns = max_u64(batch->at_ns, clock_now());
    struct message **slot = &loop->pending;
    while (*slot && (*slot)->batch->due_ns <= batch->due_ns) {
        slot = &(*slot)->next;
    }
    message->next = *slot;
    *slot = message;
}

/* It is not read any more; the client will close the port. */
static void set_gone(struct loop *loop, struct port *port) {
    wait_remove(loop, port);
    if (port->kind == PORT_LINE) {
        arrivals_remove(loop, port);
    }
    port->gone = true;
}

static void add_port(struct loop *loop, struct port *port) {
    loop->port[port->number] = port;
    if (port->out >= 0) {
        engine_use_paths(loop->engine);
    }
    if (port->kind == PORT_LINE) {
        arrivals_add(loop, port);
    }
    if (wait_add(loop, port)) {
        set_gone(loop, port);
    }
}

static void remove_port(struct loop *loop, struct port *port) {
    engine_close_port(loop->engine, port->number);
    wait_remove(loop, port);
    if (port->kind == PORT_LINE) {
        arrivals_remove(loop, port);
    }
    loop->port[port->number] = NULL;
}

static void handle(struct loop *loop, struct message *message) {
    switch (message->kind) {
    case MESSAGE_BATCH:
        add_pending(loop, message);
        return;
    case MESSAGE_RESERVE:
        engine_reserve(loop->engine, &message->room);
        break;
    case MESSAGE_OPEN:
        add_port(loop, message->port);
        break;
    case MESSAGE_CLOSE:
        remove_port(loop, message->port);
        break;
    case MESSAGE_LEASE:
        engine_close_paths(loop->engine, message->expired);
        break;
    case MESSAGE_STOP:
        loop->stop = true;
        break;
    }
    hand_back(loop, message);
}

static void read_messages(struct loop *loop) {
    uint64_t count;
    if (loop->is_virtual) {
        virtual_again(loop, WAKE_TAG);
    } else if (read(loop->wake, &count, sizeof count) < 0) {
        return;
    }
    for (struct message *m = take_all(&loop->inbox), *next; m; m = next) {
        next = m->next;
        handle(loop, m);
    }
}

static void apply_first(struct loop *loop) {
    struct message *message = loop->pending;
    struct batch *batch = message->batch;
    loop->pending = message->next;
    batch->applied_ns = clock_now();
    loop->worked = true;
    engine_apply(loop->engine, batch, batch->due_ns);
    hand_back(loop, message);
}

/* -- packets ----------------------------------------------------------------------------------- */

static int deliver(void *context, uint32_t number, uint64_t at_ns, const struct iovec *io,
                   int count) {
    struct loop *loop = context;
    struct port *port = loop->port[number];
    if (!port || port->gone) {
        return -ENODEV;
    }
    if (port->kind == PORT_LINE) {
        return line_write(port, at_ns, io, count);
    }
    if (loop->is_virtual) {
        return port_write(port, io, count);
    }
    size_t bytes = 0;
    for (int i = 1; i < count; i++) {
        bytes += io[i].iov_len;
    }
    loop->now_ns = clock_now();
    int error = port_write(port, io, count);
    if (!error && bytes <= SMALL_BYTES) {
        uint64_t after = clock_now();
        pace_wrote(&loop->pace, after - loop->now_ns);
    }
    return error;
}

/* Whether the lateness of the frame that was just sent, `sent` frames after the first, is known. In
 * virtual time nobody has looked at the clock since the thread woke. */
static bool is_measured(struct loop *loop, uint64_t sent) {
    if (loop->is_virtual && sent & UNMEASURED) {
        return false;
    }
    if (loop->is_virtual) {
        loop->now_ns = clock_now();
    }
    return true;
}

/* One step of whatever is due by now: a packet on a link or a line, a batch, or nothing (false). */
static bool step(struct loop *loop, uint64_t now_ns) {
    struct engine *e = loop->engine;
    uint64_t arrival = arrivals_next(loop);
    uint64_t due = min_u64(engine_next(e), arrival);
    uint64_t batch = loop->pending ? loop->pending->batch->due_ns : TIME_NEVER;
    if (batch <= now_ns && batch < due) {
        apply_first(loop);
        return true;
    }
    uint64_t lead = pace_lead(&loop->pace);
    if (due == TIME_NEVER || due > now_ns + lead || due > batch) {
        return false;
    }
    uint64_t sent = counter_get(&e->count.tx_frames);
    if (due == arrival) {
        arrivals_step(loop);
    } else {
        engine_step(e);
    }
    loop->worked = true;
    if (counter_get(&e->count.tx_frames) != sent && is_measured(loop, sent)) {
        uint64_t there = loop->now_ns + lead;
        histogram_add(&loop->late, there > due ? there - due : 0);
    }
    return true;
}

static void work_due(struct loop *loop) {
    for (int i = 0; i < STEPS_PER_READ && step(loop, loop_time(loop)); i++) {
    }
}

/* A frame of its size for what was read into the scratch frame. */
static struct frame *right_size(struct loop *loop, size_t bytes) {
    struct pool *pool = &loop->engine->transit.pool;
    struct frame *frame = pool_frame(pool, bytes);
    if (!frame) {
        return NULL;
    }
    if (frame->size_class == loop->scratch->size_class) {
        struct frame *full = loop->scratch;
        loop->scratch = frame;
        return full;
    }
    memcpy(frame->data, loop->scratch->data, bytes + VNET_BYTES);
    return frame;
}

static void input(struct loop *loop, const struct port *port, struct frame *frame,
                  const struct port_frame *got) {
    loop->worked = true;
    if (frame) {
        engine_input(loop->engine, port->number, frame, got->bytes, got->at_ns);
    } else {
        counter_add(&loop->engine->transit.drop_nobuf, 1);
    }
}

/* Reads one frame; false when there is none. */
static bool read_one(struct loop *loop, struct port *port) {
    struct port_frame got;
    int result = port_read(port, loop->scratch->data, FRAME_LIMIT + VNET_BYTES, &got);
    if (result < 0) {
        set_gone(loop, port); /* somebody has removed it, or its namespace has ended */
    }
    if (result <= 0) {
        return false;
    }
    input(loop, port, right_size(loop, got.bytes), &got);
    return true;
}

static void read_port(struct loop *loop, struct port *port, uint32_t events) {
    int reads = 0;
    while (reads < READS_PER_PORT && read_one(loop, port)) {
        reads++;
        work_due(loop);
    }
    if (reads == 0 && events & (EPOLLERR | EPOLLHUP) && port->kind == PORT_TAP && !port->gone) {
        set_gone(loop, port);
    }
}

/* A line hands over frames before they are due. If not, it is told: nothing else would show it. */
static void measure_arrival(struct loop *loop) {
    uint64_t due = arrivals_next(loop);
    if (due != TIME_NEVER) {
        loop->now_ns = clock_now();
        if (due < loop->now_ns) {
            histogram_add(&loop->late, loop->now_ns - due);
        }
    }
}

/* What has been read from a line, or why there is nothing. */
static void take_arrivals(struct loop *loop, struct port *port, int result) {
    if (result == 0 || (result > 0 && !arrivals_take(loop, port, (size_t)result))) {
        set_gone(loop, port);
        return;
    }
    measure_arrival(loop);
    virtual_again(loop, port->tag);
}

/* A frame that has been read already, or why there is none. What is due before it is done first. */
static void take_frame(struct loop *loop, struct port *port, int result) {
    struct port_frame got;
    if (result < 0 && port_has_ended(port, -result)) {
        set_gone(loop, port);
        return;
    }
    if (port->kind == PORT_LINE) {
        take_arrivals(loop, port, result);
        return;
    }
    if (result > 0 && port_took(port, port->buffer, (size_t)result, loop->now_ns, &got)) {
        loop->now_ns = max_u64(loop->now_ns, got.at_ns);
        work_due(loop);
        struct frame *frame = pool_frame(&loop->engine->transit.pool, got.bytes);
        if (frame) {
            memcpy(frame->data, port->buffer, got.bytes + VNET_BYTES);
        }
        input(loop, port, frame, &got);
    }
    virtual_again(loop, port->tag);
}

static void take(struct loop *loop, const struct ready *ready) {
    if (ready->tag == WAKE_TAG) {
        read_messages(loop);
        return;
    }
    /* A message before it in this round may have removed the port. */
    struct port *port = loop->port[(uint32_t)ready->tag];
    if (port && loop->is_virtual && port->tag == ready->tag) {
        take_frame(loop, port, ready->result);
    } else if (port && !loop->is_virtual) {
        read_port(loop, port, ready->events);
    }
}

/* -- the thread -------------------------------------------------------------------------------- */

static void *run(void *context) {
    struct loop *loop = context;
    struct ready ready[WAIT_EVENTS];
    if (loop->is_virtual) {
        uring_begin(&loop->uring);
        virtual_again(loop, WAKE_TAG);
    }
    atomic_store_explicit(&loop->started, 1, memory_order_release);
    ring(loop->report);
    while (!loop->stop) {
        work_due(loop);
        tell_moved(loop);
        int count = loop_wait(loop, ready);
        for (int i = 0; i < count; i++) {
            take(loop, &ready[i]);
        }
    }
    return NULL;
}

struct start {
    struct loop *loop;
    const struct loop_options *options;
};

static void *begin(void *context) {
    struct start start = *(struct start *)context;
    be_exact(start.loop, start.options);
    return run(start.loop);
}

/* In virtual time the writing thread takes none, so no packet need be lost. */
static int start_captures(struct loop *loop, const struct loop_options *options) {
    int error = captures_start(&loop->captures, options->captures, options->capture_bytes,
                               options->is_virtual);
    if (error == 0) {
        loop->has_captures = true;
        loop->engine->transit.ring = &loop->captures.ring;
    }
    return error;
}

static int make_parts(struct loop *loop, const struct loop_options *options) {
    loop->is_virtual = options->is_virtual;
    loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop->report = eventfd(0, EFD_CLOEXEC);
    loop->port = calloc(PORT_LIMIT, sizeof *loop->port);
    loop->engine = engine_new(options->pool_bytes, deliver, loop);
    if (loop->wake < 0 || loop->report < 0) {
        return -errno;
    }
    if (loop->engine && options->any_source) {
        engine_take_any_source(loop->engine);
    }
    if (loop->engine && options->digests) {
        loop->engine->transit.digests = options->times ? DIGESTS_TIMES : DIGESTS_CONTENTS;
    }
    loop->scratch = loop->engine ? pool_frame(&loop->engine->transit.pool, FRAME_LIMIT) : NULL;
    if (!loop->port || !loop->scratch) {
        return -ENOMEM;
    }
    if (!loop->is_virtual) {
        pace_init(&loop->pace, clock_now(), options->sharers);
    }
    int error = options->captures < 0 ? 0 : start_captures(loop, options);
    return error ? error : wait_open(loop);
}

int loop_start(struct loop *loop, const struct loop_options *options) {
    *loop = (struct loop){.epoll = -1};
    int error = make_parts(loop, options);
    if (error) {
        return error;
    }
    struct start start = {loop, options};
    error = pthread_create(&loop->thread, NULL, begin, &start);
    if (error) {
        return -error;
    }
    uint64_t count;
    while (!atomic_load_explicit(&loop->started, memory_order_acquire)) {
        if (read(loop->report, &count, sizeof count) < 0 && errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

static void free_messages(struct message *first) {
    for (struct message *m = first, *next; m; m = next) {
        next = m->next;
        if (m->kind == MESSAGE_BATCH) {
            batch_free(m->batch);
        } else if (m->kind == MESSAGE_RESERVE) {
            free(m->room.heap);
            free(m->room.slots);
        }
        free(m);
    }
}

void loop_stop(struct loop *loop) {
    struct message *stop = calloc(1, sizeof *stop);
    if (!stop) {
        return; /* the end of the process stops it as well */
    }
    stop->kind = MESSAGE_STOP;
    loop_post(loop, stop);
    pthread_join(loop->thread, NULL);
    free_messages(loop->pending);
    free_messages(take_all(&loop->inbox));
    free_messages(take_all(&loop->outbox));
    if (loop->has_captures) {
        captures_stop(&loop->captures);
    }
    engine_free(loop->engine);
    free(loop->port);
    wait_close(loop);
    close(loop->wake);
    close(loop->report);
}
