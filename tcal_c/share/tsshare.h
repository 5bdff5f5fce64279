/* libtsshare: what agents compute with: how flows share the links of a network, and who has to know
 * of whose flows.
 *
 * No I/O, no clock, no threads, no global state. Arrays that are passed in are read during the call
 * only. Functions that can fail return 0 or a negative errno value: -EINVAL for numbers out of
 * range, -ENOMEM.
 *
 * runtime/agent/share/tsshare.py repeats these prototypes and a test holds them equal. Raise
 * TSSHARE_ABI whenever a caller of the old ones would go wrong.
 */
#ifndef TSSHARE_H
#define TSSHARE_H

#include <stddef.h>
#include <stdint.h>

#define TSSHARE_ABI 1

#define TSSHARE_API __attribute__((visibility("default")))

TSSHARE_API uint32_t tsshare_abi(void);

/* --- sharing ---------------------------------------------------------------------------------- */

#define TSSHARE_NONE UINT32_MAX      /* no link */
#define TSSHARE_UNLIMITED UINT64_MAX /* of a demand: as much as it can get; of a rate: no bound */
#define TSSHARE_LEAST_RTT_NS 50000u  /* a shorter round trip weighs as much as this one */

/* Weighted max-min fair shares by progressive filling: all flows rise from 0 in proportion to
 * 1/RTT; one stops when its demand is met or a link on its way is full.
 *
 * first, links      flow f passes links[first[f]] up to links[first[f + 1]]; flows + 1 entries
 * rtts_ns           per flow; below TSSHARE_LEAST_RTT_NS counts as that
 * demands_bps       per flow; TSSHARE_UNLIMITED = greedy
 * capacities_bps    per link; 0 = unlimited
 *
 * Results, rounded down to whole bits per second (what misses a whole one by less than 1/1000 is
 * that one):
 * allocations_bps   per flow; TSSHARE_UNLIMITED for a greedy one without a limited link
 * bottlenecks       per flow: the link that stopped it, the least of several; TSSHARE_NONE if it
 *                   has all it wants
 * entitlements_bps  per flow: what it may take at once if it wanted more: the least over its
 *                   links of what is left there with its own part, and, where the link is full,
 *                   the share of one that rises as high as any flow there; never more than the
 *                   link has
 * levels_bits       per link: 0 if it is not full, else how high flows rose there: rate times
 *                   round trip, in bits
 *
 * Error below 1 b/s up to 10^13 b/s and 10^5 flows a link, whatever the round trips. The same
 * input gives the same output. */
TSSHARE_API int32_t tsshare_solve(uint32_t flows, const uint32_t *first, const uint32_t *links,
                                  const uint64_t *rtts_ns, const uint64_t *demands_bps,
                                  uint32_t link_count, const uint64_t *capacities_bps,
                                  uint64_t *allocations_bps, uint32_t *bottlenecks,
                                  uint64_t *entitlements_bps, double *levels_bits);

/* --- interest --------------------------------------------------------------------------------- */

struct tsshare_net;

/* The shape of a network as docs/plan.md has it (routes); NULL with errno set if that cannot be.
 * TSSHARE_NONE stands for no row and no link.
 *
 * roots             column -> row
 * out_first, out    row r's links to core nodes are out[out_first[r]] up to out[out_first[r + 1]],
 *                   in the order in which the table numbers them; rows + 1 entries in out_first
 * heads             link -> the row that it leads to
 * instance_rows, instance_columns   instance -> where it hangs on the core
 * access_out, access_in             instance -> the link towards and from there */
TSSHARE_API struct tsshare_net *
tsshare_net_new(uint32_t rows, uint32_t columns, uint32_t links, uint32_t instances,
                const uint32_t *roots, const uint32_t *out_first, const uint32_t *out,
                const uint32_t *heads, const uint32_t *instance_rows,
                const uint32_t *instance_columns, const uint32_t *access_out,
                const uint32_t *access_in);

TSSHARE_API void tsshare_net_free(struct tsshare_net *net);

/* Which hosts have paths over which links: masks[link] gets bit h if there is a path over it from
 * an instance of host first_host + h to another instance; h is 0 to 63, other hosts are passed
 * over. 0 where the link is not limited.
 *
 * table     rows x columns cells
 * up, limited   per link; limited: its rate is finite, and it is up
 * hosts     instance -> its host
 *
 * -EINVAL when the table cannot be followed: it leads in a circle, over a link that is down or to
 * a row where it ends. The masks are then of no use. */
TSSHARE_API int32_t tsshare_interest(struct tsshare_net *net, const uint16_t *table,
                                     const uint8_t *up, const uint8_t *limited,
                                     const uint32_t *hosts, uint32_t first_host, uint64_t *masks);

/* For `count` pairs of instances the masks of all links of the path together, 0 where there is no
 * path. -EINVAL as above, and for an instance that is not there. */
TSSHARE_API int32_t tsshare_interest_paths(struct tsshare_net *net, const uint16_t *table,
                                           const uint8_t *up, const uint64_t *masks, uint32_t count,
                                           const uint32_t *srcs, const uint32_t *dsts,
                                           uint64_t *found);

#endif
