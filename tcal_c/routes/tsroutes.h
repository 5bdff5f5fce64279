/* libtsroutes: next hops between the core nodes of a network, kept right while links change, and
 * the composed properties of its paths. What a route is stands in docs/plan.md (routes, composing a
 * path).
 *
 * No I/O, no clock, no threads, no global state: an object belongs to one thread at a time. Arrays
 * that are passed in are read during the call only, the table excepted. Functions that can fail
 * return 0 or a negative errno value: -EINVAL for numbers out of range, -ENOMEM.
 *
 * compiler/plan/native.py repeats these prototypes and a test holds them equal. Raise TSROUTES_ABI
 * whenever a caller of the old ones would go wrong.
 */
#ifndef TSROUTES_H
#define TSROUTES_H

#include <stddef.h>
#include <stdint.h>

#define TSROUTES_ABI 1

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
 * by_hops   not 0: a path's length is its number of links, whatever their delays
 * table     rows x columns cells, zeroed; the caller's, used until tsroutes_table_free() */
TSROUTES_API struct tsroutes_table *
tsroutes_table_new(uint32_t rows, uint32_t columns, uint32_t links, const uint8_t *forwards,
                   const uint32_t *roots, const uint32_t *tails, const uint32_t *heads,
                   const uint16_t *choices, uint32_t by_hops, uint16_t *table);

TSROUTES_API void tsroutes_table_free(struct tsroutes_table *table);

/* Takes the new states of `count` links, all at once, and makes the table right. After -ENOMEM it
 * is not, and can only be freed; after -EINVAL nothing has happened. */
TSROUTES_API int32_t tsroutes_table_apply(struct tsroutes_table *table, uint32_t count,
                                          const uint32_t *links, const uint64_t *delays_ns,
                                          const uint8_t *up);

/* How many cells the last apply has changed, and which: ascending, with their values. */
TSROUTES_API uint64_t tsroutes_table_changed(const struct tsroutes_table *table);
TSROUTES_API void tsroutes_table_changes(const struct tsroutes_table *table, uint32_t *cells,
                                         uint16_t *values);

#endif
