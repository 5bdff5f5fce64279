/* Controlled delay (RFC 8289; Nichols and Jacobson, "Controlling queue delay", 2012).
 *
 * Once every packet that was sent in an interval had waited for the target or longer, one is
 * dropped, and further ones at times that come closer and closer: interval / sqrt(drops so far)
 * apart. It ends with the first packet that has not waited that long, or with less than a full
 * packet behind it. Dropping that begins again soon goes on about where it was. As in Linux, "soon"
 * is 16 intervals, what counts is all that the link holds, not the flow's part of it, and the root
 * is computed by one step of Newton's method a drop: so the second of an episode comes after half
 * an interval, and one that begins again goes on faster than by its count.
 */
#include "codel.h"

#include "aqm.h"

/* A queue with no more than one full packet left is never too long. */
#define LEAST_BYTES 1500u
#define SOON_INTERVALS 16u

/* One step of Newton's method for 1 / sqrt(count), from where it was. A count that is much larger
 * all at once, as when a flow has lost half of what it held, would lead it away. */
static void approach(struct codel *codel) {
    uint64_t root = (uint64_t)codel->root << 16;
    while ((root * root >> 32) * codel->count >= 2ull << 32) {
        root >>= 1;
    }
    uint64_t rest = (3ull << 32) - (root * root >> 32) * codel->count;
    codel->root = (uint16_t)(((rest >> 2) * root >> 31) >> 16);
}

static uint64_t next_drop(const struct aqm *aqm, const struct codel *codel, uint64_t after_ns) {
    return after_ns + (uint64_t)((u128)aqm->is.interval_ns * codel->root >> 16);
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
        approach(codel);
        if (aqm_mark(aqm, piece)) {
            codel->next_ns = next_drop(aqm, codel, codel->next_ns);
            break;
        }
        aqm_lose(aqm, piece);
        bool late;
        piece = next_packet(aqm, codel, fifo, at_ns, &late);
        codel->dropping = late;
        codel->next_ns = late ? next_drop(aqm, codel, codel->next_ns) : codel->next_ns;
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
    if (more > 1 && soon) {
        codel->count = more;
        approach(codel);
    } else {
        codel->count = 1;
        codel->root = UINT16_MAX;
    }
    codel->last_count = codel->count;
    codel->next_ns = next_drop(aqm, codel, at_ns);
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
