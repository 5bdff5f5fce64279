/* Threads help where a core is not enough and only then: as long as the core alone has the turn, a
 * packet meets one thread and not three, and nobody has to be woken for it.
 *
 * The core stays the only one that decides: what I/O threads read enters the engine here, packet by
 * packet in the order of each port, and what leaves it goes to the I/O thread of its port in the
 * engine's order. So links carry the same packets with any number of I/O threads.
 */
#include "io_threads.h"

#include "common/clock.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>

#define BUSY_PERMILLE 600u /* of a core: then I/O threads get the ports */
#define QUIET_LOOKS 20u
#define WAIT_NS 20000

static void rest(void) {
    /* Not a spin: the I/O thread may need this processor. */
    nanosleep(&(struct timespec){0, WAIT_NS}, NULL);
}

static void restock(struct io_thread *h, struct frame *frame) {
    struct frame **room = spsc_room(&h->stock);
    *room = frame; /* there is room for all frames that an I/O thread has */
    spsc_put(&h->stock);
}

static bool fill_stock(struct io_threads *io_threads, struct io_thread *h) {
    for (uint32_t i = 0; i < IO_THREAD_SMALL + IO_THREAD_LARGE; i++) {
        size_t bytes = i < IO_THREAD_SMALL ? IO_THREAD_SMALL_BYTES : FRAME_LIMIT;
        struct frame *frame = pool_frame(&io_threads->engine->transit.pool, bytes);
        if (!frame) {
            return false;
        }
        restock(h, frame);
    }
    return true;
}

int io_threads_start(struct io_threads *io_threads, uint32_t count, bool always,
                     struct engine *engine, struct histogram *late, int core) {
    _Static_assert(IO_THREAD_SMALL + IO_THREAD_LARGE <= IO_THREAD_SLOTS,
                   "the stock's queue holds all frames");
    *io_threads =
        (struct io_threads){.always = always, .epoll = -1, .engine = engine, .late = late};
    while (io_threads->count < count) {
        struct io_thread *h = &io_threads->io_thread[io_threads->count];
        int error = io_thread_start(h, core, &io_threads->core_sleeps);
        if (error) {
            return error;
        }
        io_threads->count++;
        if (!fill_stock(io_threads, h)) {
            return -ENOMEM;
        }
    }
    return 0;
}

void io_threads_end(struct io_threads *io_threads) {
    for (uint32_t i = 0; i < io_threads->count; i++) {
        io_thread_end(&io_threads->io_thread[i]);
    }
    io_threads->count = 0;
}

static void wake_io_thread(struct io_thread *h) {
    if (atomic_exchange_explicit(&h->sleeps, false, memory_order_acq_rel)) {
        io_thread_ring(h);
    }
}

/* What the I/O thread has to write may have waited for room in what is done. */
static bool finish(struct io_threads *io_threads, struct io_thread *h) {
    struct io_thread_done *done = spsc_first(&h->done);
    bool any = done;
    for (; done; done = spsc_first(&h->done)) {
        engine_left(io_threads->engine, &done->leaving, done->error);
        if (!done->error) {
            histogram_add(io_threads->late, done->late_ns);
        }
        spsc_take(&h->done);
    }
    if (any && spsc_count(&h->out)) {
        wake_io_thread(h);
    }
    return any;
}

bool io_threads_finish(struct io_threads *io_threads) {
    uint64_t frames = 0;
    bool any = false;
    for (uint32_t i = 0; i < io_threads->count; i++) {
        any |= finish(io_threads, &io_threads->io_thread[i]);
        frames += counter_get(&io_threads->io_thread[i].frames);
    }
    counter_set(&io_threads->frames, frames);
    return any;
}

static int control(const struct io_threads *io_threads, int operation, uint32_t i,
                   uint32_t events) {
    struct epoll_event event = {.events = events, .data.u32 = io_threads->tag - i};
    return epoll_ctl(io_threads->epoll, operation, io_threads->io_thread[i].ports, &event) ? -errno
                                                                                           : 0;
}

int io_threads_watch(struct io_threads *io_threads, int epoll, uint32_t tag) {
    int error = 0;
    io_threads->epoll = epoll;
    io_threads->tag = tag;
    for (uint32_t i = 0; i < io_threads->count && error == 0; i++) {
        error = control(io_threads, EPOLL_CTL_ADD, i, EPOLLIN);
    }
    return error;
}

/* What is there already can always be changed: no ports fall silent because the kernel has no room
 * for them when the turn comes back, as it may have none for what is added. */
static void let_core_see(const struct io_threads *io_threads, uint32_t events) {
    for (uint32_t i = 0; io_threads->epoll >= 0 && i < io_threads->count; i++) {
        int error = control(io_threads, EPOLL_CTL_MOD, i, events);
        assert(error == 0);
        (void)error;
    }
}

void io_threads_give(struct io_threads *io_threads) {
    let_core_see(io_threads, 0);
    for (uint32_t i = 0; i < io_threads->count; i++) {
        struct io_thread *h = &io_threads->io_thread[i];
        h->is_given = true;
        atomic_store_explicit(&h->recall, false, memory_order_relaxed);
        atomic_store_explicit(&h->turn, true, memory_order_release);
        io_thread_ring(h);
    }
    io_threads->are_given = io_threads->count > 0;
}

/* All of them are asked before one is waited for: they stop side by side. */
static void ask_back(struct io_threads *io_threads) {
    for (uint32_t i = 0; i < io_threads->count; i++) {
        struct io_thread *h = &io_threads->io_thread[i];
        if (h->is_given) {
            atomic_store_explicit(&h->recall, true, memory_order_release);
            io_thread_ring(h);
        }
    }
}

static void recall(struct io_threads *io_threads, struct io_thread *h) {
    if (!h->is_given) {
        return;
    }
    while (atomic_load_explicit(&h->turn, memory_order_acquire)) {
        rest();
    }
    do {
        finish(io_threads, h);
    } while (io_thread_write(h, IO_THREAD_SLOTS));
    h->is_given = false;
}

void io_threads_recall(struct io_threads *io_threads) {
    ask_back(io_threads);
    for (uint32_t i = 0; i < io_threads->count; i++) {
        recall(io_threads, &io_threads->io_thread[i]);
    }
    let_core_see(io_threads, EPOLLIN);
    io_threads->are_given = false;
    io_threads->look.quiet = 0;
}

bool io_threads_write(struct io_threads *io_threads, struct port *port, uint64_t due_ns,
                      const struct leaving *leaving, const struct iovec *io, int count) {
    struct io_thread *h = io_threads_of(io_threads, port);
    struct io_thread_job *job;
    if (!h->is_given) {
        return false;
    }
    while (!(job = spsc_room(&h->out))) {
        wake_io_thread(h);
        finish(io_threads, h);
        rest();
    }
    job->leaving = *leaving;
    job->port = port;
    job->due_ns = due_ns;
    memcpy(&job->vnet, io[0].iov_base, sizeof job->vnet);
    job->header_bytes = count == 3 ? (uint32_t)io[1].iov_len : 0;
    memcpy(job->header, io[1].iov_base, job->header_bytes);
    job->payload = io[count - 1].iov_base;
    job->payload_bytes = io[count - 1].iov_len;
    spsc_put(&h->out);
    wake_io_thread(h);
    return true;
}

/* The frame as the engine is to have it; another one goes to the I/O thread in its stead. NULL:
 * there is no memory, which is counted, and the I/O thread has the frame back. */
static struct frame *exchange(struct io_threads *io_threads, struct io_thread *h,
                              struct frame *frame, size_t bytes) {
    struct pool *pool = &io_threads->engine->transit.pool;
    struct frame *fresh = pool_frame(pool, bytes);
    if (fresh && fresh->size_class != frame->size_class) {
        memcpy(fresh->data, frame->data, bytes + VNET_BYTES);
        restock(h, frame);
        return fresh;
    }
    if (!fresh) {
        engine_lost(io_threads->engine, frame->data, bytes);
    }
    restock(h, fresh ? fresh : frame);
    return fresh ? frame : NULL;
}

bool io_threads_input(struct io_threads *io_threads, struct io_thread *h,
                      struct io_thread_input *input, bool *lost) {
    struct io_thread_input *first = spsc_first(&h->in);
    *lost = false;
    if (!first) {
        return false;
    }
    *input = *first;
    spsc_take(&h->in);
    if (input->frame) {
        input->frame = exchange(io_threads, h, input->frame, input->bytes);
        *lost = !input->frame;
        wake_io_thread(h);
    }
    return true;
}

bool io_threads_may_sleep(struct io_threads *io_threads) {
    if (!io_threads->are_given) {
        return true;
    }
    atomic_exchange_explicit(&io_threads->core_sleeps, true, memory_order_acq_rel);
    for (uint32_t i = 0; i < io_threads->count; i++) {
        if (spsc_first(&io_threads->io_thread[i].in) ||
            spsc_first(&io_threads->io_thread[i].done)) {
            io_threads_woke(io_threads);
            return false;
        }
    }
    return true;
}

void io_threads_woke(struct io_threads *io_threads) {
    if (io_threads->are_given) {
        atomic_exchange_explicit(&io_threads->core_sleeps, false, memory_order_acq_rel);
    }
}

/* Where a second has brought less than half of what made them help, for a while, they are not
 * needed any more. */
static bool are_needed(struct io_threads_look *look, uint64_t frames_per_s) {
    look->quiet = frames_per_s * 2 < look->given ? look->quiet + 1 : 0;
    return look->quiet < QUIET_LOOKS;
}

void io_threads_look(struct io_threads *io_threads, uint64_t now_ns, uint64_t cpu_ns,
                     uint64_t frames) {
    struct io_threads_look *look = &io_threads->look;
    uint64_t took = now_ns - look->at_ns;
    /* Spinning is measured by the clock: where the thread was kept from its processor while it spun
     * there is less left than before, which is no work. */
    uint64_t worked = cpu_ns - min_u64(look->cpu_ns, cpu_ns);
    uint64_t busy = worked * 1000 / (took ? took : 1);
    uint64_t rate = (frames - look->frames) * NS_PER_S / (took ? took : 1);
    bool is_first = look->at_ns == 0;
    look->at_ns = now_ns;
    look->cpu_ns = max_u64(look->cpu_ns, cpu_ns);
    look->frames = frames;
    if (io_threads->always) {
        if (!io_threads->are_given) {
            io_threads_give(io_threads);
        }
    } else if (io_threads->are_given && !are_needed(look, rate)) {
        io_threads_recall(io_threads);
    } else if (!io_threads->are_given && !is_first && busy >= BUSY_PERMILLE) {
        look->given = rate;
        io_threads_give(io_threads);
    }
}

uint64_t io_threads_cpu_ns(const struct io_threads *io_threads) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < io_threads->count; i++) {
        clockid_t id;
        struct timespec t;
        if (pthread_getcpuclockid(io_threads->io_thread[i].thread, &id) == 0 &&
            clock_gettime(id, &t) == 0) {
            sum += clock_ns(&t);
        }
    }
    return sum;
}
