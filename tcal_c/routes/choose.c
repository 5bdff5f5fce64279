/* Of a row's tight links (far(u) = length + far(v)) the first is the next hop, or with METRIC_EQUAL
 * all are. Which links are tight changes where a distance or a length does. */
#include "choose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int chooser_init(struct chooser *chooser, const struct network *net) {
    size_t rows = (size_t)net->rows + 1;
    *chooser = (struct chooser){.net = net};
    chooser->stale = calloc(rows, sizeof *chooser->stale);
    chooser->row = malloc(rows * sizeof *chooser->row);
    return chooser->stale && chooser->row ? 0 : -ENOMEM;
}

void chooser_destroy(struct chooser *chooser) {
    free(chooser->stale);
    free(chooser->row);
    *chooser = (struct chooser){0};
}

void chooser_begin(struct chooser *chooser) {
    if (++chooser->mark == 0) {
        memset(chooser->stale, 0, chooser->net->rows * sizeof *chooser->stale);
        chooser->mark = 1;
    }
    chooser->count = 0;
}

void chooser_add(struct chooser *chooser, uint32_t row) {
    if (chooser->stale[row] != chooser->mark) {
        chooser->stale[row] = chooser->mark;
        chooser->row[chooser->count++] = row;
    }
}

void chooser_add_all(struct chooser *chooser) {
    for (uint32_t row = 0; row < chooser->net->rows; row++) {
        chooser_add(chooser, row);
    }
}

/* A neighbour that stayed where it was: when this row came nearer, the link to it may be tight now;
 * when it went away, the link may have been tight before. */
static void add_neighbours(struct chooser *chooser, const struct column *column, uint32_t row,
                           distance nearer) {
    const struct network *net = chooser->net;
    for (uint32_t i = net->in_first[row]; i < net->in_first[row + 1]; i++) {
        const struct hop *hop = &net->in[i];
        if (column->far[hop->row] == network_reach(net, nearer, hop->length)) {
            chooser_add(chooser, hop->row);
        }
    }
}

void chooser_add_moved(struct chooser *chooser, const struct repair *repair,
                       const struct column *column) {
    for (uint32_t i = 0; i < repair->moved_count; i++) {
        uint32_t row = repair->moved[i];
        if (column->far[row] != repair->before[row]) {
            chooser_add(chooser, row);
        }
    }
}

void chooser_add_neighbours(struct chooser *chooser, const struct repair *repair,
                            const struct column *column) {
    for (uint32_t i = 0; i < repair->moved_count; i++) {
        uint32_t row = repair->moved[i];
        distance before = repair->before[row];
        distance now = column->far[row];
        if (before != now && chooser->net->forwards[row]) {
            add_neighbours(chooser, column, row, before < now ? before : now);
        }
    }
}

/* The first tight link of a row from `i` on; the end of its links if there is none. */
static uint32_t next_tight(const struct network *net, const struct column *column, uint32_t row,
                           uint32_t i) {
    distance have = column->far[row];
    for (; i < net->out_first[row + 1]; i++) {
        const struct hop *hop = &net->out[i];
        if (network_reach(net, column->far[hop->row], hop->length) == have &&
            network_leads(net, hop->row, column->root)) {
            break;
        }
    }
    return i;
}

static bool leads_on(const struct column *column, uint32_t row) {
    return column->far[row] < FAR && row != column->root;
}

uint16_t choose(const struct network *net, const struct column *column, uint32_t row) {
    if (!leads_on(column, row)) {
        return 0;
    }
    uint32_t i = next_tight(net, column, row, net->out_first[row]);
    return i < net->out_first[row + 1] ? net->choice[i] : 0;
}

uint32_t choose_all(const struct network *net, const struct column *column, uint32_t row,
                    uint16_t *links) {
    uint32_t count = 0;
    uint32_t end = leads_on(column, row) ? net->out_first[row + 1] : 0;
    for (uint32_t i = net->out_first[row]; i < end && count < GROUP_MOST; i++) {
        i = next_tight(net, column, row, i);
        if (i == end) {
            break;
        }
        uint32_t at = count++;
        for (; at && links[at - 1] > net->choice[i]; at--) {
            links[at] = links[at - 1];
        }
        links[at] = net->choice[i];
    }
    return count;
}
