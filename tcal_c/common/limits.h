/* Limits, units and small helpers that every datapath shares. No behaviour lives here. */
#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODE_LIMIT 65535u /* nodes are 0 .. NODE_LIMIT-1 */
#define PORT_LIMIT 65535u /* ports are 0 .. PORT_LIMIT-1 */
#define NECK_LIMIT 65535u
#define NECK_NAME_LIMIT 68u /* of a bottleneck, and which of its directions */
#define LINK_LIMIT 1048575u /* links are 0 .. LINK_LIMIT-1 */
#define LINK_NONE UINT32_MAX
#define SPREAD_LIMIT 1048576u   /* groups of links are 0 .. SPREAD_LIMIT-1 */
#define SPREAD_MOST 64u         /* links of a group */
#define SPREAD_FIRST (1u << 31) /* in a table of links: the first group */
#define PORT_NONE UINT32_MAX
#define NODE_NONE UINT32_MAX

#define NS_PER_S 1000000000ull
#define PPB 1000000000u
#define TIME_NEVER UINT64_MAX

#define RATE_LIMIT_BPS 10000000000000ull /* 10 Tb/s */
#define QUEUE_LIMIT_BYTES (1ull << 30)
#define QUEUE_LIMIT_PACKETS 715827u /* of 1,500 bytes, within that */
/* A path may cross every node, with a day on each link; jitters add up as their squares do. A delay
 * and JITTER_DEVIATIONS jitters, more than any distribution deviates, fit into 63 bits. */
#define DAY_NS (86400ull * NS_PER_S)
#define DELAY_LIMIT_NS (65535ull * DAY_NS)
#define JITTER_LIMIT_NS (256ull * DAY_NS)
#define JITTER_DEVIATIONS 128
_Static_assert(DELAY_LIMIT_NS + JITTER_DEVIATIONS * JITTER_LIMIT_NS < INT64_MAX,
               "a delay is a signed number of ns");

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

static inline u128 max_u128(u128 a, u128 b) {
    return a > b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

#endif
