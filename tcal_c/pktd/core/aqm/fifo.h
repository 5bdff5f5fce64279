/* Packets that wait in order. Of a piece that does, `due_ns` is when it came. */
#ifndef PKTD_FIFO_H
#define PKTD_FIFO_H

#include "pktd/core/packets/pool.h"

struct fifo {
    struct piece *head;
    struct piece *tail;
    uint64_t bytes;
};

static inline uint32_t piece_bytes(const struct piece *piece) {
    return packet_segment_bytes(&piece->frame->info, piece->first);
}

static inline void fifo_put(struct fifo *fifo, struct piece *piece) {
    piece->next = NULL;
    *(fifo->tail ? &fifo->tail->next : &fifo->head) = piece;
    fifo->tail = piece;
    fifo->bytes += piece_bytes(piece);
}

/* NULL when there is none. */
static inline struct piece *fifo_take(struct fifo *fifo) {
    struct piece *piece = fifo->head;
    if (piece) {
        fifo->head = piece->next;
        fifo->tail = fifo->head ? fifo->tail : NULL;
        fifo->bytes -= piece_bytes(piece);
    }
    return piece;
}

/* How long it has waited. It may have come a little later than what is sent now began to be free:
 * docs/pktd.md, "Super-packets". */
static inline uint64_t fifo_waited(const struct piece *piece, uint64_t at_ns) {
    return at_ns > piece->due_ns ? at_ns - piece->due_ns : 0;
}

#endif
