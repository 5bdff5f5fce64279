/* An I/O thread decides nothing: what it reads it puts into a queue for the core, and what the core
 * puts into another it writes, each port's frames in their order.
 *
 * Either the core or the I/O thread has the turn: it alone reads the I/O thread's ports and writes
 * to them. The core gives it and asks for it back; then the I/O thread stops before the next port,
 * and what it has not written the core writes. An I/O thread reads and writes only what there is
 * room for; where there is none it sleeps until the core has made some. The core waits for room in
 * one place (see io_threads.c).
 */
#include "io_thread.h"

#include "common/bell.h"
#include "common/clock.h"
#include "common/prefer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS 32
#define READS_PER_PORT 16
#define WRITES_PER_ROUND 64

void io_thread_ring(struct io_thread *h) {
    bell_ring(h->wake);
}

/* The other half of a sleep: either this finds who sleeps, or who falls asleep finds what was put.
 * (Of two exchanges the second sees what was done before the first.) */
static void ring_core(struct io_thread *h) {
    if (atomic_exchange_explicit(h->core_sleeps, false, memory_order_acq_rel)) {
        bell_ring(h->core);
    }
}

static bool write_one(struct io_thread *h) {
    struct io_thread_job *job = spsc_first(&h->out);
    struct io_thread_done *done = spsc_room(&h->done);
    if (!job || !done) {
        return false;
    }
    struct iovec io[3] = {{&job->vnet, sizeof job->vnet},
                          {job->header, job->header_bytes},
                          {job->payload, job->payload_bytes}};
    if (job->header_bytes == 0) {
        io[1] = io[2];
    }
    bool is_gone = atomic_load_explicit(&job->port->gone, memory_order_relaxed);
    uint64_t now_ns = clock_now();
    *done = (struct io_thread_done){.leaving = job->leaving,
                                    .late_ns = now_ns > job->due_ns ? now_ns - job->due_ns : 0};
    done->error = is_gone ? -ENODEV : port_write(job->port, io, job->header_bytes ? 3 : 2);
    spsc_take(&h->out);
    spsc_put(&h->done);
    return true;
}

uint32_t io_thread_write(struct io_thread *h, uint32_t most) {
    uint32_t count = 0;
    while (count < most && write_one(h)) {
        count++;
    }
    return count;
}

static bool is_recalled(const struct io_thread *h) {
    return atomic_load_explicit(&h->recall, memory_order_relaxed);
}

static void take_stock(struct io_thread *h) {
    struct frame **next;
    while ((next = spsc_first(&h->stock))) {
        struct frame *frame = *next;
        struct frame **list = frame->size_class ? &h->large : &h->small;
        spsc_take(&h->stock);
        frame->next = *list;
        *list = frame;
    }
}

/* The next frame is read into a large one, and those that are small go on in a small one. */
static bool may_read(const struct io_thread *h) {
    return h->small && h->large && spsc_room(&h->in);
}

static struct frame *right_size(struct io_thread *h, size_t bytes) {
    struct frame **list = bytes <= IO_THREAD_SMALL_BYTES ? &h->small : &h->large;
    struct frame *frame = *list;
    if (list == &h->small) {
        memcpy(frame->data, h->large->data, bytes + VNET_BYTES);
    }
    *list = frame->next;
    return frame;
}

static void put_input(struct io_thread *h, struct port *port, struct frame *frame,
                      const struct port_frame *got) {
    struct io_thread_input *input = spsc_room(&h->in);
    *input = (struct io_thread_input){port, frame, got->bytes, got->at_ns};
    spsc_put(&h->in);
}

static void tell_gone(struct io_thread *h, struct port *port) {
    epoll_ctl(h->ports, EPOLL_CTL_DEL, port->fd, NULL);
    put_input(h, port, NULL, &(struct port_frame){0});
}

/* One frame; 0 when there is none, 1, or -1 when there will be no more. */
static int read_one(struct io_thread *h, struct port *port) {
    struct port_frame got;
    int result = port_read(port, h->large->data, FRAME_LIMIT + VNET_BYTES, &got);
    if (result < 0) {
        tell_gone(h, port);
        return -1;
    }
    if (result > 0) {
        put_input(h, port, right_size(h, got.bytes), &got);
    }
    return result;
}

static uint32_t read_port(struct io_thread *h, const struct epoll_event *event) {
    struct port *port = event->data.ptr;
    uint32_t count = 0;
    int result = 1;
    while (count < READS_PER_PORT && may_read(h) && (result = read_one(h, port)) > 0) {
        count++;
    }
    if (count == 0 && result == 0 && event->events & (EPOLLERR | EPOLLHUP) && may_read(h)) {
        if (port->kind == PORT_TAP) {
            tell_gone(h, port);
        } else {
            port_settle(port);
            put_input(h, NULL, NULL, &(struct port_frame){0});
        }
        count++;
    }
    return result < 0 ? count + 1 : count;
}

/* How much was read, and written in between. Who is asked for the turn does not let all ports have
 * theirs first: the core waits. */
static uint32_t read_ports(struct io_thread *h) {
    struct epoll_event event[EVENTS];
    uint32_t done = 0;
    take_stock(h);
    int count = may_read(h) ? epoll_wait(h->ports, event, EVENTS, 0) : 0;
    for (int i = 0; i < count && !is_recalled(h); i++) {
        done += read_port(h, &event[i]);
        ring_core(h);
        done += io_thread_write(h, WRITES_PER_ROUND); /* what is due does not wait for all ports */
    }
    return done;
}

static void drain(int fd) {
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

/* Until there is something to write and to read, each with room for it, or somebody rings. */
static void sleep_until_needed(struct io_thread *h) {
    atomic_exchange_explicit(&h->sleeps, true, memory_order_acq_rel);
    take_stock(h);
    bool reads = may_read(h);
    bool writes = spsc_first(&h->out) && spsc_room(&h->done);
    if (!writes && !is_recalled(h)) {
        struct pollfd fds[2] = {{h->wake, POLLIN, 0}, {h->ports, POLLIN, 0}};
        poll(fds, reads ? 2 : 1, -1);
        if (fds[0].revents) {
            drain(h->wake);
        }
    }
    atomic_exchange_explicit(&h->sleeps, false, memory_order_acq_rel);
}

static void work(struct io_thread *h) {
    while (!atomic_load_explicit(&h->recall, memory_order_acquire)) {
        uint32_t frames = io_thread_write(h, WRITES_PER_ROUND);
        frames += read_ports(h);
        counter_add(&h->frames, frames);
        if (frames) {
            ring_core(h);
        } else {
            sleep_until_needed(h);
        }
    }
    atomic_store_explicit(&h->turn, false, memory_order_release);
}

static void *run(void *context) {
    struct io_thread *h = context;
    pthread_setname_np(pthread_self(), "pktd-io");
    be_preferred();
    while (!atomic_load_explicit(&h->ends, memory_order_acquire)) {
        if (atomic_load_explicit(&h->turn, memory_order_acquire)) {
            work(h);
        } else {
            struct pollfd fd = {h->wake, POLLIN, 0};
            poll(&fd, 1, -1);
            drain(h->wake);
        }
    }
    return NULL;
}

int io_thread_start(struct io_thread *h, int core, atomic_bool *core_sleeps) {
    *h = (struct io_thread){.core = core, .core_sleeps = core_sleeps};
    h->ports = epoll_create1(EPOLL_CLOEXEC);
    h->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (h->ports < 0 || h->wake < 0) {
        return -errno;
    }
    if (!spsc_init(&h->in, IO_THREAD_SLOTS, sizeof(struct io_thread_input)) ||
        !spsc_init(&h->out, IO_THREAD_SLOTS, sizeof(struct io_thread_job)) ||
        !spsc_init(&h->done, IO_THREAD_SLOTS, sizeof(struct io_thread_done)) ||
        !spsc_init(&h->stock, IO_THREAD_SLOTS, sizeof(struct frame *))) {
        return -ENOMEM;
    }
    return -pthread_create(&h->thread, NULL, run, h);
}

void io_thread_end(struct io_thread *h) {
    atomic_store_explicit(&h->ends, true, memory_order_release);
    io_thread_ring(h);
    pthread_join(h->thread, NULL);
    close(h->ports);
    close(h->wake);
    spsc_destroy(&h->in);
    spsc_destroy(&h->out);
    spsc_destroy(&h->done);
    spsc_destroy(&h->stock);
}
