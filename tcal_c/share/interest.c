/* Which hosts have paths over which links.
 *
 * Routes towards one destination row form a tree. The hosts of the instances at each row flow down
 * it, from the leaves on, and every link takes the hosts that pass; a link's mask is that of all
 * trees together. Access links are in no tree and come last. One pass over the table: its cells are
 * read once, TILE columns at a time because it lies in memory by row. */
#include "interest.h"

#include <errno.h>
#include <string.h>

#define HOSTS 64u /* that fit into a mask */

struct pass {
    struct tsshare_net *net;
    const uint16_t *table;
    const uint8_t *up;
    uint64_t *masks;
};

static bool usable(const uint8_t *up, uint32_t link) {
    return link == TSSHARE_NONE || up[link];
}

static uint64_t bit_of(const uint32_t *hosts, uint32_t instance, uint32_t first_host) {
    uint32_t host = hosts[instance] - first_host; /* wraps where it is less */
    return host < HOSTS ? UINT64_C(1) << host : 0;
}

/* Who sends from which row and who can be reached behind which column. */
static void place_instances(struct tsshare_net *net, const uint8_t *up, const uint32_t *hosts,
                            uint32_t first_host) {
    memset(net->own, 0, net->rows * sizeof *net->own);
    memset(net->reaches, 0, net->rows * sizeof *net->reaches);
    memset(net->arrives, 0, net->columns * sizeof *net->arrives);
    memset(net->near, 0, net->columns * sizeof *net->near);
    memset(net->several, 0, net->columns * sizeof *net->several);
    memset(net->receivers, 0, net->columns * sizeof *net->receivers);
    for (uint32_t i = 0; i < net->instances; i++) {
        uint32_t column = net->column[i];
        if (usable(up, net->access_out[i])) {
            uint64_t bit = bit_of(hosts, i, first_host);
            net->own[net->row[i]] |= bit;
            net->several[column] |= net->near[column] & bit;
            net->near[column] |= bit;
        }
        net->receivers[column] += usable(up, net->access_in[i]);
    }
}

static void copy_tile(const struct pass *pass, uint32_t first, uint32_t count) {
    const struct tsshare_net *net = pass->net;
    for (uint32_t row = 0; row < net->rows; row++) {
        const uint16_t *cells = pass->table + (size_t)row * net->columns + first;
        for (uint32_t i = 0; i < count; i++) {
            net->tile[(size_t)i * net->rows + row] = cells[i];
        }
    }
}

/* Finds the link by which each row goes on, and how many rows come to each. */
static int32_t follow(const struct pass *pass, const uint16_t *cells) {
    struct tsshare_net *net = pass->net;
    memset(net->waits, 0, net->rows * sizeof *net->waits);
    for (uint32_t row = 0; row < net->rows; row++) {
        net->by[row] = TSSHARE_NONE;
        if (!cells[row]) {
            continue;
        }
        uint32_t place = net->out_first[row] + cells[row] - 1;
        if (place >= net->out_first[row + 1] || !pass->up[net->out[place]]) {
            return -EINVAL;
        }
        net->by[row] = net->out[place];
        net->waits[net->head[net->out[place]]]++;
    }
    return 0;
}

static int32_t flow_down(const struct pass *pass, uint32_t column, const uint16_t *cells) {
    struct tsshare_net *net = pass->net;
    uint32_t count = 0, root = net->root[column];
    int32_t status = follow(pass, cells);
    if (status) {
        return status;
    }
    for (uint32_t row = 0; row < net->rows; row++) {
        net->passing[row] = 0;
        if (!net->waits[row]) {
            net->ready[count++] = row;
        }
    }
    for (uint32_t done = 0; done < count; done++) {
        uint32_t row = net->ready[done], link = net->by[row];
        if (link == TSSHARE_NONE) {
            continue;
        }
        uint32_t next = net->head[link];
        uint64_t mask = net->passing[row] | net->own[row];
        if (net->by[next] == TSSHARE_NONE && next != root) {
            return -EINVAL; /* it leads to where it does not go on */
        }
        net->reaches[row] = 1;
        pass->masks[link] |= mask;
        net->passing[next] |= mask;
        if (!--net->waits[next]) {
            net->ready[count++] = next;
        }
    }
    net->arrives[column] = net->passing[root];
    return count == net->rows && net->by[root] == TSSHARE_NONE ? 0 : -EINVAL; /* else: circles */
}

static int32_t all_trees(const struct pass *pass) {
    struct tsshare_net *net = pass->net;
    for (uint32_t first = 0; first < net->columns; first += TILE) {
        uint32_t count = net->columns - first < TILE ? net->columns - first : TILE;
        copy_tile(pass, first, count);
        for (uint32_t i = 0; i < count; i++) {
            if (net->receivers[first + i]) {
                int32_t status = flow_down(pass, first + i, net->tile + (size_t)i * net->rows);
                if (status) {
                    return status;
                }
            }
        }
    }
    return 0;
}

static void access_links(const struct pass *pass, const uint32_t *hosts, uint32_t first_host) {
    const struct tsshare_net *net = pass->net;
    for (uint32_t i = 0; i < net->instances; i++) {
        uint32_t in = net->access_in[i], out = net->access_out[i], column = net->column[i];
        uint64_t bit = bit_of(hosts, i, first_host);
        if (in != TSSHARE_NONE && pass->up[in]) {
            uint64_t near = net->near[column];
            if (usable(pass->up, out)) {
                near &= ~bit | net->several[column]; /* nobody sends to itself */
            }
            pass->masks[in] |= net->arrives[column] | near;
        }
        if (out != TSSHARE_NONE && pass->up[out]) {
            bool itself = usable(pass->up, in);
            if (net->reaches[net->row[i]] || net->receivers[column] > itself) {
                pass->masks[out] |= bit;
            }
        }
    }
}

int32_t tsshare_interest(struct tsshare_net *net, const uint16_t *table, const uint8_t *up,
                         const uint8_t *limited, const uint32_t *hosts, uint32_t first_host,
                         uint64_t *masks) {
    struct pass pass = {.net = net, .table = table, .up = up, .masks = masks};
    memset(masks, 0, net->links * sizeof *masks);
    place_instances(net, up, hosts, first_host);
    int32_t status = all_trees(&pass);
    if (status) {
        return status;
    }
    access_links(&pass, hosts, first_host);
    for (uint32_t link = 0; link < net->links; link++) {
        if (!limited[link]) {
            masks[link] = 0;
        }
    }
    return 0;
}

/* The masks of the links of one path, together; 0 if there is no path. -EINVAL if it leads in a
 * circle. */
static int32_t along(const struct pass *pass, const uint64_t *masks, uint32_t src, uint32_t dst,
                     uint64_t *found) {
    const struct tsshare_net *net = pass->net;
    uint32_t out = net->access_out[src], in = net->access_in[dst], column = net->column[dst];
    uint64_t mask = out == TSSHARE_NONE ? 0 : masks[out];
    *found = 0;
    if (src == dst || !usable(pass->up, out) || !usable(pass->up, in)) {
        return 0;
    }
    uint32_t row = net->row[src];
    for (uint32_t hops = 0; row != net->root[column]; hops++) {
        uint16_t cell = pass->table[(size_t)row * net->columns + column];
        uint32_t place = net->out_first[row] + cell - 1;
        if (!cell) {
            return 0;
        }
        if (place >= net->out_first[row + 1] || hops == net->rows) {
            return -EINVAL;
        }
        mask |= masks[net->out[place]];
        row = net->head[net->out[place]];
    }
    *found = mask | (in == TSSHARE_NONE ? 0 : masks[in]);
    return 0;
}

int32_t tsshare_interest_paths(struct tsshare_net *net, const uint16_t *table, const uint8_t *up,
                               const uint64_t *masks, uint32_t count, const uint32_t *srcs,
                               const uint32_t *dsts, uint64_t *found) {
    struct pass pass = {.net = net, .table = table, .up = up};
    for (uint32_t i = 0; i < count; i++) {
        if (srcs[i] >= net->instances || dsts[i] >= net->instances) {
            return -EINVAL;
        }
        int32_t status = along(&pass, masks, srcs[i], dsts[i], &found[i]);
        if (status) {
            return status;
        }
    }
    return 0;
}
