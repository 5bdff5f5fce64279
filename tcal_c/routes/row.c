/* One source and many destinations: access links added to the block's stretches, and rounded; and
 * which links of the ways decide where packets wait and what jitter looks like.
 *
 * Nearly every pair is told from briefs, in 64 bits; the others are added up from the stretches. A
 * link that decides is found, not added up, so each way is followed from link to link.
 */
#include "paths.h"

#include <errno.h>
#include <math.h>

#define HALF ((uint64_t)1 << 63)
#define SMALL                                                                                      \
    ((uint64_t)1 << 60) /* three of these still fit, and a double's root is right to 1             \
                         */

struct figures {
    uint64_t *delays_ns;
    uint64_t *jitters_ns;
    uint64_t *losses_ppb;
    uint64_t *rates_bps;
    uint32_t *hops;
};

struct brief brief_of(const struct stretch *s) {
    return (struct brief){.kept = (uint64_t)(s->kept >> 64),
                          .jitter_square = (uint64_t)s->jitter_square,
                          .delay_ns = s->delay_ns,
                          .rate_bps = s->rate_bps,
                          .hops = s->hops,
                          .enough = s->kind == STRETCH_EXACT && s->jitter_square < SMALL &&
                                    s->delay_ns < SMALL};
}

static inline struct brief brief_join(const struct brief *a, const struct brief *b) {
    return (struct brief){.kept = (uint64_t)((u128)a->kept * b->kept >> 64),
                          .jitter_square = a->jitter_square + b->jitter_square,
                          .delay_ns = a->delay_ns + b->delay_ns,
                          .rate_bps = a->rate_bps < b->rate_bps ? a->rate_bps : b->rate_bps,
                          .hops = a->hops + b->hops,
                          .enough = a->enough & b->enough};
}

static inline uint64_t small_root(uint64_t square) {
    uint64_t r = (uint64_t)sqrt((double)(int64_t)square);
    r -= r * r > square;
    r += square - r * r > 2 * r;
    return r + (square - r * r > r);
}

static inline void set(const struct figures *to, uint32_t at, uint64_t delay_ns, uint64_t rate_bps,
                       uint32_t hops) {
    to->delays_ns[at] = delay_ns;
    to->rates_bps[at] = rate_bps == UNLIMITED ? 0 : rate_bps;
    to->hops[at] = hops;
}

/* False if the stretches have to be looked at. Each factor's upper half is less than 1.01 too small
 * and each product rounded down, so that the product of three is less than 6 too small, and what is
 * lost less than 6 * PPB < 2^33 too large: a half that is further away is told from it. */
static inline bool tell_briefly(const struct brief *s, const struct figures *to, uint32_t at) {
    u128 lost = (u128)~s->kept * PPB;
    uint64_t fraction = (uint64_t)lost;
    if (!s->enough || fraction - (HALF - (1ull << 33)) < 1ull << 34) {
        return false;
    }
    to->losses_ppb[at] = (uint64_t)(lost >> 64) + (fraction >= HALF);
    to->jitters_ns[at] = small_root(s->jitter_square);
    set(to, at, s->delay_ns, s->rate_bps, s->hops);
    return true;
}

/* False if the figures have to be found with larger integers. */
static bool tell(const struct stretch *s, const struct figures *to, uint32_t at) {
    if (s->kind == STRETCH_EXACT && round_root(s->jitter_square, &to->jitters_ns[at]) &&
        round_loss(s, &to->losses_ppb[at])) {
        set(to, at, s->delay_ns, s->rate_bps, s->hops);
        return true;
    }
    to->jitters_ns[at] = 0;
    to->losses_ppb[at] = 0;
    set(to, at, 0, 0, s->kind == STRETCH_NONE ? 0 : TSROUTES_UNSURE);
    return s->kind == STRETCH_NONE;
}

static bool tell_wholly(const struct tsroutes_paths *p, const struct place *from,
                        const struct place *onto, const struct figures *to, uint32_t at) {
    const struct stretch *line = p->block + (size_t)p->block_row[from->row] * p->width;
    struct stretch whole = line[p->block_column[onto->column]];
    if (from->access_out != NOWHERE) {
        whole = stretch_join(&p->link[from->access_out], &whole);
    }
    if (onto->access_in != NOWHERE) {
        whole = stretch_join(&whole, &p->link[onto->access_in]);
    }
    return tell(&whole, to, at);
}

/* The source's line of the block behind its access link. */
static void begin(struct tsroutes_paths *p, const struct place *from) {
    const struct stretch *line = p->block + (size_t)p->block_row[from->row] * p->width;
    for (uint32_t i = 0; i < p->width; i++) {
        p->begun[i] = brief_of(&line[i]);
        if (from->access_out != NOWHERE) {
            p->begun[i] = brief_join(&p->link_brief[from->access_out], &p->begun[i]);
        }
    }
}

/* 1 if this pair is unsure, else 0. */
static inline int one_pair(const struct tsroutes_paths *p, const struct place *from,
                           const struct place *onto, const struct figures *to, uint32_t at) {
    struct brief whole = p->begun[p->block_column[onto->column]];
    if (onto->access_in != NOWHERE) {
        whole = brief_join(&whole, &p->link_brief[onto->access_in]);
    }
    return !tell_briefly(&whole, to, at) && !tell_wholly(p, from, onto, to, at);
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
    const struct place *from = &p->place[source];
    begin(p, from);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t dest = dests[i];
        if (dest >= p->instances || p->block_column[p->place[dest].column] == NOWHERE) {
            return -EINVAL;
        }
        if (dest == source) {
            tell(&itself, &to, i);
        } else {
            unsure += one_pair(p, from, &p->place[dest], &to, i);
        }
    }
    return unsure;
}

/* NOWHERE before there is a link. */
struct deciding {
    uint32_t narrowest;
    uint32_t unsteadiest;
};

/* Later links decide only if they are narrower, or less steady, than all before. */
static void pass(const struct tsroutes_paths *p, struct deciding *so_far, uint32_t link) {
    if (link == NOWHERE) {
        return;
    }
    if (so_far->narrowest == NOWHERE) {
        *so_far = (struct deciding){link, link};
        return;
    }
    if (p->link[link].rate_bps < p->link[so_far->narrowest].rate_bps) {
        so_far->narrowest = link;
    }
    if (p->link[link].jitter_square > p->link[so_far->unsteadiest].jitter_square) {
        so_far->unsteadiest = link;
    }
}

/* 0, or -EINVAL when the table leads in a circle, over a link that is down, or nowhere. */
static int follow(const struct tsroutes_paths *p, const uint16_t *table, const struct place *from,
                  const struct place *onto, struct deciding *found) {
    uint32_t row = from->row;
    uint32_t link;
    *found = (struct deciding){NOWHERE, NOWHERE};
    pass(p, found, from->access_out);
    for (uint32_t steps = 0; row != p->root[onto->column]; steps++) {
        uint16_t choice = table[(size_t)row * p->columns + onto->column];
        if (steps == p->rows || !next_link(p, row, choice, &link)) {
            return -EINVAL;
        }
        if (link == NOWHERE) {
            *found = (struct deciding){NOWHERE, NOWHERE};
            return 0;
        }
        pass(p, found, link);
        row = p->head[link];
    }
    pass(p, found, onto->access_in);
    return 0;
}

int32_t tsroutes_paths_deciding(const struct tsroutes_paths *p, const uint16_t *table,
                                uint32_t source, uint32_t count, const uint32_t *dests,
                                uint32_t *narrowest, uint32_t *unsteadiest) {
    if (source >= p->instances) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct deciding found = {NOWHERE, NOWHERE};
        if (dests[i] >= p->instances) {
            return -EINVAL;
        }
        if (dests[i] != source &&
            follow(p, table, &p->place[source], &p->place[dests[i]], &found)) {
            return -EINVAL;
        }
        narrowest[i] = found.narrowest;
        unsteadiest[i] = found.unsteadiest;
    }
    return 0;
}
