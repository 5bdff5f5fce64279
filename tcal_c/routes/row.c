/* One source and many destinations: access links added to the block's stretches, and rounded. */
#include "paths.h"
#include "rounding.h"

#include <errno.h>
#include <math.h>

#define SMALL ((u128)1 << 62) /* below, a double's root is at most 1 away */

struct figures {
    uint64_t *delays_ns;
    uint64_t *jitters_ns;
    uint64_t *losses_ppb;
    uint64_t *rates_bps;
    uint32_t *hops;
};

static inline bool root_of(u128 square, uint64_t *root) {
    if (square >= SMALL) {
        return round_root(square, root);
    }
    uint64_t exact = (uint64_t)square;
    uint64_t r = (uint64_t)sqrt((double)(int64_t)exact);
    r -= r * r > exact;
    r += exact - r * r > 2 * r;
    *root = r + (exact - r * r > r);
    return true;
}

/* The upper halves decide, unless one half is within their error: they are at most 2 too small in
 * `kept`, so that what is lost is at most 2 * PPB < 2^31 off. */
static inline bool loss_of(const struct stretch *s, uint64_t *loss_ppb) {
    u128 lost = (u128)(uint64_t)(~s->kept >> 64) * PPB;
    uint64_t fraction = (uint64_t)lost;
    uint64_t half = (uint64_t)1 << 63;
    if (fraction + (1ull << 32) - half < 1ull << 33) {
        return round_loss(s, loss_ppb);
    }
    *loss_ppb = (uint64_t)(lost >> 64) + (fraction >> 63);
    return true;
}

static inline void set(const struct figures *to, uint32_t at, uint64_t delay_ns, uint64_t rate_bps,
                       uint32_t hops) {
    to->delays_ns[at] = delay_ns;
    to->rates_bps[at] = rate_bps == UNLIMITED ? 0 : rate_bps;
    to->hops[at] = hops;
}

/* False if the figures have to be found with larger integers. */
static inline bool tell(const struct stretch *s, const struct figures *to, uint32_t at) {
    if (s->kind == STRETCH_EXACT && root_of(s->jitter_square, &to->jitters_ns[at]) &&
        loss_of(s, &to->losses_ppb[at])) {
        set(to, at, s->delay_ns, s->rate_bps, s->hops);
        return true;
    }
    to->jitters_ns[at] = 0;
    to->losses_ppb[at] = 0;
    set(to, at, 0, 0, s->kind == STRETCH_NONE ? 0 : TSROUTES_UNSURE);
    return s->kind == STRETCH_NONE;
}

/* The source's line of the block behind its access link. */
static const struct stretch *begin(struct tsroutes_paths *p, const struct place *from) {
    const struct stretch *line = p->block + (size_t)p->block_row[from->row] * p->width;
    if (from->access_out == NOWHERE) {
        return line;
    }
    for (uint32_t i = 0; i < p->width; i++) {
        p->begun[i] = stretch_join(&p->link[from->access_out], &line[i]);
    }
    return p->begun;
}

int32_t tsroutes_paths_row(struct tsroutes_paths *p, uint32_t source, uint32_t count,
                           const uint32_t *dests, uint64_t *delays_ns, uint64_t *jitters_ns,
                           uint64_t *losses_ppb, uint64_t *rates_bps, uint32_t *hops) {
    static const struct stretch itself = {.kind = STRETCH_NONE};
    const struct figures to = {delays_ns, jitters_ns, losses_ppb, rates_bps, hops};
    int32_t unsure = 0;
    if (source >= p->instances || p->block_row[p->place[source].row] == NOWHERE) {
        return -EINVAL;
    }
    const struct stretch *line = begin(p, &p->place[source]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t dest = dests[i];
        if (dest >= p->instances || p->block_column[p->place[dest].column] == NOWHERE) {
            return -EINVAL;
        }
        const struct stretch *way = &line[p->block_column[p->place[dest].column]];
        struct stretch whole = *way;
        if (p->place[dest].access_in != NOWHERE) {
            whole = stretch_join(way, &p->link[p->place[dest].access_in]);
        }
        unsure += !tell(dest == source ? &itself : &whole, &to, i);
    }
    return unsure;
}
