/* What is due is done; then wait for the next due time or for a packet.
 *
 * This thread alone touches the engine's state, and the ports but for those that I/O threads have
 * the turn at. It takes no locks and does not enter malloc.
 */
#include "loop.h"

#include "common/bell.h"
#include "common/clock.h"
#include "due.h"
#include "exact.h"
#include "messages.h"
#include "reading.h"
#include "turns.h"
#include "wait.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define AUTO_THREADS 4u
#define THREAD_BYTES (16u << 20)

static void take(struct loop *loop, const struct ready *ready) {
    if (ready->tag == WAKE_TAG) {
        messages_read(loop);
        return;
    }
    if (loop->io_threads.count && ready->tag > IO_THREAD_TAG - loop->io_threads.count) {
        turns_read(loop, &loop->io_threads.io_thread[IO_THREAD_TAG - ready->tag]);
        return;
    }
    /* A message before it in this round may have removed the port. */
    struct port *port = loop->port[(uint32_t)ready->tag];
    if (port && loop->is_virtual && port->tag == ready->tag) {
        reading_frame(loop, port, ready->result);
    } else if (port && !loop->is_virtual) {
        reading_port(loop, port, ready->events);
    }
}

static void *run(void *context) {
    struct loop *loop = context;
    struct ready ready[WAIT_EVENTS];
    if (loop->is_virtual) {
        uring_begin(&loop->uring);
        virtual_again(loop, WAKE_TAG);
    }
    atomic_store_explicit(&loop->started, 1, memory_order_release);
    bell_ring(loop->report);
    while (!loop->stop) {
        turns_look(loop);
        due_work(loop);
        loop->was_idle = !loop->worked;
        messages_tell_moved(loop);
        int count = loop_wait(loop, ready);
        reading_take_turns(loop, count);
        for (int i = 0; i < count; i++) {
            take(loop, &ready[i]);
        }
    }
    io_threads_recall(&loop->io_threads);
    return NULL;
}

/* Those that this thread may run on. */
static uint32_t cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : (uint32_t)CPU_COUNT(&set);
}

struct start {
    struct loop *loop;
    const struct loop_options *options;
};

static void *begin(void *context) {
    struct start start = *(struct start *)context;
    be_exact(start.loop, start.options);
    if (!start.loop->is_virtual) {
        load_init(&start.loop->load, clock_now(), start.options->sharers, cores(),
                  start.loop->may_fifo);
        steers_open(start.loop, start.options);
    }
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

/* As many threads as were asked for, or half of the cores, so that programs have the other half;
 * the loop itself is one. */
static uint32_t choose_threads(const struct loop_options *options) {
    uint32_t threads = options->threads ? options->threads : cores() / 2 / options->sharers;
    uint32_t most = options->threads ? IO_THREADS_LIMIT + 1 : AUTO_THREADS;
    uint64_t bearable = options->pool_bytes / THREAD_BYTES; /* empty frames that I/O threads keep */
    threads = threads > most ? most : threads;
    threads = threads > bearable ? (uint32_t)bearable : threads;
    return threads < 1 || options->is_virtual ? 1 : threads;
}

static int start_io_threads(struct loop *loop, const struct loop_options *options) {
    uint32_t count = choose_threads(options) - 1;
    if (count == 0) {
        return 0;
    }
    loop->engine->hand_over = due_hand_over;
    return io_threads_start(&loop->io_threads, count, options->always_threads, loop->engine,
                            &loop->late, loop->wake);
}

static int make_parts(struct loop *loop, const struct loop_options *options) {
    loop->is_virtual = options->is_virtual;
    loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop->report = eventfd(0, EFD_CLOEXEC);
    loop->port = calloc(PORT_LIMIT, sizeof *loop->port);
    loop->last = calloc(1, sizeof *loop->last);
    loop->engine = engine_new(options->pool_bytes, due_deliver, loop);
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
    if (!loop->port || !loop->scratch || !loop->last) {
        return -ENOMEM;
    }
    if (!loop->is_virtual) {
        pace_init(&loop->pace, clock_now(), options->sharers);
    }
    int error = options->captures < 0 ? 0 : start_captures(loop, options);
    error = error ? error : start_io_threads(loop, options);
    return error ? error : wait_open(loop);
}

int loop_start(struct loop *loop, const struct loop_options *options) {
    *loop = (struct loop){.epoll = -1, .steers.backlog = -1};
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

void loop_stop(struct loop *loop) {
    loop->last->kind = MESSAGE_STOP;
    loop_post(loop, loop->last);
    pthread_join(loop->thread, NULL);
    messages_free(loop);
    if (loop->has_captures) {
        captures_stop(&loop->captures);
    }
    io_threads_end(&loop->io_threads);
    engine_free(loop->engine);
    free(loop->port);
    wait_close(loop);
    steers_close(loop);
    close(loop->wake);
    close(loop->report);
}
