/* Interest against a walk along the path of every pair, in networks at random: tables that lead
 * somewhere, and tables that lead anywhere, which must be refused or followed, and no more. */
#include "common/tests/check.h"
#include "suites.h"
#include "share/tsshare.h"

#include <errno.h>
#include <stdbool.h>

#define ROWS 7u
#define LINKS 40u
#define INSTANCES 12u

struct net {
    uint32_t rows, columns, links, instances;
    uint32_t root[ROWS], first[ROWS + 1], out[LINKS], head[LINKS];
    uint32_t row[INSTANCES], column[INSTANCES], access_out[INSTANCES], access_in[INSTANCES];
    uint32_t host[INSTANCES];
    uint16_t table[ROWS * ROWS];
    uint8_t up[LINKS], limited[LINKS];
};

static uint32_t below(uint64_t *random, uint32_t limit) {
    return (uint32_t)((next_random(random) >> 33) % limit);
}

static void add_core(struct net *net, uint64_t *random) {
    net->rows = 1 + below(random, ROWS);
    net->columns = net->rows; /* every row is a destination */
    for (uint32_t row = 0; row < net->rows; row++) {
        net->root[row] = row;
        net->first[row] = net->links;
        for (uint32_t count = below(random, 4); count > 0; count--) {
            net->out[net->links] = net->links;
            net->head[net->links++] = below(random, net->rows);
        }
    }
    net->first[net->rows] = net->links;
}

static void add_instances(struct net *net, uint64_t *random) {
    net->instances = below(random, INSTANCES + 1);
    for (uint32_t i = 0; i < net->instances && net->links + 2 <= LINKS; i++) {
        bool behind = below(random, 4) > 0;
        net->row[i] = net->column[i] = below(random, net->rows);
        net->access_out[i] = net->access_in[i] = TSSHARE_NONE;
        net->host[i] = below(random, 80);
        for (int way = 0; behind && way < 2; way++) {
            *(way ? &net->access_in[i] : &net->access_out[i]) = net->links;
            net->head[net->links++] = TSSHARE_NONE;
        }
    }
}

static void add_states(struct net *net, uint64_t *random) {
    for (uint32_t link = 0; link < net->links; link++) {
        net->up[link] = below(random, 8) > 0;
        net->limited[link] = net->up[link] && below(random, 4) > 0;
    }
}

/* Each row goes to a row that was joined to the tree before, if a link leads there. */
static void add_tree(struct net *net, uint64_t *random, uint32_t column) {
    bool joined[ROWS] = {false};
    joined[net->root[column]] = true;
    for (uint32_t tries = 0; tries < 3 * net->rows; tries++) {
        uint32_t row = below(random, net->rows);
        for (uint32_t k = net->first[row]; k < net->first[row + 1] && !joined[row]; k++) {
            if (net->up[k] && joined[net->head[k]]) {
                joined[row] = true;
                net->table[row * net->columns + column] = (uint16_t)(k - net->first[row] + 1);
            }
        }
    }
}

static void fill(struct net *net, uint64_t *random, bool wild) {
    memset(net, 0, sizeof *net);
    add_core(net, random);
    add_instances(net, random);
    add_states(net, random);
    for (uint32_t column = 0; column < net->columns; column++) {
        add_tree(net, random, column);
    }
    for (uint32_t count = wild ? 1 + below(random, 3) : 0; count > 0; count--) {
        net->table[below(random, net->rows * net->columns)] = (uint16_t)below(random, 5);
    }
}

static bool open(const struct net *net, uint32_t link) {
    return link == TSSHARE_NONE || net->up[link];
}

/* The links of a path; 0 if there is none. The table has been found to lead somewhere. */
static uint32_t walk(const struct net *net, uint32_t src, uint32_t dst, uint32_t *links) {
    uint32_t count = 0, row = net->row[src], end = net->root[net->column[dst]];
    if (src == dst || !open(net, net->access_out[src]) || !open(net, net->access_in[dst])) {
        return 0;
    }
    if (net->access_out[src] != TSSHARE_NONE) {
        links[count++] = net->access_out[src];
    }
    while (row != end) {
        uint16_t cell = net->table[row * net->columns + net->column[dst]];
        if (!cell) {
            return 0;
        }
        links[count++] = net->out[net->first[row] + cell - 1];
        CHECK(net->up[links[count - 1]] && count <= ROWS + 1);
        row = net->head[links[count - 1]];
    }
    if (net->access_in[dst] != TSSHARE_NONE) {
        links[count++] = net->access_in[dst];
    }
    return count;
}

static void check_masks(const struct net *net, uint32_t first_host, const uint64_t *masks) {
    uint64_t expected[LINKS] = {0};
    uint32_t links[ROWS + 3];
    for (uint32_t src = 0; src < net->instances; src++) {
        uint32_t host = net->host[src] - first_host;
        for (uint32_t dst = 0; dst < net->instances; dst++) {
            uint32_t count = walk(net, src, dst, links);
            for (uint32_t i = 0; i < count; i++) {
                bool counts = net->limited[links[i]] && host < 64;
                expected[links[i]] |= counts ? UINT64_C(1) << host : 0;
            }
        }
    }
    for (uint32_t link = 0; link < net->links; link++) {
        CHECK_EQ(masks[link], expected[link]);
    }
}

static void check_paths(const struct net *net, struct tsshare_net *made, const uint64_t *masks) {
    uint32_t links[ROWS + 3];
    for (uint32_t src = 0; src < net->instances; src++) {
        for (uint32_t dst = 0; dst < net->instances; dst++) {
            uint64_t expected = 0, found = 1;
            uint32_t count = walk(net, src, dst, links);
            for (uint32_t i = 0; i < count; i++) {
                expected |= masks[links[i]];
            }
            CHECK_EQ(
                tsshare_interest_paths(made, net->table, net->up, masks, 1, &src, &dst, &found), 0);
            CHECK_EQ(found, expected);
        }
    }
}

static struct tsshare_net *make(const struct net *net) {
    return tsshare_net_new(net->rows, net->columns, net->links, net->instances, net->root,
                           net->first, net->out, net->head, net->row, net->column, net->access_out,
                           net->access_in);
}

void test_interest(void) {
    uint64_t random = 77, masks[LINKS], found;
    uint32_t refused = 0, accepted = 0;
    for (int round = 0; round < 20000; round++) {
        struct net net;
        fill(&net, &random, round % 2);
        struct tsshare_net *made = make(&net);
        CHECK(made);
        uint32_t first_host = round % 3 ? 0 : 64;
        int32_t status =
            tsshare_interest(made, net.table, net.up, net.limited, net.host, first_host, masks);
        if (status) {
            CHECK(round % 2 && status == -EINVAL);
            refused++;
            for (uint32_t i = 0; i < net.instances; i++) { /* ends, whatever it says */
                (void)tsshare_interest_paths(made, net.table, net.up, masks, 1, &i, &(uint32_t){0},
                                             &found);
            }
        } else {
            accepted += round % 2;
            check_masks(&net, first_host, masks);
            check_paths(&net, made, masks);
        }
        tsshare_net_free(made);
    }
    CHECK(refused > 1000 && accepted > 1000);
    tsshare_net_free(NULL);
}

static void refuse(const struct net *net) {
    errno = 0;
    CHECK(!make(net));
    CHECK_EQ(errno, EINVAL);
}

void test_interest_arguments(void) {
    uint64_t random = 5, masks[LINKS] = {0}, found;
    struct net good, bad;
    do {
        fill(&good, &random, false);
    } while (good.instances < 3 || good.rows < 3 || good.first[good.rows] < 3);
    struct tsshare_net *made = make(&good);
    CHECK(made);
    CHECK_EQ(tsshare_interest_paths(made, good.table, good.up, masks, 1, &good.instances,
                                    &(uint32_t){0}, &found),
             -EINVAL);
    tsshare_net_free(made);
    uint32_t *wrong[] = {&bad.root[0], &bad.first[0],  &bad.first[1],      &bad.out[0],
                         &bad.row[0],  &bad.column[0], &bad.access_out[0], &bad.access_in[0]};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bad = good;
        *wrong[i] = LINKS + 1;
        refuse(&bad);
    }
    bad = good;
    bad.head[0] = TSSHARE_NONE;
    refuse(&bad);
    bad.head[0] = bad.rows;
    refuse(&bad);
    bad = good;
    bad.columns = bad.rows + 1;
    refuse(&bad);
    bad.rows = 65537;
    refuse(&bad);
}
