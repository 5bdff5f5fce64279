/* Whose turn it is to read and to write, the data thread's or that of its I/O threads. */
#include "turns.h"

#include "common/clock.h"
#include "due.h"
#include "reading.h"
#include "wait.h"

#include <sys/epoll.h>

#define INPUTS_PER_FINISH 64u

/* Everything that I/O threads have read, each port's frames in their order. What they have written
 * is taken note of in between: when nobody does they have no room to write more. */
static void take_inputs(struct loop *loop) {
    struct io_thread_input input;
    bool lost;
    for (uint32_t i = 0; i < loop->io_threads.count; i++) {
        for (uint32_t n = 0; n < IO_THREAD_SLOTS; n++) {
            if (!io_threads_input(&loop->io_threads, &loop->io_threads.io_thread[i], &input,
                                  &lost)) {
                break;
            }
            loop->worked = true;
            if (input.frame) {
                reading_input(loop, input.port, input.frame,
                              &(struct port_frame){input.bytes, input.at_ns});
                due_work(loop);
            } else if (input.port && !lost) {
                reading_end(loop, input.port);
            }
            if (n % INPUTS_PER_FINISH == INPUTS_PER_FINISH - 1) {
                loop->worked |= io_threads_finish(&loop->io_threads);
            }
        }
    }
}

/* The ports of an I/O thread while they are the core's. */
void turns_read(struct loop *loop, struct io_thread *io_thread) {
    struct epoll_event event[WAIT_EVENTS];
    int count = io_thread->is_given ? 0 : epoll_wait(io_thread->ports, event, WAIT_EVENTS, 0);
    reading_take_turns(loop, count);
    for (int i = 0; i < count; i++) {
        reading_port(loop, event[i].data.ptr, event[i].events);
    }
}

/* What I/O threads have done, and whether they are to go on. */
void turns_look(struct loop *loop) {
    struct io_threads *io_threads = &loop->io_threads;
    if (io_threads->count == 0) {
        return;
    }
    loop->worked |= io_threads_finish(io_threads);
    take_inputs(loop);
    uint64_t now_ns = clock_now();
    if (now_ns - io_threads->look.at_ns < IO_THREADS_LOOK_NS) {
        return;
    }
    bool were_given = io_threads->are_given;
    const struct engine_counters *c = &loop->engine->count;
    uint64_t cpu_ns = clock_thread();
    io_threads_look(io_threads, now_ns, cpu_ns - min_u64(loop->spun_ns, cpu_ns),
                    counter_get(&c->rx_frames) + counter_get(&c->tx_frames));
    if (were_given != io_threads->are_given) {
        loop->worked = true;
        take_inputs(loop); /* before the core reads any more itself */
    }
}

/* Every port is the core's again, and what I/O threads had read of it is in the engine. */
void turns_recall(struct loop *loop) {
    if (loop->io_threads.are_given) {
        io_threads_recall(&loop->io_threads);
        loop->worked = true; /* the last of what they had to write */
        take_inputs(loop);
    }
}
