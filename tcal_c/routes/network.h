/* The core of a network as lists of neighbours: who can be reached from whom, and how far. */
#ifndef ROUTES_NETWORK_H
#define ROUTES_NETWORK_H

#include "common.h"

/* The other end of a link and its length; FAR while the link is down. */
struct hop {
    distance length;
    uint32_t row;
};

/* As in tsroutes.h. */
enum metric { METRIC_DELAY, METRIC_HOPS, METRIC_DIRECT, METRIC_EQUAL, METRICS };

/* Links are numbered by their first row, then by the name of the other: `out` of a row is in the
 * order in which next hops are preferred. */
struct network {
    uint32_t rows;
    uint32_t links;
    enum metric metric;
    uint8_t *forwards;   /* of a row: whether paths may pass through it */
    uint32_t *out_first; /* row -> its first link; rows + 1 entries */
    uint32_t *in_first;  /* row -> the first of `in` that leads to it; rows + 1 entries */
    struct hop *out;     /* link -> the row it leads to */
    struct hop *in;      /* the same links by the row they lead to: where they come from */
    uint32_t *in_at;     /* link -> its place in `in` */
    uint32_t *tail;      /* link -> the row it comes from */
    uint16_t *choice;    /* link -> what stands in the table for it, from 1 */
};

/* What network_init() reads. `tails` ascend. */
struct network_plan {
    uint32_t rows;
    uint32_t links;
    enum metric metric;
    const uint8_t *forwards;
    const uint32_t *tails;
    const uint32_t *heads;
    const uint16_t *choices;
};

/* All links are down. 0, -EINVAL for numbers out of range or order, -ENOMEM. In both cases
 * network_destroy() may be called. */
int network_init(struct network *net, const struct network_plan *plan);
void network_destroy(struct network *net);

/* The length that a link has in this state. */
distance network_length(const struct network *net, uint64_t delay_ns, bool up);
void network_set(struct network *net, uint32_t link, distance length);

/* Whether a path to `root` may go by a link that leads to `row`. */
static inline bool network_leads(const struct network *net, uint32_t row, uint32_t root) {
    return net->forwards[row] || row == root;
}

/* How far a row is that has a link of this length to one that is `rest` away. With METRIC_DIRECT
 * the link to the destination counts before all ways around, which then are compared by themselves.
 */
static inline distance network_reach(const struct network *net, distance rest, distance length) {
    if (net->metric != METRIC_DIRECT || rest == 0) {
        return rest + length;
    }
    return ((rest & ~AROUND) + length) | AROUND;
}

#endif
