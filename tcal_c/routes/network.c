/* Builds the lists of neighbours and changes lengths in them. */
#include "network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool valid(const struct network_plan *plan) {
    if (plan->rows > ROW_LIMIT || plan->metric >= METRICS) {
        return false;
    }
    for (uint32_t i = 0; i < plan->links; i++) {
        if (plan->tails[i] >= plan->rows || plan->heads[i] >= plan->rows || !plan->choices[i] ||
            (i && plan->tails[i] < plan->tails[i - 1])) {
            return false;
        }
    }
    return true;
}

static bool allocate(struct network *net) {
    size_t rows = net->rows;
    size_t links = net->links;
    net->forwards = calloc(rows + 1, sizeof *net->forwards);
    net->out_first = calloc(rows + 1, sizeof *net->out_first);
    net->in_first = calloc(rows + 1, sizeof *net->in_first);
    net->out = calloc(links + 1, sizeof *net->out);
    net->in = calloc(links + 1, sizeof *net->in);
    net->in_at = calloc(links + 1, sizeof *net->in_at);
    net->tail = calloc(links + 1, sizeof *net->tail);
    net->choice = calloc(links + 1, sizeof *net->choice);
    return net->forwards && net->out_first && net->in_first && net->out && net->in && net->in_at &&
           net->tail && net->choice;
}

/* From counts per row to where each row's links begin. */
static void add_up(uint32_t *first, uint32_t rows) {
    uint32_t total = 0;
    for (uint32_t row = 0; row <= rows; row++) {
        uint32_t count = first[row];
        first[row] = total;
        total += count;
    }
}

static void connect(struct network *net, const uint32_t *heads) {
    for (uint32_t link = 0; link < net->links; link++) {
        net->out_first[net->tail[link]]++;
        net->in_first[heads[link]]++;
    }
    add_up(net->out_first, net->rows);
    add_up(net->in_first, net->rows);
    for (uint32_t link = 0; link < net->links; link++) {
        /* in_first moves on as places are taken, and is moved back below. */
        uint32_t at = net->in_first[heads[link]]++;
        net->in_at[link] = at;
        net->in[at] = (struct hop){FAR, net->tail[link]};
        net->out[link] = (struct hop){FAR, heads[link]};
    }
    for (uint32_t row = net->rows; row > 0; row--) {
        net->in_first[row] = net->in_first[row - 1];
    }
    net->in_first[0] = 0;
}

int network_init(struct network *net, const struct network_plan *plan) {
    *net = (struct network){.rows = plan->rows, .links = plan->links, .metric = plan->metric};
    if (!valid(plan)) {
        return -EINVAL;
    }
    if (!allocate(net)) {
        return -ENOMEM;
    }
    if (plan->rows) {
        memcpy(net->forwards, plan->forwards, plan->rows * sizeof *net->forwards);
    }
    if (plan->links) {
        memcpy(net->tail, plan->tails, plan->links * sizeof *net->tail);
        memcpy(net->choice, plan->choices, plan->links * sizeof *net->choice);
        connect(net, plan->heads);
    }
    return 0;
}

void network_destroy(struct network *net) {
    free(net->forwards);
    free(net->out_first);
    free(net->in_first);
    free(net->out);
    free(net->in);
    free(net->in_at);
    free(net->tail);
    free(net->choice);
    *net = (struct network){0};
}

distance network_length(const struct network *net, uint64_t delay_ns, bool up) {
    if (!up) {
        return FAR;
    }
    return net->metric == METRIC_HOPS ? ((distance)HOP << HOPS_SHIFT) + delay_ns
                                      : ((distance)delay_ns << DELAY_SHIFT) + HOP;
}

void network_set(struct network *net, uint32_t link, distance length) {
    net->out[link].length = length;
    net->in[net->in_at[link]].length = length;
}
