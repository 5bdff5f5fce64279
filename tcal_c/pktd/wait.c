/* Waiting in real time: sleep to shortly before what is due, then look again and again (see
 * core/pace.h). */
#include "wait.h"

#include "arrivals.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define IDLE_SLEEP_NS (NS_PER_S / 4)

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
    return loop->epoll < 0 ? -errno : watch(loop, loop->wake, WAKE_TAG);
}

void wait_close(struct loop *loop) {
    if (loop->is_virtual) {
        virtual_close(loop);
    } else {
        close(loop->epoll);
    }
}

int wait_add(struct loop *loop, struct port *port) {
    return loop->is_virtual ? virtual_add(loop, port) : watch(loop, port->fd, port->number);
}

void wait_remove(struct loop *loop, struct port *port) {
    if (loop->is_virtual) {
        virtual_remove(loop, port);
    } else {
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, port->fd, NULL);
    }
}

static int wait_events(int epoll, struct ready *ready, uint64_t wait_ns) {
    struct epoll_event events[WAIT_EVENTS];
    struct timespec t = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    int count = epoll_pwait2(epoll, events, WAIT_EVENTS, &t, NULL);
    if (count < 0 && errno == ENOSYS) {
        /* Before Linux 5.11: whole milliseconds, the rest of the time is spun away. */
        count = epoll_wait(epoll, events, WAIT_EVENTS, (int)(wait_ns / 1000000));
    }
    for (int i = 0; i < count; i++) {
        ready[i] = (struct ready){.tag = events[i].data.u32, .events = events[i].events};
    }
    return count > 0 ? count : 0;
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

int loop_wait(struct loop *loop, struct ready *ready) {
    if (loop->is_virtual) {
        return virtual_wait(loop, ready);
    }
    uint64_t before = take_rest(loop, clock_now());
    uint64_t due = min_u64(wait_next_due(loop), before + IDLE_SLEEP_NS);
    uint64_t wait = pace_sleep(&loop->pace, before, due);
    int count = wait_events(loop->epoll, ready, wait);
    uint64_t after = clock_now();
    if (wait) {
        pace_woke(&loop->pace, before, before + wait, after, count == 0);
    } else if (count == 0 && due > before) {
        pace_spun(&loop->pace, before, after);
    }
    return count;
}
