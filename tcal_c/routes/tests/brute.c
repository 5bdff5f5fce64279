/* Brute force: Bellman and Ford for distances, long decimals for losses. */
#include "brute.h"

#include <string.h>

#define PPB 1000000000u
#define AWAY ((wide)1 << 120)

uint32_t take_byte(struct bytes *bytes) {
    if (!bytes->size) {
        return 0;
    }
    bytes->size--;
    return *bytes->data++;
}

uint32_t take_below(struct bytes *bytes, uint32_t limit) {
    return (take_byte(bytes) << 8 | take_byte(bytes)) % limit;
}

uint64_t take_number(struct bytes *bytes) {
    uint32_t kind = take_byte(bytes);
    if (kind < 160) {
        return kind % 8;
    }
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number = number << 8 | take_byte(bytes);
    }
    return kind < 230 ? number % 10000000 : number >> kind % 32;
}

static uint32_t new_link(struct brute *net, uint32_t tail, uint32_t head) {
    net->tails[net->links] = tail;
    net->heads[net->links] = head;
    return net->links++;
}

static void draw_core(struct brute *net, struct bytes *bytes) {
    bool linked[MOST_ROWS][MOST_ROWS] = {{false}};
    for (uint32_t i = take_below(bytes, 60); i > 0; i--) {
        uint32_t a = take_below(bytes, net->rows);
        uint32_t b = take_below(bytes, net->rows);
        linked[a][b] = linked[b][a] = a != b;
    }
    for (uint32_t a = 0; a < net->rows; a++) {
        net->out_first[a] = net->links;
        for (uint32_t b = 0; b < net->rows; b++) {
            if (linked[a][b]) {
                new_link(net, a, b);
            }
        }
        net->out_first[a + 1] = net->links;
    }
    net->core_links = net->links;
}

/* The table numbers a row's links in another order than that of preference: backwards. */
static void number_links(struct brute *net) {
    for (uint32_t row = 0; row < net->rows; row++) {
        uint32_t first = net->out_first[row];
        uint32_t end = net->out_first[row + 1];
        for (uint32_t link = first; link < end; link++) {
            net->choices[link] = (uint16_t)(end - link);
            net->out[first + end - link - 1] = link;
        }
    }
}

/* A row that does not forward is an instance itself; others hang behind rows that do. */
static void draw_instances(struct brute *net, struct bytes *bytes) {
    uint32_t column[MOST_ROWS];
    memset(column, 0xff, sizeof column);
    for (uint32_t i = 0; i < net->instances; i++) {
        uint32_t row = take_below(bytes, net->rows);
        bool behind = net->forwards[row];
        if (column[row] == NONE) {
            column[row] = net->columns;
            net->roots[net->columns++] = row;
        }
        net->instance_rows[i] = row;
        net->instance_columns[i] = column[row];
        net->access_out[i] = behind ? new_link(net, NONE, row) : NONE;
        net->access_in[i] = behind ? new_link(net, row, NONE) : NONE;
    }
}

void brute_draw(struct brute *net, struct bytes *bytes) {
    memset(net, 0, sizeof *net);
    net->rows = 1 + take_below(bytes, MOST_ROWS);
    net->instances = take_below(bytes, MOST_INSTANCES + 1);
    net->metric = (uint32_t[]){1, 2, 0, 3}[take_byte(bytes) % 4];
    for (uint32_t row = 0; row < net->rows; row++) {
        net->forwards[row] = take_byte(bytes) % 8 != 0;
    }
    draw_core(net, bytes);
    number_links(net);
    draw_instances(net, bytes);
}

void brute_change(struct brute *net, struct bytes *bytes, uint32_t link) {
    net->up[link] = take_byte(bytes) % 4 != 0;
    net->delays_ns[link] = take_number(bytes);
    net->jitters_ns[link] = take_number(bytes);
    net->losses_ppb[link] = (uint32_t)(take_number(bytes) % (PPB + 1));
    if (take_byte(bytes) % 2) { /* losses that people write */
        net->losses_ppb[link] -= net->losses_ppb[link] % 1000000;
    }
    net->rates_bps[link] = take_number(bytes);
}

static bool usable(const struct brute *net, uint32_t link, uint32_t root) {
    uint32_t head = net->heads[link];
    for (uint32_t other = 0; net->metric == 2 && head != root && other < net->core_links; other++) {
        bool direct = net->tails[other] == net->tails[link] && net->heads[other] == root;
        if (direct && net->up[other]) {
            return false;
        }
    }
    return net->up[link] && (net->forwards[head] || head == root);
}

static wide length(const struct brute *net, uint32_t link) {
    wide delay_ns = net->delays_ns[link];
    return net->metric == 1 ? ((wide)1 << 90) + delay_ns : (delay_ns << 20) + 1;
}

static void relax(const struct brute *net, uint32_t root, wide *far) {
    for (uint32_t row = 0; row < net->rows; row++) {
        far[row] = row == root ? 0 : AWAY;
    }
    for (uint32_t round = 0; round < net->rows; round++) {
        for (uint32_t link = 0; link < net->core_links; link++) {
            wide reach = far[net->heads[link]] + length(net, link);
            if (usable(net, link, root) && reach < far[net->tails[link]]) {
                far[net->tails[link]] = reach;
            }
        }
    }
}

void brute_table(const struct brute *net, uint16_t *table) {
    wide far[MOST_ROWS];
    memset(table, 0, (size_t)net->rows * net->columns * sizeof *table);
    for (uint32_t column = 0; column < net->columns; column++) {
        uint32_t root = net->roots[column];
        relax(net, root, far);
        for (uint32_t link = net->core_links; link-- > 0;) { /* the preferred one is written last */
            uint32_t row = net->tails[link];
            if (row != root && far[row] < AWAY && usable(net, link, root) &&
                far[row] == far[net->heads[link]] + length(net, link)) {
                table[row * net->columns + column] = net->choices[link];
            }
        }
    }
}

uint32_t brute_equal(const struct brute *net, uint32_t row, uint32_t column, uint16_t *links) {
    wide far[MOST_ROWS];
    uint32_t root = net->roots[column];
    uint32_t count = 0;
    relax(net, root, far);
    for (uint32_t choice = 1; choice <= net->out_first[row + 1] - net->out_first[row]; choice++) {
        uint32_t link = net->out[net->out_first[row] + choice - 1];
        if (row != root && far[row] < AWAY && usable(net, link, root) &&
            far[row] == far[net->heads[link]] + length(net, link)) {
            links[count++] = (uint16_t)choice;
        }
    }
    return count;
}

/* 10^9 * (1 - product of (1 - loss)), half up, with the product as digits to the base 10^9 behind
 * the point: multiplying by a whole number of billionths moves them one place on. */
static uint64_t lost(const struct brute *net, const uint32_t *links, uint32_t count) {
    uint32_t kept[MOST_ROWS + 4] = {0};
    uint32_t places = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t factor = PPB - net->losses_ppb[links[i]];
        if (factor == PPB) {
            continue;
        }
        uint64_t carry = places ? 0 : factor;
        for (uint32_t place = places; place-- > 0;) {
            carry += kept[place] * factor;
            kept[place + 1] = (uint32_t)(carry % PPB);
            carry /= PPB;
        }
        kept[0] = (uint32_t)carry;
        places++;
    }
    if (!places) {
        return 0;
    }
    bool rest = false; /* anything behind the first two places */
    for (uint32_t place = 2; place < places; place++) {
        rest = rest || kept[place];
    }
    /* What is kept beyond whole billionths is missing from what is lost; up to a half rounds up. */
    uint64_t whole = PPB - kept[0];
    uint64_t behind = places > 1 ? (uint64_t)kept[1] + rest : 0;
    return behind > PPB / 2 ? whole - 1 : whole;
}

wide brute_root(wide square) {
    wide low = 0;
    wide high = (wide)1 << 64;
    while (low < high) { /* the least r with (r + 1/2)^2 > square, which is r^2 + r >= square */
        wide middle = low + (high - low) / 2;
        bool enough = middle >> 64 ? true : middle * middle + middle >= square;
        if (enough) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static void add_link(const struct brute *net, struct brute_path *path, uint32_t link) {
    wide square = (wide)net->jitters_ns[link] * net->jitters_ns[link];
    uint64_t rate = net->rates_bps[link];
    path->delay_ns += net->delays_ns[link];
    path->jitter_square += square;
    path->large = path->large || path->jitter_square < square;
    if (rate && (!path->rate_bps || rate < path->rate_bps)) {
        path->rate_bps = rate;
    }
}

/* The links from anchor to anchor; NONE if there is no way. */
static uint32_t follow(const struct brute *net, const uint16_t *table, uint32_t source,
                       uint32_t dest, uint32_t *links) {
    uint32_t column = net->instance_columns[dest];
    uint32_t row = net->instance_rows[source];
    uint32_t count = 0;
    while (row != net->roots[column]) {
        uint16_t choice = table[row * net->columns + column];
        if (!choice) {
            return NONE;
        }
        links[count] = net->out[net->out_first[row] + choice - 1u];
        row = net->heads[links[count++]];
    }
    return count;
}

/* From the last link to the first, so that the first of equal ones is taken. */
static uint32_t narrowest(const struct brute *net, const uint32_t *links, uint32_t count) {
    uint32_t best = links[count - 1];
    while (count--) {
        uint64_t rate = net->rates_bps[links[count]];
        uint64_t least = net->rates_bps[best];
        best = !least || (rate && rate <= least) ? links[count] : best;
    }
    return best;
}

static uint32_t unsteadiest(const struct brute *net, const uint32_t *links, uint32_t count) {
    uint32_t best = links[count - 1];
    while (count--) {
        best = net->jitters_ns[links[count]] >= net->jitters_ns[best] ? links[count] : best;
    }
    return best;
}

void brute_path(const struct brute *net, const uint16_t *table, uint32_t source, uint32_t dest,
                struct brute_path *path) {
    uint32_t links[MOST_ROWS + 2];
    memset(path, 0, sizeof *path);
    if (source == dest) {
        return;
    }
    uint32_t count = net->access_out[source] != NONE;
    links[0] = net->access_out[source];
    uint32_t between = follow(net, table, source, dest, links + count);
    if (between == NONE) {
        return;
    }
    count += between;
    if (net->access_in[dest] != NONE) {
        links[count++] = net->access_in[dest];
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!net->up[links[i]]) {
            return;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        add_link(net, path, links[i]);
        path->lossy += net->losses_ppb[links[i]] != 0;
    }
    path->hops = count;
    if (count) { /* none between two that are drawn for the same row */
        path->narrowest = narrowest(net, links, count);
        path->unsteadiest = unsteadiest(net, links, count);
    }
    path->loss_ppb = lost(net, links, count);
    path->large = path->large || path->delay_ns >> 64 || brute_root(path->jitter_square) >> 64;
}
