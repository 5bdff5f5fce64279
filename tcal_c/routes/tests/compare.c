/* The library against brute force, over a network and batches of changes drawn from bytes. */
#include "brute.h"
#include "common/tests/check.h"

#include "routes/tsroutes.h"

#define MOST_CELLS (MOST_ROWS * MOST_ROWS)

struct both {
    struct brute net;
    uint16_t table[MOST_CELLS];
    struct tsroutes_table *routes;
    struct tsroutes_paths *paths;
    uint32_t sets; /* that were used so far */
};

#define EQUAL 3u /* the metric */
#define MOST_NUMBERS (1u << 20)

/* The links that a cell stands for; with metric 3 these may be several. `number` becomes which set
 * of all it is, from 1. */
static uint32_t cell_links(const struct both *both, uint32_t cell, uint16_t *links,
                           uint32_t *number) {
    static uint16_t numbers[MOST_NUMBERS];
    uint32_t row = cell / both->net.columns;
    uint32_t own = both->net.out_first[row + 1] - both->net.out_first[row];
    uint32_t wanted = both->table[cell];
    *number = 0;
    links[0] = (uint16_t)wanted;
    if (wanted <= own) {
        return wanted ? 1 : 0;
    }
    uint64_t count = tsroutes_table_group_numbers(both->routes);
    CHECK(count <= MOST_NUMBERS);
    tsroutes_table_groups(both->routes, 0, numbers);
    for (uint64_t at = 0; at < count; at += 2u + numbers[at + 1]) {
        ++*number;
        if (numbers[at] == row && --wanted == own) {
            memcpy(links, numbers + at + 2, numbers[at + 1] * sizeof *links);
            return numbers[at + 1];
        }
    }
    CHECK(false);
    return 0;
}

/* Sets come in the order of their first use. */
static void check_first_use(struct both *both, uint32_t cell) {
    uint16_t links[MOST_ROWS];
    uint32_t number;
    cell_links(both, cell, links, &number);
    CHECK(number <= both->sets + 1);
    both->sets += number > both->sets;
}

/* What changed is told exactly: ascending, with the new values. */
static void check_changes(struct both *both, const uint16_t *before) {
    uint32_t cells[MOST_CELLS];
    uint16_t values[MOST_CELLS];
    uint64_t count = tsroutes_table_changed(both->routes);
    uint64_t at = 0;
    CHECK(count <= both->net.rows * both->net.columns);
    tsroutes_table_changes(both->routes, cells, values);
    for (uint32_t cell = 0; cell < both->net.rows * both->net.columns; cell++) {
        if (before[cell] != both->table[cell]) {
            CHECK(at < count);
            CHECK_EQ(cells[at], cell);
            CHECK_EQ(values[at++], both->table[cell]);
            check_first_use(both, cell);
        }
    }
    CHECK_EQ(at, count);
}

static void check_sets(const struct both *both) {
    for (uint32_t cell = 0; cell < both->net.rows * both->net.columns; cell++) {
        uint16_t wanted[MOST_ROWS];
        uint16_t links[MOST_ROWS];
        uint32_t number;
        uint32_t count =
            brute_equal(&both->net, cell / both->net.columns, cell % both->net.columns, wanted);
        CHECK_EQ(cell_links(both, cell, links, &number), count);
        CHECK_EQ(number != 0, count > 1);
        CHECK(memcmp(links, wanted, count * sizeof *links) == 0);
    }
}

static void check_table(const struct both *both) {
    uint16_t wanted[MOST_CELLS];
    if (both->net.metric == EQUAL) {
        check_sets(both);
        return;
    }
    brute_table(&both->net, wanted);
    for (uint32_t cell = 0; cell < both->net.rows * both->net.columns; cell++) {
        CHECK_EQ(both->table[cell], wanted[cell]);
    }
}

/* Changes some links at once, some of them twice. */
static void change(struct both *both, struct bytes *bytes) {
    uint32_t links[2 * MOST_LINKS];
    uint64_t delays[2 * MOST_LINKS];
    uint8_t up[2 * MOST_LINKS];
    uint16_t before[MOST_CELLS];
    uint32_t count = 0;
    uint32_t wanted = take_byte(bytes) % 4 ? 1 + take_below(bytes, 4) : both->net.links;
    memcpy(before, both->table, sizeof before);
    for (uint32_t i = 0; i < wanted && both->net.links; i++) {
        uint32_t link = take_below(bytes, both->net.links);
        brute_change(&both->net, bytes, link);
        if (link < both->net.core_links && count < both->net.core_links) {
            links[count] = link;
            delays[count] = both->net.delays_ns[link];
            up[count++] = both->net.up[link];
        } else if (link < both->net.core_links) {
            both->net.up[link] = 0; /* too many for one call */
            CHECK_EQ(tsroutes_table_apply(both->routes, count, links, delays, up), 0);
            check_changes(both, before);
            memcpy(before, both->table, sizeof before);
            count = 0;
            links[count] = link;
            up[count++] = 0;
        }
    }
    CHECK_EQ(tsroutes_table_apply(both->routes, count, links, delays, up), 0);
    check_changes(both, before);
    check_table(both);
}

struct row {
    uint64_t delays[MOST_INSTANCES];
    uint64_t jitters[MOST_INSTANCES];
    uint64_t losses[MOST_INSTANCES];
    uint64_t rates[MOST_INSTANCES];
    uint32_t hops[MOST_INSTANCES];
};

/* Returns whether the library left this one to its caller. */
static int check_path(const struct brute_path *path, const struct row *row, uint32_t dest) {
    if (row->hops[dest] == TSROUTES_UNSURE) {
        CHECK(path->hops && (path->large || path->lossy > 4));
        CHECK_EQ(row->delays[dest] | row->jitters[dest] | row->losses[dest] | row->rates[dest], 0);
        return 1;
    }
    CHECK_EQ(row->hops[dest], path->hops);
    CHECK(!path->large);
    CHECK_EQ(row->delays[dest], path->delay_ns);
    CHECK_EQ(row->jitters[dest], brute_root(path->jitter_square));
    CHECK_EQ(row->losses[dest], path->loss_ppb);
    CHECK_EQ(row->rates[dest], path->rate_bps);
    return 0;
}

static void check_deciding(const struct both *both, uint32_t source, const uint32_t *dests) {
    uint32_t narrowest[MOST_INSTANCES];
    uint32_t unsteadiest[MOST_INSTANCES];
    CHECK_EQ(tsroutes_paths_deciding(both->paths, both->table, source, both->net.instances, dests,
                                     narrowest, unsteadiest),
             0);
    for (uint32_t dest = 0; dest < both->net.instances; dest++) {
        struct brute_path path;
        brute_path(&both->net, both->table, source, dest, &path);
        if (path.hops) {
            CHECK_EQ(narrowest[dest], path.narrowest);
            CHECK_EQ(unsteadiest[dest], path.unsteadiest);
        }
    }
}

static void check_paths(const struct both *both) {
    const struct brute *net = &both->net;
    uint32_t numbers[MOST_ROWS];
    struct row row;
    for (uint32_t i = 0; i < MOST_ROWS; i++) {
        numbers[i] = i;
    }
    CHECK_EQ(tsroutes_paths_set(both->paths, net->up, net->delays_ns, net->jitters_ns,
                                net->losses_ppb, net->rates_bps),
             0);
    CHECK_EQ(
        tsroutes_paths_compose(both->paths, both->table, net->rows, numbers, net->columns, numbers),
        0);
    for (uint32_t source = 0; source < net->instances; source++) {
        int unsure = 0;
        int told = tsroutes_paths_row(both->paths, source, net->instances, numbers, row.delays,
                                      row.jitters, row.losses, row.rates, row.hops);
        for (uint32_t dest = 0; dest < net->instances; dest++) {
            struct brute_path path;
            brute_path(net, both->table, source, dest, &path);
            unsure += check_path(&path, &row, dest);
        }
        CHECK_EQ(told, unsure);
        check_deciding(both, source, numbers);
    }
}

void compare_with_brute_force(const uint8_t *data, size_t size) {
    struct bytes bytes = {data, size};
    static struct both both;
    struct brute *net = &both.net;
    memset(&both, 0, sizeof both);
    brute_draw(net, &bytes);
    both.routes =
        tsroutes_table_new(net->rows, net->columns, net->core_links, net->forwards, net->roots,
                           net->tails, net->heads, net->choices, net->metric, both.table);
    both.paths = tsroutes_paths_new(net->rows, net->columns, net->links, net->instances, net->roots,
                                    net->out_first, net->out, net->heads, net->instance_rows,
                                    net->instance_columns, net->access_out, net->access_in);
    CHECK(both.routes && both.paths);
    do {
        change(&both, &bytes);
        if (net->metric != EQUAL) { /* the library composes what has one path */
            check_paths(&both);
        }
    } while (bytes.size);
    CHECK(net->metric == EQUAL || !tsroutes_table_group_numbers(both.routes));
    tsroutes_table_free(both.routes);
    tsroutes_paths_free(both.paths);
}
