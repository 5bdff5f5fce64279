/* Waiting in real time: sleep to shortly before what is due, then look again and again (see
 * core/pace.h). */
#include "wait.h"

#include "arrivals.h"
#include "exact.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IDLE_SLEEP_NS (NS_PER_S / 4)
#define BURDEN_PERIOD_NS 1000000u
#define SLICE_NS 400000u /* longer than this in the real-time class no program is kept waiting */
#define NAP_NS 30000
#define ASLEEP_NS 10000u /* a look for events that takes longer has slept */

uint64_t wait_next_due(const struct loop *loop) {
    uint64_t due = min_u64(engine_next(loop->engine), arrivals_next(loop));
    uint64_t lead = pace_lead(&loop->pace);
    due = due == TIME_NEVER || due < lead ? due : due - lead;
    return loop->pending ? min_u64(due, loop->pending->batch->due_ns) : due;
}

static int watch(const struct loop *loop, int fd, uint32_t tag) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int wait_open(struct loop *loop) {
    if (loop->is_virtual) {
        return virtual_open(loop);
    }
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    int error = loop->epoll < 0 ? -errno : watch(loop, loop->wake, WAKE_TAG);
    return error ? error : io_threads_watch(&loop->io_threads, loop->epoll, IO_THREAD_TAG);
}

void wait_close(struct loop *loop) {
    if (loop->is_virtual) {
        virtual_close(loop);
    } else {
        close(loop->epoll);
    }
}

/* The port is looked at by way of the I/O thread's set, which whoever has the turn looks at. */
static int give_to_io_thread(struct loop *loop, struct port *port) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = port};
    int ports = io_threads_of(&loop->io_threads, port)->ports;
    return epoll_ctl(ports, EPOLL_CTL_ADD, port->fd, &event) ? -errno : 0;
}

int wait_add(struct loop *loop, struct port *port) {
    if (loop->io_threads.count) {
        return give_to_io_thread(loop, port);
    }
    return loop->is_virtual ? virtual_add(loop, port) : watch(loop, port->fd, port->number);
}

void wait_remove(struct loop *loop, struct port *port) {
    if (loop->is_virtual) {
        virtual_remove(loop, port);
    } else {
        int epoll =
            loop->io_threads.count ? io_threads_of(&loop->io_threads, port)->ports : loop->epoll;
        epoll_ctl(epoll, EPOLL_CTL_DEL, port->fd, NULL);
    }
}

static int wait_events(int epoll, struct ready *ready, uint64_t wait_ns) {
    struct epoll_event events[WAIT_EVENTS];
    struct timespec t = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    /* Not every C library has epoll_pwait2(). */
    int count = (int)syscall(SYS_epoll_pwait2, epoll, events, WAIT_EVENTS, &t, NULL, (size_t)0);
    if (count < 0 && errno == ENOSYS) {
        /* Before Linux 5.11: whole milliseconds, the rest of the time is spun away. */
        count = epoll_wait(epoll, events, WAIT_EVENTS, (int)(wait_ns / 1000000));
    }
    for (int i = 0; i < count; i++) {
        ready[i] = (struct ready){.tag = events[i].data.u32, .events = events[i].events};
    }
    return count > 0 ? count : 0;
}

/* In between a program that waits for this processor may have run. */
static void slept(struct loop *loop, uint64_t from_ns, uint64_t now_ns) {
    uint64_t slice = from_ns - loop->awake_ns;
    if (loop->awake_ns && loop->is_fifo && slice > counter_get(&loop->longest_slice_ns)) {
        counter_set(&loop->longest_slice_ns, slice);
    }
    loop->awake_ns = now_ns;
}

/* Sleeps for a moment if the thread has not slept for long, where no program runs beside it. */
static uint64_t nap(struct loop *loop, uint64_t now_ns) {
    if (!loop->is_fifo || now_ns - loop->awake_ns < SLICE_NS) {
        return now_ns;
    }
    struct timespec t = {0, NAP_NS};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    uint64_t after = clock_now();
    pace_woke(&loop->pace, now_ns, after, after, false);
    slept(loop, now_ns, after);
    return after;
}

/* Sleeps without looking at anything, if the thread has taken more than its share. */
static uint64_t take_rest(struct loop *loop, uint64_t now_ns) {
    uint64_t rest = load_rest(&loop->load);
    if (rest == 0) {
        return now_ns;
    }
    struct timespec t = {0, (long)rest};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    uint64_t after = clock_now();
    pace_woke(&loop->pace, now_ns, after, after, false);
    slept(loop, now_ns, after);
    return after;
}

/* A planted load. */
static void carry_burden(struct loop *loop) {
    struct burden *b = &loop->burden;
    if (b->permille == 0 || clock_now() < b->next_ns) {
        return;
    }
    b->next_ns = max_u64(b->next_ns, clock_now()) + BURDEN_PERIOD_NS;
    uint64_t until = clock_thread() + b->permille * BURDEN_PERIOD_NS / 1000;
    while (clock_thread() < until) {
    }
}

/* Finds out how busy the thread is, and takes the class that belongs to that. */
static void look_at_load(struct loop *loop, uint64_t now_ns) {
    if (load_is_due(&loop->load, now_ns)) {
        load_look(&loop->load, now_ns, clock_thread(), loop->spun_ns,
                  loop->is_fifo ? CLASS_FIFO : CLASS_OTHER);
        steers_look(loop, now_ns);
        take_class(loop, loop->load.wanted);
    }
}

/* Rests while what is due or arrives may wait for what is due soon. Changes wait for nothing. */
static uint64_t gather(struct loop *loop, uint64_t now_ns) {
    uint64_t limit = loop->pending ? loop->pending->batch->due_ns : TIME_NEVER;
    uint64_t until = load_gather(&loop->load, loop->round_ns, now_ns, limit);
    if (until == 0) {
        return now_ns;
    }
    struct timespec t = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    uint64_t after = clock_now();
    pace_woke(&loop->pace, now_ns, until, after, true);
    slept(loop, now_ns, after);
    return after;
}

int loop_wait(struct loop *loop, struct ready *ready) {
    if (loop->is_virtual) {
        return virtual_wait(loop, ready);
    }
    carry_burden(loop);
    look_at_load(loop, clock_now());
    uint64_t before = nap(loop, gather(loop, take_rest(loop, clock_now())));
    uint64_t due = min_u64(wait_next_due(loop), before + IDLE_SLEEP_NS);
    due = loop->burden.permille ? min_u64(due, loop->burden.next_ns) : due;
    uint64_t wait = pace_sleep(&loop->pace, before, due, load_tolerance(&loop->load));
    wait = io_threads_may_sleep(&loop->io_threads) ? wait : 0;
    int count = wait_events(loop->epoll, ready, wait);
    io_threads_woke(&loop->io_threads);
    uint64_t after = clock_now();
    if (wait) {
        pace_woke(&loop->pace, before, before + wait, after, count == 0);
        if (after - before > ASLEEP_NS) {
            slept(loop, before, after);
        }
    } else if (count == 0 && due > before) {
        /* A turn in which there was nothing to do is a part of it. */
        uint64_t from = loop->was_idle ? loop->round_ns : before;
        pace_spun(&loop->pace, from, after);
        loop->spun_ns += after - from;
    }
    loop->round_ns = after;
    return count;
}
