/* Frames come in: read here, or in virtual time read already. Between two of them what is due is
 * done.
 */
#include "reading.h"

#include "arrivals.h"
#include "common/clock.h"
#include "due.h"
#include "wait.h"

#include <string.h>
#include <sys/epoll.h>

#define READS_PER_PORT 16  /* before the next port has its turn */
#define READS_PER_ROUND 64 /* of all ports that are ready, but one of each */

/* It is not read any more; the client will close the port. */
void reading_end(struct loop *loop, struct port *port) {
    wait_remove(loop, port);
    if (port->kind == PORT_LINE) {
        arrivals_remove(loop, port);
    }
    port->gone = true;
    loop->worked = true; /* whoever waits for something to happen is told */
}

/* What a busy port sends may have to wait in its device, but it makes no other port's packets late,
 * which have been stamped already. */
void reading_take_turns(struct loop *loop, int ports) {
    int reads = ports ? READS_PER_ROUND / ports : 0;
    loop->reads = reads < 1 ? 1 : reads > READS_PER_PORT ? READS_PER_PORT : reads;
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

void reading_input(struct loop *loop, const struct port *port, struct frame *frame,
                   const struct port_frame *got) {
    loop->worked = true;
    engine_input(loop->engine, port->number, frame, got->bytes, got->at_ns);
}

/* Reads one frame; false when there is none. */
static bool read_one(struct loop *loop, struct port *port) {
    struct port_frame got;
    int result = port_read(port, loop->scratch->data, FRAME_LIMIT + VNET_BYTES, &got);
    if (result < 0) {
        reading_end(loop, port); /* somebody has removed it, or its namespace has ended */
    }
    if (result <= 0) {
        return false;
    }
    struct frame *frame = right_size(loop, got.bytes);
    if (frame) {
        reading_input(loop, port, frame, &got);
    } else {
        engine_lost(loop->engine, loop->scratch->data, got.bytes);
        loop->worked = true;
    }
    return true;
}

void reading_port(struct loop *loop, struct port *port, uint32_t events) {
    int reads = 0;
    while (reads < loop->reads && read_one(loop, port)) {
        reads++;
        due_work(loop);
    }
    if (reads == 0 && events & (EPOLLERR | EPOLLHUP) && !port->gone) {
        if (port->kind == PORT_TAP) {
            reading_end(loop, port);
        } else {
            port_settle(port);
            loop->worked = true; /* the device may be gone, which does not show here */
        }
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
        reading_end(loop, port);
        return;
    }
    measure_arrival(loop);
    virtual_again(loop, port->tag);
}

/* The frame in the port's buffer. */
static void take_frame(struct loop *loop, struct port *port, const struct port_frame *got) {
    struct frame *frame = pool_frame(&loop->engine->transit.pool, got->bytes);
    if (frame) {
        memcpy(frame->data, port->buffer, got->bytes + VNET_BYTES);
        reading_input(loop, port, frame, got);
    } else {
        engine_lost(loop->engine, port->buffer, got->bytes);
        loop->worked = true;
    }
}

/* A frame that has been read already, or why there is none. What is due before it is done first. */
void reading_frame(struct loop *loop, struct port *port, int result) {
    struct port_frame got;
    if (result < 0 && port_has_ended(port, -result)) {
        reading_end(loop, port);
        return;
    }
    if (port->kind == PORT_LINE) {
        take_arrivals(loop, port, result);
        return;
    }
    if (result > 0 && port_took(port, port->buffer, (size_t)result, loop->now_ns, &got)) {
        loop->now_ns = max_u64(loop->now_ns, got.at_ns);
        due_work(loop);
        take_frame(loop, port, &got);
    }
    virtual_again(loop, port->tag);
}
