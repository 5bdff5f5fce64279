/* Makes and frees what interest.c works on. */
#include "interest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROW_LIMIT 65536u

static bool below(const uint32_t *numbers, size_t count, uint32_t limit, bool or_none) {
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] >= limit && !(or_none && numbers[i] == TSSHARE_NONE)) {
            return false;
        }
    }
    return true;
}

static bool ascending(const uint32_t *first, uint32_t rows) {
    for (uint32_t row = 0; row < rows; row++) {
        if (first[row] > first[row + 1]) {
            return false;
        }
    }
    return first[0] == 0;
}

static bool lead_somewhere(const uint32_t *out, uint32_t count, const uint32_t *heads) {
    for (uint32_t i = 0; i < count; i++) {
        if (heads[out[i]] == TSSHARE_NONE) {
            return false;
        }
    }
    return true;
}

static uint32_t *copy(const uint32_t *numbers, size_t count, bool *ok) {
    uint32_t *own = malloc((count + 1) * sizeof *own);
    *ok = *ok && own;
    if (own && count) {
        memcpy(own, numbers, count * sizeof *own);
    }
    return own;
}

static void *room(size_t count, size_t size, bool *ok) {
    void *made = calloc(count + 1, size);
    *ok = *ok && made;
    return made;
}

static bool make_room(struct tsshare_net *net) {
    bool ok = true;
    net->tile = room((size_t)net->rows * TILE, sizeof *net->tile, &ok);
    net->by = room(net->rows, sizeof *net->by, &ok);
    net->waits = room(net->rows, sizeof *net->waits, &ok);
    net->ready = room(net->rows, sizeof *net->ready, &ok);
    net->passing = room(net->rows, sizeof *net->passing, &ok);
    net->own = room(net->rows, sizeof *net->own, &ok);
    net->reaches = room(net->rows, sizeof *net->reaches, &ok);
    net->arrives = room(net->columns, sizeof *net->arrives, &ok);
    net->near = room(net->columns, sizeof *net->near, &ok);
    net->several = room(net->columns, sizeof *net->several, &ok);
    net->receivers = room(net->columns, sizeof *net->receivers, &ok);
    return ok;
}

void tsshare_net_free(struct tsshare_net *net) {
    if (!net) {
        return;
    }
    void *parts[] = {
        net->root,   net->out_first, net->out,        net->head,      net->row,
        net->column, net->by,        net->access_out, net->access_in, net->tile,
        net->waits,  net->ready,     net->own,        net->passing,   net->arrives,
        net->near,   net->several,   net->receivers,  net->reaches,
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        free(parts[i]);
    }
    free(net);
}

struct tsshare_net *tsshare_net_new(uint32_t rows, uint32_t columns, uint32_t links,
                                    uint32_t instances, const uint32_t *roots,
                                    const uint32_t *out_first, const uint32_t *out,
                                    const uint32_t *heads, const uint32_t *instance_rows,
                                    const uint32_t *instance_columns, const uint32_t *access_out,
                                    const uint32_t *access_in) {
    if (rows > ROW_LIMIT || columns > rows || !ascending(out_first, rows) ||
        !below(roots, columns, rows, false) || !below(out, out_first[rows], links, false) ||
        !below(heads, links, rows, true) || !lead_somewhere(out, out_first[rows], heads) ||
        !below(instance_rows, instances, rows, false) ||
        !below(instance_columns, instances, columns, false) ||
        !below(access_out, instances, links, true) || !below(access_in, instances, links, true)) {
        errno = EINVAL;
        return NULL;
    }
    bool ok = true;
    struct tsshare_net *net = room(1, sizeof *net, &ok);
    if (!net) {
        return NULL;
    }
    net->rows = rows;
    net->columns = columns;
    net->links = links;
    net->instances = instances;
    net->root = copy(roots, columns, &ok);
    net->out_first = copy(out_first, (size_t)rows + 1, &ok);
    net->out = copy(out, out_first[rows], &ok);
    net->head = copy(heads, links, &ok);
    net->row = copy(instance_rows, instances, &ok);
    net->column = copy(instance_columns, instances, &ok);
    net->access_out = copy(access_out, instances, &ok);
    net->access_in = copy(access_in, instances, &ok);
    if (!make_room(net) || !ok) {
        tsshare_net_free(net);
        errno = ENOMEM;
        return NULL;
    }
    return net;
}
