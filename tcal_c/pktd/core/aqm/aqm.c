/* What the disciplines share: limits, losses, marks, and which of them decides.
 *
 * Without one it is a drop-tail queue. A packet is accepted when it fits behind what waits, what is
 * still to be sent of another included, or when nothing waits; fq_codel takes every packet, and
 * then drops of the longest flow.
 */
#include "aqm.h"

#include "pktd/core/packets/ecn.h"

#include <string.h>

void aqm_put_in(struct aqm *aqm, struct fifo *fifo, struct piece *piece) {
    fifo_put(fifo, piece);
    aqm->bytes += piece_bytes(piece);
    aqm->packets++;
}

struct piece *aqm_take_of(struct aqm *aqm, struct fifo *fifo) {
    struct piece *piece = fifo_take(fifo);
    if (piece) {
        aqm->bytes -= piece_bytes(piece);
        aqm->packets--;
    }
    return piece;
}

void aqm_lose(struct aqm *aqm, struct piece *piece) {
    fifo_put(&aqm->lost, piece);
}

struct piece *aqm_lost(struct aqm *aqm) {
    return fifo_take(&aqm->lost);
}

bool aqm_mark(const struct aqm *aqm, struct piece *piece) {
    const struct frame *frame = piece->frame;
    if (aqm->is.ecn && ecn_capable(&frame->info, frame_content(frame))) {
        piece->marked = true;
    }
    return piece->marked;
}

static bool fits(const struct aqm *aqm, const struct piece *piece, uint64_t sending) {
    if (aqm->packets == 0 && sending == 0) {
        return true;
    }
    uint64_t packets = aqm->packets + (sending ? 1 : 0);
    return (aqm->limit_packets == 0 || packets < aqm->limit_packets) &&
           aqm->bytes + sending + piece_bytes(piece) <= aqm->limit_bytes;
}

static void hold(struct aqm *aqm, struct piece *piece) {
    if (aqm->is.kind == AQM_FQ_CODEL) {
        fq_put(aqm, piece);
    } else {
        aqm_put_in(aqm, &aqm->fifo, piece);
    }
}

/* Whether it may come in; it may be marked by that. */
static bool admits(struct aqm *aqm, struct piece *piece, uint64_t n,
                   const struct aqm_sending *sending, uint64_t at_ns) {
    bool room = fits(aqm, piece, sending->bytes);
    if (aqm->is.kind == AQM_PIE) {
        return room &&
               (!pie_hits(aqm, piece, n, at_ns) || (pie_marks(&aqm->pie) && aqm_mark(aqm, piece)));
    }
    if (aqm->is.kind == AQM_RED) {
        bool hit = red_hits(aqm, piece, n, sending, at_ns);
        return room && (!hit || aqm_mark(aqm, piece));
    }
    return room;
}

void aqm_put(struct aqm *aqm, struct piece *piece, uint64_t n, const struct aqm_sending *sending,
             uint64_t at_ns) {
    piece->due_ns = at_ns;
    aqm->since_ns = aqm->packets ? aqm->since_ns : at_ns;
    if (admits(aqm, piece, n, sending, at_ns)) {
        hold(aqm, piece);
    } else if (aqm->is.kind == AQM_FQ_CODEL) {
        hold(aqm, piece);
        fq_shorten(aqm);
    } else {
        aqm_lose(aqm, piece);
    }
}

struct piece *aqm_take(struct aqm *aqm, uint64_t at_ns) {
    switch (aqm->is.kind) {
    case AQM_CODEL:
        return codel_take(aqm, &aqm->codel, &aqm->fifo, at_ns);
    case AQM_FQ_CODEL:
        return fq_take(aqm, at_ns);
    default:
        break;
    }
    struct piece *piece = aqm_take_of(aqm, &aqm->fifo);
    if (piece && aqm->is.kind == AQM_PIE) {
        pie_sent(aqm, piece, at_ns);
    }
    return piece;
}

struct piece *aqm_remove(struct aqm *aqm) {
    return aqm->is.kind == AQM_FQ_CODEL ? fq_remove(aqm) : aqm_take_of(aqm, &aqm->fifo);
}

void aqm_limit(struct aqm *aqm, uint64_t bytes, uint64_t packets) {
    aqm->limit_bytes = bytes;
    aqm->limit_packets = packets;
    if (aqm->is.kind == AQM_RED) {
        red_change(aqm);
    }
}

void aqm_reset(struct aqm *aqm, uint64_t at_ns) {
    aqm->codel = (struct codel){0};
    aqm->red.mean = 0;
    aqm->red.passed = RED_NONE;
    pie_begin(&aqm->pie, at_ns);
    aqm->fresh = aqm->old = (struct fq_list){0};
    if (aqm->is.kind == AQM_FQ_CODEL) {
        memset(aqm->flow, 0, aqm->is.flows * sizeof *aqm->flow);
    }
}

void aqm_change(struct aqm *aqm, const struct aqm_config *config, struct fq_flow *flow,
                uint64_t at_ns) {
    if (config->kind != aqm->is.kind || config->flows != aqm->is.flows) {
        struct fifo held = {0};
        for (struct piece *piece; (piece = aqm_remove(aqm));) {
            fifo_put(&held, piece);
        }
        aqm->is = *config;
        aqm->flow = flow;
        aqm_reset(aqm, at_ns);
        for (struct piece *piece; (piece = fifo_take(&held));) {
            hold(aqm, piece);
        }
    }
    aqm->is = *config;
    aqm_limit(aqm, aqm->limit_bytes, aqm->limit_packets);
}
