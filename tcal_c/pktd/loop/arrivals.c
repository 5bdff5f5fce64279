/* The buffer of a line holds records that begin at its start; the last may be incomplete. Frames of
 * a line come in the order in which they arrive, so the next is the first of one of the lines.
 */
#include "arrivals.h"

#include <string.h>

static struct port *next_line(const struct loop *loop) {
    struct port *next = NULL;
    for (struct port *port = loop->lines; port; port = port->next_line) {
        if (port->first && (!next || port->first->due_ns < next->first->due_ns)) {
            next = port;
        }
    }
    return next;
}

static struct frame *take_first(struct port *port) {
    struct frame *frame = port->first;
    port->first = frame->next;
    return frame;
}

void arrivals_add(struct loop *loop, struct port *port) {
    struct port **slot = &loop->lines;
    while (*slot) {
        slot = &(*slot)->next_line;
    }
    *slot = port;
}

void arrivals_remove(struct loop *loop, struct port *port) {
    struct port **slot = &loop->lines;
    while (*slot && *slot != port) {
        slot = &(*slot)->next_line;
    }
    if (*slot) {
        *slot = port->next_line;
    }
    while (port->first) {
        pool_release(&loop->engine->transit.pool, take_first(port));
    }
}

static void keep(struct loop *loop, struct port *port, const struct line_record *record,
                 const uint8_t *data) {
    size_t bytes = record->bytes - VNET_BYTES;
    struct frame *frame = pool_frame(&loop->engine->transit.pool, bytes);
    if (!frame) {
        engine_lost(loop->engine, data, bytes);
        return;
    }
    memcpy(frame->data, data, record->bytes);
    frame->due_ns = record->due_ns;
    frame->bytes = bytes;
    frame->next = NULL;
    if (port->first) {
        port->last->next = frame;
    } else {
        port->first = frame;
    }
    port->last = frame;
}

bool arrivals_take(struct loop *loop, struct port *port, size_t got) {
    const uint8_t *next = port->buffer;
    size_t left = port->kept + got;
    struct line_record record;
    while (left >= sizeof record) {
        memcpy(&record, next, sizeof record);
        if (record.bytes < VNET_BYTES || record.bytes > FRAME_LIMIT + VNET_BYTES) {
            return false;
        }
        if (left - sizeof record < record.bytes) {
            break;
        }
        keep(loop, port, &record, next + sizeof record);
        next += sizeof record + record.bytes;
        left -= sizeof record + record.bytes;
    }
    memmove(port->buffer, next, left);
    port->kept = left;
    return true;
}

uint64_t arrivals_next(const struct loop *loop) {
    const struct port *next = next_line(loop);
    return next ? next->first->due_ns : TIME_NEVER;
}

void arrivals_step(struct loop *loop) {
    struct port *port = next_line(loop);
    struct frame *frame = take_first(port);
    engine_input(loop->engine, port->number, frame, frame->bytes, frame->due_ns);
}
