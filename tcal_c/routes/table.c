/* Keeps the table of next hops right: takes changes of links and carries each into the columns that
 * it touches. A column is not touched when no row uses a changed link and none could.
 *
 * The table is by row, as plans have it, distances are by column: looking for rows that use a link
 * reads along the table, repairing reads along a column.
 */
#include "cells.h"
#include "choose.h"
#include "groups.h"
#include "repair.h"
#include "tsroutes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct change {
    uint32_t link;
    uint32_t tail;
    uint32_t head;
    uint16_t choice;
    distance before; /* its length */
};

struct tsroutes_table {
    struct network net;
    struct repair repair;
    struct chooser chooser;
    struct cells cells;
    struct groups groups;
    uint32_t columns;
    bool fresh;     /* no link was ever up */
    bool whole;     /* the last apply began with that: every cell that is not 0 has changed */
    bool only_less; /* no length grew in this apply: nothing can be cut off */
    uint32_t *root; /* column -> row */
    distance *far;  /* column * rows + row */
    uint16_t *cell; /* row * columns + column; the caller's */
    struct change *change;
    uint32_t change_count;
    uint32_t *lost; /* rows that used a changed link, in the column at hand */
    uint32_t lost_count;
    uint32_t *gained; /* changes that are as good as what their row has, or better */
    uint32_t gained_count;
    size_t *first; /* for sorting cells */
};

uint32_t tsroutes_abi(void) {
    return TSROUTES_ABI;
}

static bool valid_roots(uint32_t rows, uint32_t columns, const uint32_t *roots) {
    for (uint32_t column = 0; column < columns; column++) {
        if (roots[column] >= rows) {
            return false;
        }
    }
    return (uint64_t)rows * columns <= UINT32_MAX;
}

static bool allocate(struct tsroutes_table *t) {
    size_t rows = t->net.rows;
    size_t links = (size_t)t->net.links + 1;
    t->root = malloc(((size_t)t->columns + 1) * sizeof *t->root);
    t->far = malloc((rows * t->columns + 1) * sizeof *t->far);
    t->change = malloc(links * sizeof *t->change);
    t->lost = malloc(links * sizeof *t->lost);
    t->gained = malloc(links * sizeof *t->gained);
    t->first = malloc((rows + 2) * sizeof *t->first);
    return t->root && t->far && t->change && t->lost && t->gained && t->first;
}

static int start(struct tsroutes_table *t, const struct network_plan *plan, const uint32_t *roots) {
    int error = network_init(&t->net, plan);
    error = error ? error : repair_init(&t->repair, &t->net);
    error = error ? error : chooser_init(&t->chooser, &t->net);
    error = error ? error : groups_init(&t->groups, plan->rows);
    if (error || !allocate(t)) {
        return error ? error : -ENOMEM;
    }
    for (uint32_t column = 0; column < t->columns; column++) {
        distance *far = t->far + (size_t)column * t->net.rows;
        for (uint32_t row = 0; row < t->net.rows; row++) {
            far[row] = FAR;
        }
        far[roots[column]] = 0;
        t->root[column] = roots[column];
    }
    return 0;
}

struct tsroutes_table *tsroutes_table_new(uint32_t rows, uint32_t columns, uint32_t links,
                                          const uint8_t *forwards, const uint32_t *roots,
                                          const uint32_t *tails, const uint32_t *heads,
                                          const uint16_t *choices, uint32_t metric,
                                          uint16_t *table) {
    struct network_plan plan = {rows, links, metric, forwards, tails, heads, choices};
    if (!valid_roots(rows, columns, roots)) {
        errno = EINVAL;
        return NULL;
    }
    struct tsroutes_table *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    t->columns = columns;
    t->cell = table;
    t->fresh = true;
    int error = start(t, &plan, roots);
    if (error) {
        tsroutes_table_free(t);
        errno = -error;
        return NULL;
    }
    return t;
}

void tsroutes_table_free(struct tsroutes_table *t) {
    if (!t) {
        return;
    }
    chooser_destroy(&t->chooser);
    repair_destroy(&t->repair);
    network_destroy(&t->net);
    cells_destroy(&t->cells);
    groups_destroy(&t->groups);
    free(t->root);
    free(t->far);
    free(t->change);
    free(t->lost);
    free(t->gained);
    free(t->first);
    free(t);
}

/* Notes what is new about the links; a link that is named twice is as named last. */
static void take(struct tsroutes_table *t, uint32_t count, const uint32_t *links,
                 const uint64_t *delays_ns, const uint8_t *up) {
    struct network *net = &t->net;
    t->change_count = 0;
    t->only_less = true;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t link = links[i];
        distance length = network_length(net, delays_ns[i], up[i] != 0);
        distance old = net->out[link].length;
        if (length == old) {
            continue;
        }
        t->only_less = t->only_less && length < old;
        network_set(net, link, length);
        t->change[t->change_count++] =
            (struct change){link, net->tail[link], net->out[link].row, net->choice[link], old};
    }
}

/* Nothing is known yet: only the links into the root can begin anything. */
static void begin_at_root(struct tsroutes_table *t, const struct column *column) {
    const struct network *net = &t->net;
    uint32_t root = column->root;
    if (!t->fresh) {
        repair_forget(&t->repair, column);
    }
    for (uint32_t i = net->in_first[root]; i < net->in_first[root + 1]; i++) {
        repair_offer(&t->repair, column, net->in[i].row, 0, net->in[i].length);
    }
}

/* A link to the destination itself counts before all others where METRIC_DIRECT holds: a row that
 * has one again may be farther away by it, and those behind it with it. Such a column begins anew;
 * a link leads to one destination only. */
static bool begins_anew(const struct tsroutes_table *t, const struct column *column) {
    bool anew = t->fresh;
    for (uint32_t i = 0; !anew && t->net.metric == METRIC_DIRECT && i < t->change_count; i++) {
        anew = t->change[i].head == column->root;
    }
    return anew;
}

/* Whether a row has used a changed link, in this column, which has not changed yet. */
static bool used(const struct tsroutes_table *t, const struct change *change, size_t cell,
                 const struct column *column) {
    if (t->net.metric != METRIC_EQUAL) {
        return t->cell[cell] == change->choice;
    }
    distance have = column->far[change->tail];
    return have < FAR && have == column->far[change->head] + change->before &&
           network_leads(&t->net, change->head, column->root);
}

/* Finds what the changes mean for this column. False: nothing. */
static bool touched(struct tsroutes_table *t, uint32_t number, const struct column *column) {
    t->lost_count = 0;
    t->gained_count = 0;
    for (uint32_t i = 0; i < t->change_count; i++) {
        const struct change *change = &t->change[i];
        size_t cell = (size_t)change->tail * t->columns + number;
        if (!t->only_less && used(t, change, cell, column)) {
            t->lost[t->lost_count++] = change->tail;
        }
        distance length = t->net.out[change->link].length;
        distance reach = network_reach(&t->net, column->far[change->head], length);
        if (reach < FAR && reach <= column->far[change->tail] &&
            network_leads(&t->net, change->head, column->root)) {
            t->gained[t->gained_count++] = i;
        }
    }
    return t->lost_count || t->gained_count;
}

static void repair(struct tsroutes_table *t, const struct column *column) {
    if (t->lost_count) {
        repair_cut(&t->repair, column, t->lost, t->lost_count);
    }
    for (uint32_t i = 0; i < t->gained_count; i++) {
        const struct change *change = &t->change[t->gained[i]];
        repair_offer(&t->repair, column, change->tail, column->far[change->head],
                     t->net.out[change->link].length);
        chooser_add(&t->chooser, change->tail);
    }
    for (uint32_t i = 0; i < t->lost_count; i++) {
        chooser_add(&t->chooser, t->lost[i]);
    }
}

/* Notes the cells whose links have to be looked at, unless all of them have. */
static int choose_later(struct tsroutes_table *t, uint32_t number) {
    for (uint32_t i = 0; i < t->chooser.count && !t->whole; i++) {
        if (cells_add(&t->cells, t->chooser.row[i] * t->columns + number)) {
            return -ENOMEM;
        }
    }
    return 0;
}

/* What stands in the table for all links on the shortest paths: 0, one of them, or a set, which is
 * beyond the row's links. -ENOMEM, -ERANGE. */
static int32_t equal_links(struct tsroutes_table *t, uint32_t cell) {
    uint16_t links[GROUP_MOST];
    uint32_t row = cell / t->columns;
    uint32_t number = cell % t->columns;
    struct column column = {t->far + (size_t)number * t->net.rows, t->root[number]};
    uint32_t count = choose_all(&t->net, &column, row, links);
    if (count < 2) {
        return count ? links[0] : 0;
    }
    uint32_t own = t->net.out_first[row + 1] - t->net.out_first[row];
    int32_t group = groups_number(&t->groups, row, links, count, UINT16_MAX - own);
    return group < 0 ? group : (int32_t)own + group;
}

/* Writes the links of the cells that were noted, in the order of the cells, which is that of new
 * sets; keeps those that have changed. */
static int choose_in_order(struct tsroutes_table *t) {
    size_t count = t->whole ? (size_t)t->net.rows * t->columns : t->cells.count;
    uint32_t *noted = t->whole ? NULL : malloc((count + 1) * sizeof *noted);
    int32_t value = !t->whole && !noted ? -ENOMEM : 0;
    if (noted) {
        cells_sorted(&t->cells, t->net.rows, t->columns, t->first, noted);
    }
    t->cells.count = 0;
    for (size_t i = 0; i < count && value >= 0; i++) {
        uint32_t cell = noted ? noted[i] : (uint32_t)i;
        value = equal_links(t, cell);
        if (value < 0 || value == t->cell[cell]) {
            continue;
        }
        t->cell[cell] = (uint16_t)value;
        if (noted) {
            t->cells.cell[t->cells.count] = cell;
        }
        t->cells.count++;
    }
    free(noted);
    return value < 0 ? value : 0;
}

/* Writes the new choices into the table and notes the cells, unless all of them are meant. */
static int choose_again(struct tsroutes_table *t, uint32_t number, const struct column *column) {
    for (uint32_t i = 0; i < t->chooser.count; i++) {
        uint32_t row = t->chooser.row[i];
        size_t cell = (size_t)row * t->columns + number;
        uint16_t choice = choose(&t->net, column, row);
        if (t->cell[cell] == choice) {
            continue;
        }
        t->cell[cell] = choice;
        if (t->whole) {
            t->cells.count++;
        } else if (cells_add(&t->cells, (uint32_t)cell)) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int update_column(struct tsroutes_table *t, uint32_t number) {
    struct column column = {t->far + (size_t)number * t->net.rows, t->root[number]};
    bool anew = begins_anew(t, &column);
    if (!anew && !touched(t, number, &column)) {
        return 0;
    }
    repair_begin(&t->repair);
    chooser_begin(&t->chooser);
    if (anew) {
        begin_at_root(t, &column);
    } else {
        repair(t, &column);
    }
    repair_settle(&t->repair, &column);
    if (anew) {
        chooser_add_all(&t->chooser);
    } else {
        chooser_add_moved(&t->chooser, &t->repair, &column);
        chooser_add_neighbours(&t->chooser, &t->repair, &column);
    }
    if (t->net.metric == METRIC_EQUAL) {
        return choose_later(t, number);
    }
    return choose_again(t, number, &column);
}

int32_t tsroutes_table_apply(struct tsroutes_table *t, uint32_t count, const uint32_t *links,
                             const uint64_t *delays_ns, const uint8_t *up) {
    for (uint32_t i = 0; i < count; i++) {
        if (links[i] >= t->net.links || count > t->net.links) {
            return -EINVAL;
        }
    }
    t->cells.count = 0;
    t->whole = t->fresh;
    take(t, count, links, delays_ns, up);
    if (!t->change_count) {
        return 0;
    }
    for (uint32_t column = 0; column < t->columns; column++) {
        int error = update_column(t, column);
        if (error) {
            return error;
        }
    }
    t->fresh = false;
    return t->net.metric == METRIC_EQUAL ? choose_in_order(t) : 0;
}

uint64_t tsroutes_table_changed(const struct tsroutes_table *t) {
    return t->cells.count;
}

uint64_t tsroutes_table_group_numbers(const struct tsroutes_table *t) {
    return t->groups.count;
}

void tsroutes_table_groups(const struct tsroutes_table *t, uint64_t first, uint16_t *numbers) {
    if (t->groups.count > first) {
        memcpy(numbers, t->groups.number + first, (t->groups.count - first) * sizeof *numbers);
    }
}

static void cells_in_use(const struct tsroutes_table *t, uint32_t *cells) {
    size_t all = (size_t)t->net.rows * t->columns;
    for (size_t cell = 0; cell < all; cell++) {
        if (t->cell[cell]) {
            *cells++ = (uint32_t)cell;
        }
    }
}

void tsroutes_table_changes(const struct tsroutes_table *t, uint32_t *cells, uint16_t *values) {
    if (t->whole) {
        cells_in_use(t, cells);
    } else {
        cells_sorted(&t->cells, t->net.rows, t->columns, t->first, cells);
    }
    for (size_t i = 0; i < t->cells.count; i++) {
        values[i] = t->cell[cells[i]];
    }
}

void tsroutes_put(uint16_t *table, uint64_t count, const uint32_t *cells, const uint16_t *values) {
    for (uint64_t i = 0; i < count; i++) {
        table[cells[i]] = values[i];
    }
}
