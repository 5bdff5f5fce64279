/* libtsroutes: next hops between the core nodes of a network, kept right while links change, and
 * the composed properties of its paths. What a route is stands in docs/plan.md (routes, composing a
 * path).
 *
 * No I/O, no clock, no threads, no global state: an object belongs to one thread at a time. Arrays
 * that are passed in are read during the call only, the table excepted. Functions that can fail
 * return 0 or a negative errno value: -EINVAL for numbers out of range, -ENOMEM.
 *
 * compiler/plan/routes/tsroutes.py repeats these prototypes, a test holds them equal. Raise
 * TSROUTES_ABI whenever a caller of the old ones would go wrong.
 */
#ifndef TSROUTES_H
#define TSROUTES_H

#include <stddef.h>
#include <stdint.h>

#define TSROUTES_ABI 4

#define TSROUTES_API __attribute__((visibility("default")))

TSROUTES_API uint32_t tsroutes_abi(void);

/* --- routes ----------------------------------------------------------------------------------- */

struct tsroutes_table;

/* Routes of a network whose links are all down; NULL with errno set if that cannot be.
 *
 * rows      core nodes; forwards[row] tells whether paths may pass through it
 * columns   destinations; roots[column] is the row of each
 * links     core links by first row, then in the order in which a row prefers next hops; each from
 *           tails[] to heads[], written as choices[] (from 1) in the table
 * metric    which path is the shortest. 0: of least delay, then of fewest links; 1: of fewest
 * links, then of least delay; 2: the link from one to the other where it is up, else as 0; 3: as 0,
 *           and all links on such paths are taken, not the first alone
 * table     rows x columns cells, zeroed; the caller's, used until tsroutes_table_free() */
TSROUTES_API struct tsroutes_table *
tsroutes_table_new(uint32_t rows, uint32_t columns, uint32_t links, const uint8_t *forwards,
                   const uint32_t *roots, const uint32_t *tails, const uint32_t *heads,
                   const uint16_t *choices, uint32_t metric, uint16_t *table);

TSROUTES_API void tsroutes_table_free(struct tsroutes_table *table);

/* Takes the new states of `count` links, all at once, and makes the table right. After -ENOMEM it
 * is not, and can only be freed; after -EINVAL nothing has happened. With metric 3 also -ERANGE: a
 * row has more sets of links than fit in a cell; then as after -ENOMEM. */
TSROUTES_API int32_t tsroutes_table_apply(struct tsroutes_table *table, uint32_t count,
                                          const uint32_t *links, const uint64_t *delays_ns,
                                          const uint8_t *up);

/* How many cells the last apply has changed, and which: ascending, with their values. */
TSROUTES_API uint64_t tsroutes_table_changed(const struct tsroutes_table *table);
TSROUTES_API void tsroutes_table_changes(const struct tsroutes_table *table, uint32_t *cells,
                                         uint16_t *values);

/* Writes such changes into another table, which has all these cells. */
TSROUTES_API void tsroutes_put(uint16_t *table, uint64_t count, const uint32_t *cells,
                               const uint16_t *values);

/* With metric 3 a value above the number of a row's links stands for a set of them: the first above
 * it for the row's first set. Sets are told in the order in which they were first used (by apply,
 * then by cell), each once: its row, how many links it has (2 to 64), and what stands in the table
 * for each of them alone, ascending. How many numbers that is so far, and those from `first` on. */
TSROUTES_API uint64_t tsroutes_table_group_numbers(const struct tsroutes_table *table);
TSROUTES_API void tsroutes_table_groups(const struct tsroutes_table *table, uint64_t first,
                                        uint16_t *numbers);

/* --- paths ------------------------------------------------------------------------------------ */

/* In hops[]: there is a way, but its figures have to be found with larger integers. */
#define TSROUTES_UNSURE UINT32_MAX

struct tsroutes_paths;

/* For composing paths between instances; NULL with errno set if that cannot be. UINT32_MAX stands
 * for no row and no link.
 *
 * roots             column -> row
 * out_first, out    row r's links to core nodes are out[out_first[r]] up to out[out_first[r + 1]],
 *                   in the order in which the table numbers them; rows + 1 entries in out_first
 * heads             link -> the row that it leads to
 * instance_rows, instance_columns   instance -> where it hangs on the core
 * access_out, access_in             instance -> the link towards and from there */
TSROUTES_API struct tsroutes_paths *
tsroutes_paths_new(uint32_t rows, uint32_t columns, uint32_t links, uint32_t instances,
                   const uint32_t *roots, const uint32_t *out_first, const uint32_t *out,
                   const uint32_t *heads, const uint32_t *instance_rows,
                   const uint32_t *instance_columns, const uint32_t *access_out,
                   const uint32_t *access_in);

TSROUTES_API void tsroutes_paths_free(struct tsroutes_paths *paths);

/* The states of all links; rate 0 means unlimited. What was composed before is not changed by it.
 */
TSROUTES_API int32_t tsroutes_paths_set(struct tsroutes_paths *paths, const uint8_t *up,
                                        const uint64_t *delays_ns, const uint64_t *jitters_ns,
                                        const uint32_t *losses_ppb, const uint64_t *rates_bps);

/* Adds up the ways from these rows to these columns, along a table of rows x columns cells. -EINVAL
 * also when the table cannot be followed there: it leads in a circle or over a link that is down.
 * Takes 64 bytes for each row and column; what was composed before is gone. */
TSROUTES_API int32_t tsroutes_paths_compose(struct tsroutes_paths *paths, const uint16_t *table,
                                            uint32_t row_count, const uint32_t *rows,
                                            uint32_t column_count, const uint32_t *columns);

/* The figures from one instance to others whose row and columns were composed. hops[i] is the
 * number of links, 0 if there is no way (or dests[i] is the source), or TSROUTES_UNSURE; the
 * figures are then 0. Returns how many are unsure. */
TSROUTES_API int32_t tsroutes_paths_row(struct tsroutes_paths *paths, uint32_t source,
                                        uint32_t count, const uint32_t *dests, uint64_t *delays_ns,
                                        uint64_t *jitters_ns, uint64_t *losses_ppb,
                                        uint64_t *rates_bps, uint32_t *hops);

/* Of the ways from one instance to others along a table: the first link of the least rate, and the
 * first of the greatest jitter; UINT32_MAX where the table has no way (or dests[i] is the source).
 * -EINVAL also when the table cannot be followed. Whether access links are up is not looked at. */
TSROUTES_API int32_t tsroutes_paths_deciding(const struct tsroutes_paths *paths,
                                             const uint16_t *table, uint32_t source, uint32_t count,
                                             const uint32_t *dests, uint32_t *narrowest,
                                             uint32_t *unsteadiest);

#endif
