/* The same answers the slow and obvious way, and networks to ask about, drawn from bytes. Shares no
 * code with the library. */
#ifndef ROUTES_TESTS_BRUTE_H
#define ROUTES_TESTS_BRUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_ROWS 20
#define MOST_LINKS 160
#define MOST_INSTANCES 12
#define NONE UINT32_MAX

__extension__ typedef unsigned __int128 wide;

/* Where inputs come from; zeros when the bytes are used up. */
struct bytes {
    const uint8_t *data;
    size_t size;
};

uint32_t take_byte(struct bytes *bytes);
/* 0 .. limit-1 */
uint32_t take_below(struct bytes *bytes, uint32_t limit);
/* Any magnitude, with small and very large numbers common. */
uint64_t take_number(struct bytes *bytes);

/* A network. Core links come first, by tail; then two access links for each instance behind a
 * bridge. Rows are in the order of names: next hops with a lower row are preferred. */
struct brute {
    uint32_t rows;
    uint32_t columns;
    uint32_t core_links;
    uint32_t links;
    uint32_t instances;
    uint32_t metric; /* as in tsroutes.h */
    uint8_t forwards[MOST_ROWS];
    uint32_t roots[MOST_ROWS];
    uint32_t tails[MOST_LINKS];
    uint32_t heads[MOST_LINKS];
    uint16_t choices[MOST_LINKS];
    uint32_t out_first[MOST_ROWS + 1];
    uint32_t out[MOST_LINKS];
    uint32_t instance_rows[MOST_INSTANCES];
    uint32_t instance_columns[MOST_INSTANCES];
    uint32_t access_out[MOST_INSTANCES];
    uint32_t access_in[MOST_INSTANCES];
    uint8_t up[MOST_LINKS];
    uint64_t delays_ns[MOST_LINKS];
    uint64_t jitters_ns[MOST_LINKS];
    uint32_t losses_ppb[MOST_LINKS];
    uint64_t rates_bps[MOST_LINKS];
};

/* All links are down. */
void brute_draw(struct brute *net, struct bytes *bytes);

/* Draws a new state for a link. */
void brute_change(struct brute *net, struct bytes *bytes, uint32_t link);

/* Every cell, by relaxing every link until nothing changes. */
void brute_table(const struct brute *net, uint16_t *table);

/* All links of a row that lie on shortest paths, as `choices` has them, ascending; how many. */
uint32_t brute_equal(const struct brute *net, uint32_t row, uint32_t column, uint16_t *links);

/* One path along a table that is right. */
struct brute_path {
    wide delay_ns;
    wide jitter_square;
    bool large; /* a sum does not fit in what it has here or in 64 bits */
    uint64_t loss_ppb;
    uint64_t rate_bps;  /* 0 = unlimited */
    uint32_t hops;      /* 0 = none */
    uint32_t lossy;     /* links that lose anything */
    uint32_t narrowest; /* the first link of the least rate */
    uint32_t unsteadiest;
};

void brute_path(const struct brute *net, const uint16_t *table, uint32_t source, uint32_t dest,
                struct brute_path *path);

/* floor(sqrt(square) + 1/2), by bisection; 2^64 is possible. */
wide brute_root(wide square);

/* Draws a network and changes of it, and compares all that the library says with the above. */
void compare_with_brute_force(const uint8_t *data, size_t size);

#endif
