/* Problems drawn from bytes, and proof that an answer is the one: shares are max-min fair exactly
 * if no link carries more than it can, and every flow has what it wants or passes a full link on
 * which nobody has risen higher. */
#ifndef SHARE_TESTS_SHARES_H
#define SHARE_TESTS_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define MOST_FLOWS 64
#define MOST_LINKS 32
#define MOST_USES (MOST_FLOWS * 8)
#define MOST_EXACT_BPS ((uint64_t)1 << 44) /* above that the library promises nothing */

struct shares {
    uint32_t flows;
    uint32_t links;
    uint32_t first[MOST_FLOWS + 1];
    uint32_t used[MOST_USES];
    uint64_t rtts_ns[MOST_FLOWS];
    uint64_t demands_bps[MOST_FLOWS];
    uint64_t capacities_bps[MOST_LINKS];
    uint64_t allocations_bps[MOST_FLOWS];
    uint32_t bottlenecks[MOST_FLOWS];
    uint64_t entitlements_bps[MOST_FLOWS];
    double levels_bits[MOST_LINKS];
};

/* A problem; any bytes make one. */
void shares_draw(struct shares *shares, const uint8_t *data, size_t size);
int32_t shares_solve(struct shares *shares);
/* Ends the program if the answer is not right. */
void shares_prove(const struct shares *shares);

#endif
