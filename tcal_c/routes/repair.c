/* Repairs a column in the steps of Ramalingam and Reps, "An incremental algorithm for a
 * generalization of the shortest-path problem", 1996: rows that no tight link leads on from are
 * found in order of distance (a link u->v is tight when far(u) = length + far(v)), they and the
 * ends of shortened links start from what their neighbours offer, and Dijkstra's algorithm settles
 * them. Every length is at least one hop, so that a row is never as near as the one before it. */
#include "repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int repair_init(struct repair *repair, const struct network *net) {
    size_t rows = (size_t)net->rows + 1;
    /* Cutting: one push for each lost link and for each link into a cut row. Settling: one for
     * each cut row, offer and link into a settled row. */
    size_t pushes = 2 * (size_t)net->links + rows;
    *repair = (struct repair){.net = net};
    repair->heap.key = malloc(pushes * sizeof *repair->heap.key);
    repair->cut = calloc(rows, sizeof *repair->cut);
    repair->seen = calloc(rows, sizeof *repair->seen);
    repair->before = malloc(rows * sizeof *repair->before);
    repair->moved = malloc(rows * sizeof *repair->moved);
    if (!repair->heap.key || !repair->cut || !repair->seen || !repair->before || !repair->moved) {
        return -ENOMEM;
    }
    return 0;
}

void repair_destroy(struct repair *repair) {
    free(repair->heap.key);
    free(repair->cut);
    free(repair->seen);
    free(repair->before);
    free(repair->moved);
    *repair = (struct repair){0};
}

void repair_begin(struct repair *repair) {
    if (++repair->mark == 0) {
        memset(repair->cut, 0, repair->net->rows * sizeof *repair->cut);
        memset(repair->seen, 0, repair->net->rows * sizeof *repair->seen);
        repair->mark = 1;
    }
    repair->moved_count = 0;
}

static void move(struct repair *repair, const struct column *column, uint32_t row, distance far) {
    if (repair->seen[row] != repair->mark) {
        repair->seen[row] = repair->mark;
        repair->before[row] = column->far[row];
        repair->moved[repair->moved_count++] = row;
    }
    column->far[row] = far;
}

/* The least that the neighbours which were not cut can offer. */
static distance best_offer(const struct repair *repair, const struct column *column, uint32_t row) {
    const struct network *net = repair->net;
    distance best = FAR;
    for (uint32_t i = net->out_first[row]; i < net->out_first[row + 1]; i++) {
        const struct hop *hop = &net->out[i];
        distance reach = network_reach(net, column->far[hop->row], hop->length);
        if (reach < best && repair->cut[hop->row] != repair->mark &&
            network_leads(net, hop->row, column->root)) {
            best = reach;
        }
    }
    return best;
}

/* Cuts a row that no tight link leads on from and passes that on to those who came by it. */
static void cut_row(struct repair *repair, const struct column *column, uint32_t row) {
    const struct network *net = repair->net;
    distance have = column->far[row];
    if (repair->cut[row] == repair->mark || best_offer(repair, column, row) == have) {
        return;
    }
    repair->cut[row] = repair->mark;
    move(repair, column, row, have);
    if (!net->forwards[row]) {
        return;
    }
    for (uint32_t i = net->in_first[row]; i < net->in_first[row + 1]; i++) {
        const struct hop *hop = &net->in[i];
        if (column->far[hop->row] == network_reach(net, have, hop->length)) {
            heap_push(&repair->heap, column->far[hop->row], hop->row);
        }
    }
}

void repair_cut(struct repair *repair, const struct column *column, const uint32_t *lost,
                uint32_t count) {
    distance have;
    for (uint32_t i = 0; i < count; i++) {
        heap_push(&repair->heap, column->far[lost[i]], lost[i]);
    }
    while (repair->heap.count) {
        uint32_t row = heap_pop(&repair->heap, &have);
        cut_row(repair, column, row);
    }
    for (uint32_t i = 0; i < repair->moved_count; i++) {
        uint32_t row = repair->moved[i];
        column->far[row] = best_offer(repair, column, row);
        if (column->far[row] < FAR) {
            heap_push(&repair->heap, column->far[row], row);
        }
    }
}

void repair_forget(struct repair *repair, const struct column *column) {
    for (uint32_t row = 0; row < repair->net->rows; row++) {
        if (row != column->root) {
            move(repair, column, row, FAR);
        }
    }
}

void repair_offer(struct repair *repair, const struct column *column, uint32_t row, distance rest,
                  distance length) {
    distance reach = network_reach(repair->net, rest, length);
    if (reach < column->far[row]) {
        move(repair, column, row, reach);
        heap_push(&repair->heap, reach, row);
    }
}

void repair_settle(struct repair *repair, const struct column *column) {
    const struct network *net = repair->net;
    distance have;
    while (repair->heap.count) {
        uint32_t row = heap_pop(&repair->heap, &have);
        if (have > column->far[row] || !network_leads(net, row, column->root)) {
            continue;
        }
        for (uint32_t i = net->in_first[row]; i < net->in_first[row + 1]; i++) {
            repair_offer(repair, column, net->in[i].row, have, net->in[i].length);
        }
    }
}
