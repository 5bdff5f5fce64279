/* Which links of a way decide where its packets wait and what its jitter looks like. Such a link is
 * found, not added up, so each way is followed from link to link.
 */
#include "paths.h"

#include <errno.h>

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
