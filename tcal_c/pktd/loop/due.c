/* What is due is done in the order of virtual time. A batch is applied between two packets at its
 * exact place: what was due before it is done first, what is due after it waits.
 */
#include "due.h"

#include "arrivals.h"
#include "common/clock.h"
#include "messages.h"

#include <errno.h>

#define STEPS_PER_READ 256 /* due packets first: what comes in is stamped and can wait */
#define SMALL_BYTES 2048u
#define UNMEASURED 63 /* of 64 frames, in virtual time */

int due_deliver(void *context, uint32_t number, uint64_t at_ns, const struct iovec *io, int count) {
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
    loop->after_ns = clock_now();
    steers_wrote(port, loop->after_ns);
    if (!error && bytes <= SMALL_BYTES) {
        pace_wrote(&loop->pace, loop->after_ns - loop->now_ns);
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

/* The write of a port that is an I/O thread's now. */
bool due_hand_over(void *context, uint32_t number, uint64_t at_ns, const struct leaving *leaving,
                   const struct iovec *io, int count) {
    struct loop *loop = context;
    struct port *port = loop->port[number];
    uint64_t due_ns = at_ns - min_u64(pace_lead(&loop->pace), at_ns);
    if (!loop->io_threads.are_given || !port ||
        !io_threads_write(&loop->io_threads, port, due_ns, leaving, io, count)) {
        return false;
    }
    load_sent(&loop->load, due_ns);
    return true;
}

/* One step of whatever is due by now: a packet on a link or a line, a batch, or nothing (false). */
static bool step(struct loop *loop, uint64_t now_ns) {
    struct engine *e = loop->engine;
    uint64_t arrival = arrivals_next(loop);
    uint64_t due = min_u64(engine_next(e), arrival);
    uint64_t batch = loop->pending ? loop->pending->batch->due_ns : TIME_NEVER;
    if (batch <= now_ns && batch < due) {
        messages_apply_first(loop);
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
        load_sent(&loop->load, due - min_u64(lead, due));
        uint64_t there = loop->now_ns + lead;
        histogram_add(&loop->late, there > due ? there - due : 0);
    }
    return true;
}

/* A write is what takes time in a step: after it the time is known, after others it is as before.
 */
void due_work(struct loop *loop) {
    loop->after_ns = loop->is_virtual ? 0 : clock_now();
    for (int i = 0; i < STEPS_PER_READ && step(loop, loop_time(loop)); i++) {
    }
}
