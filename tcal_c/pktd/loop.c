/* What is due is done; then wait for the next due time or for a packet.
 *
 * This thread alone touches the engine's state and the ports. It takes no locks and does not enter
 * malloc. Messages travel on two lock-free stacks (push by one side, taken whole by the other) with
 * an eventfd each as the bell. A batch is applied between two packets at its exact place in virtual
 * time: what was due before it is done first, what is due after it waits.
 */
#include "loop.h"

#include "common/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAKE_TAG UINT32_MAX
#define EVENTS 64
#define READS_PER_PORT 16  /* before the next port has its turn */
#define STEPS_PER_READ 256 /* due packets first: what comes in is stamped and can wait */
#define FIFO_PRIORITY 10
#define SLICE_NS 100000u
#define SMALL_BYTES 2048u
#define IDLE_SLEEP_NS (NS_PER_S / 4)

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
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, port->fd, NULL);
    port->gone = true;
}

static void add_port(struct loop *loop, struct port *port) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = port->number};
    loop->port[port->number] = port;
    if (port->out >= 0) {
        engine_use_paths(loop->engine);
    }
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, port->fd, &event)) {
        set_gone(loop, port);
    }
}

static void remove_port(struct loop *loop, struct port *port) {
    engine_close_port(loop->engine, port->number);
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, port->fd, NULL);
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
    if (read(loop->wake, &count, sizeof count) < 0) {
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
    engine_apply(loop->engine, batch, batch->due_ns);
    hand_back(loop, message);
}

/* -- packets ----------------------------------------------------------------------------------- */

static int deliver(void *context, uint32_t number, const struct iovec *io, int count) {
    struct loop *loop = context;
    struct port *port = loop->port[number];
    if (!port || port->gone) {
        return -ENODEV;
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

/* One step of whatever is due by now: a packet, a batch, or nothing (false). */
static bool step(struct loop *loop, uint64_t now_ns) {
    struct engine *e = loop->engine;
    uint64_t due = engine_next(e);
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
    engine_step(e);
    if (counter_get(&e->count.tx_frames) != sent) {
        uint64_t there = loop->now_ns + lead;
        histogram_add(&loop->late, there > due ? there - due : 0);
    }
    return true;
}

static void work_due(struct loop *loop) {
    for (int i = 0; i < STEPS_PER_READ && step(loop, clock_now()); i++) {
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
    struct frame *frame = right_size(loop, got.bytes);
    if (frame) {
        engine_input(loop->engine, port->number, frame, got.bytes, got.at_ns);
    } else {
        counter_add(&loop->engine->transit.drop_nobuf, 1);
    }
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

/* -- the thread -------------------------------------------------------------------------------- */

static int wait_events(int epoll, struct epoll_event *events, uint64_t wait_ns) {
    struct timespec t = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    int count = epoll_pwait2(epoll, events, EVENTS, &t, NULL);
    if (count < 0 && errno == ENOSYS) {
        /* Before Linux 5.11: whole milliseconds, the rest of the time is spun away. */
        count = epoll_wait(epoll, events, EVENTS, (int)(wait_ns / 1000000));
    }
    return count > 0 ? count : 0;
}

static uint64_t next_due(const struct loop *loop) {
    uint64_t due = engine_next(loop->engine);
    uint64_t lead = pace_lead(&loop->pace);
    due = due == TIME_NEVER || due < lead ? due : due - lead;
    return loop->pending ? min_u64(due, loop->pending->batch->due_ns) : due;
}

/* Sleeps without looking at anything, if the thread has taken more than its share. */
static uint64_t take_rest(struct loop *loop, uint64_t now_ns) {
    uint64_t rest = pace_rest(&loop->pace);
    if (rest == 0 || !loop->is_fifo) {
        return now_ns;
    }
    struct timespec t = {0, (long)rest};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    uint64_t after = clock_now();
    pace_woke(&loop->pace, now_ns, after, after, false);
    return after;
}

static int wait_turn(struct loop *loop, struct epoll_event *events) {
    uint64_t before = take_rest(loop, clock_now());
    uint64_t due = min_u64(next_due(loop), before + IDLE_SLEEP_NS);
    uint64_t wait = pace_sleep(&loop->pace, before, due);
    int count = wait_events(loop->epoll, events, wait);
    uint64_t after = clock_now();
    if (wait) {
        pace_woke(&loop->pace, before, before + wait, after, count == 0);
    } else if (count == 0 && due > before) {
        pace_spun(&loop->pace, before, after);
    }
    return count;
}

/* Keeps what was touched in memory. Under RLIMIT_MEMLOCK that would make later allocations fail
 * instead of slow, so it is only done when an allocation as large as the pool may grow is granted.
 */
static bool lock_memory(uint64_t pool_bytes) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) {
        return false;
    }
    void *probe =
        mmap(NULL, pool_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
        munlockall();
        return false;
    }
    munmap(probe, pool_bytes);
    return true;
}

/* Without real-time scheduling, which control groups may refuse even root (RT_GROUP_SCHED): a high
 * priority where permitted, since agents beside us have one, and what everybody may ask for, a
 * short time slice, which since Linux 6.12 makes the scheduler pick a thread earlier when it wakes.
 * (sched_setattr(2); struct sched_attr is not in every libc's headers.) */
static void be_preferred(void) {
    struct {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns;
        uint64_t deadline_ns;
        uint64_t period_ns;
    } attr = {.size = sizeof attr, .policy = SCHED_OTHER, .nice = -20, .runtime_ns = SLICE_NS};
    if (syscall(SYS_sched_setattr, 0, &attr, 0) < 0) {
        attr.nice = getpriority(PRIO_PROCESS, 0);
        syscall(SYS_sched_setattr, 0, &attr, 0);
    }
}

static void be_exact(struct loop *loop, const struct loop_options *options) {
    struct sched_param priority = {.sched_priority = FIFO_PRIORITY};
    pthread_setname_np(pthread_self(), "pktd-data");
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    loop->is_fifo = options->fifo && sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    if (!loop->is_fifo) {
        be_preferred();
    }
    loop->is_locked = options->lock && lock_memory(options->pool_bytes);
}

static void *run(void *context) {
    struct loop *loop = context;
    struct epoll_event events[EVENTS];
    atomic_store_explicit(&loop->started, 1, memory_order_release);
    ring(loop->report);
    while (!loop->stop) {
        work_due(loop);
        int count = wait_turn(loop, events);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 == WAKE_TAG) {
                read_messages(loop);
                continue;
            }
            /* A message before it in this round may have removed the port. */
            struct port *port = loop->port[events[i].data.u32];
            if (port) {
                read_port(loop, port, events[i].events);
            }
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

static int make_parts(struct loop *loop, const struct loop_options *options) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = WAKE_TAG};
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop->report = eventfd(0, EFD_CLOEXEC);
    loop->port = calloc(PORT_LIMIT, sizeof *loop->port);
    loop->engine = engine_new(options->pool_bytes, deliver, loop);
    if (loop->epoll < 0 || loop->wake < 0 || loop->report < 0) {
        return -errno;
    }
    if (loop->engine && options->any_source) {
        engine_take_any_source(loop->engine);
    }
    loop->scratch = loop->engine ? pool_frame(&loop->engine->transit.pool, FRAME_LIMIT) : NULL;
    if (!loop->port || !loop->scratch) {
        return -ENOMEM;
    }
    pace_init(&loop->pace, clock_now(), options->sharers);
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) ? -errno : 0;
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
    engine_free(loop->engine);
    free(loop->port);
    close(loop->epoll);
    close(loop->wake);
    close(loop->report);
}
