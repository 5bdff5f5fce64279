/* Controlled delay (RFC 8289; Nichols and Jacobson, "Controlling queue delay", 2012).
 *
 * Once every packet that was sent in an interval had waited for the target or longer, one is
 * dropped, and further ones at times that come closer and closer: interval / sqrt(drops so far)
 * apart. It ends with the first packet that has not waited that long, or with less than a full
 * packet behind it. Dropping that begins again soon goes on about where it was. As in Linux, "soon"
 * is 16 intervals, and what counts is all that the link holds, not the flow's part of it.
 */
#include "codel.h"

#include "aqm.h"

/* A queue with no more than one full packet left is never too long. */
#define LEAST_BYTES 1500u
#define SOON_INTERVALS 16u

/* floor(sqrt(2^62 n)) */
static uint64_t root(uint32_t n) {
    u128 square = (u128)n << 62;
    uint64_t found = 0;
    for (uint64_t bit = 1ull << 46; bit; bit >>= 1) {
        uint64_t next = found + bit;
        found = (u128)next * next <= square ? next : found;
    }
    return found;
}

static uint64_t next_drop(const struct aqm *aqm, uint32_t count, uint64_t after_ns) {
    return after_ns + (uint64_t)(((u128)aqm->is.interval_ns << 31) / root(count));
}

/* The next packet, and whether it has waited too long for too long. */
static struct piece *next_packet(struct aqm *aqm, struct codel *codel, struct fifo *fifo,
                                 uint64_t at_ns, bool *late) {
    struct piece *piece = aqm_take_of(aqm, fifo);
    *late = false;
    if (!piece || fifo_waited(piece, at_ns) < aqm->is.target_ns || aqm->bytes <= LEAST_BYTES) {
        codel->above_ns = 0;
    } else if (codel->above_ns == 0) {
        codel->above_ns = at_ns + aqm->is.interval_ns;
    } else {
        *late = at_ns >= codel->above_ns;
    }
    return piece;
}

/* Drops are due, and the packet is late. */
static struct piece *go_on(struct aqm *aqm, struct codel *codel, struct fifo *fifo,
                           struct piece *piece, uint64_t at_ns) {
    while (codel->dropping && at_ns >= codel->next_ns) {
        codel->count++;
        if (aqm_mark(aqm, piece)) {
            codel->next_ns = next_drop(aqm, codel->count, codel->next_ns);
            break;
        }
        aqm_lose(aqm, piece);
        bool late;
        piece = next_packet(aqm, codel, fifo, at_ns, &late);
        codel->dropping = late;
        codel->next_ns = late ? next_drop(aqm, codel->count, codel->next_ns) : codel->next_ns;
    }
    return piece;
}

static struct piece *begin(struct aqm *aqm, struct codel *codel, struct fifo *fifo,
                           struct piece *piece, uint64_t at_ns) {
    if (!aqm_mark(aqm, piece)) {
        aqm_lose(aqm, piece);
        bool late;
        piece = next_packet(aqm, codel, fifo, at_ns, &late);
    }
    codel->dropping = true;
    uint32_t more = codel->count - codel->last_count;
    bool soon = at_ns < codel->next_ns + SOON_INTERVALS * aqm->is.interval_ns;
    codel->count = more > 1 && soon ? more : 1;
    codel->last_count = codel->count;
    codel->next_ns = next_drop(aqm, codel->count, at_ns);
    return piece;
}

struct piece *codel_take(struct aqm *aqm, struct codel *codel, struct fifo *fifo, uint64_t at_ns) {
    bool late;
    struct piece *piece = next_packet(aqm, codel, fifo, at_ns, &late);
    if (!late) {
        codel->dropping = false;
        return piece;
    }
    if (codel->dropping) {
        return go_on(aqm, codel, fifo, piece, at_ns);
    }
    return begin(aqm, codel, fifo, piece, at_ns);
}
