/* Shares of flows: checks the question, fills the network, and rounds the answer. */
#include "tsshare.h"

#include "solve_fill.h"

#include <errno.h>
#include <math.h>

#define ROUNDING 0x1p-10L            /* b/s that an exact result may miss a whole number by */
#define SAME_LEVEL (1.0L - 0x1p-50L) /* levels closer than that are one */

uint32_t tsshare_abi(void) {
    return TSSHARE_ABI;
}

static bool valid(const struct problem *problem) {
    if (problem->flows == UINT32_MAX || problem->link_count == UINT32_MAX || problem->first[0]) {
        return false;
    }
    for (uint32_t flow = 0; flow < problem->flows; flow++) {
        if (problem->first[flow] > problem->first[flow + 1]) {
            return false;
        }
    }
    for (uint32_t use = 0; use < problem->first[problem->flows]; use++) {
        if (problem->links[use] >= problem->link_count) {
            return false;
        }
    }
    return true;
}

static uint64_t round_down(long double rate_bps) {
    long double raised = rate_bps + ROUNDING;
    return raised >= 0x1p64L ? TSSHARE_UNLIMITED : (uint64_t)raised;
}

static uint64_t allocation(const struct filling *fill, const struct problem *problem,
                           uint32_t flow) {
    if (fill->level[flow] < 0) {
        return TSSHARE_UNLIMITED; /* greedy, and nothing has stopped it */
    }
    uint64_t rate = round_down(fill->rate[flow]);
    return rate < problem->demands_bps[flow] ? rate : problem->demands_bps[flow];
}

static uint32_t bottleneck(const struct filling *fill, const struct problem *problem, uint32_t flow,
                           uint64_t allocated_bps) {
    uint32_t found = TSSHARE_NONE;
    if (allocated_bps == problem->demands_bps[flow]) {
        return found;
    }
    for (uint32_t use = problem->first[flow]; use < problem->first[flow + 1]; use++) {
        uint32_t link = problem->links[use];
        if (fill->height[link] > 0 && fill->level[flow] >= fill->height[link] * SAME_LEVEL &&
            link < found) {
            found = link;
        }
    }
    return found;
}

static uint64_t entitlement(const struct filling *fill, const struct problem *problem,
                            uint32_t flow) {
    long double least = INFINITY;
    for (uint32_t use = problem->first[flow]; use < problem->first[flow + 1]; use++) {
        uint32_t link = problem->links[use];
        if (problem->capacities_bps[link]) {
            long double share = fill->height[link] / fill_rtt(problem, flow);
            share = larger(share, fill->left[link] + fill->rate[flow]);
            share = smaller(share, (long double)problem->capacities_bps[link]);
            least = smaller(least, share);
        }
    }
    return round_down(least);
}

int32_t tsshare_solve(uint32_t flows, const uint32_t *first, const uint32_t *links,
                      const uint64_t *rtts_ns, const uint64_t *demands_bps, uint32_t link_count,
                      const uint64_t *capacities_bps, uint64_t *allocations_bps,
                      uint32_t *bottlenecks, uint64_t *entitlements_bps, double *levels_bits) {
    struct problem problem = {flows,       first,      links,         rtts_ns,
                              demands_bps, link_count, capacities_bps};
    struct filling fill = {0};
    if (!valid(&problem)) {
        return -EINVAL;
    }
    int failed = fill_init(&fill, &problem);
    if (!failed) {
        fill_run(&fill, &problem);
        for (uint32_t flow = 0; flow < flows; flow++) {
            allocations_bps[flow] = allocation(&fill, &problem, flow);
            bottlenecks[flow] = bottleneck(&fill, &problem, flow, allocations_bps[flow]);
            entitlements_bps[flow] = entitlement(&fill, &problem, flow);
        }
        for (uint32_t link = 0; link < link_count; link++) {
            levels_bits[link] = (double)(fill.height[link] / 1e9L);
        }
    }
    fill_destroy(&fill);
    return failed;
}
