/* Known shares, shares of networks at random, and arguments that cannot be. */
#include "common/tests/check.h"
#include "shares.h"
#include "suites.h"
#include "share/tsshare.h"

#include <errno.h>

#define MBIT ((uint64_t)1000000)
#define MS ((uint64_t)1000000)

/* One sender, two destinations, round trips of 20 and 100 ms, one link of 100 Mb/s. */
static void test_two_destinations(void) {
    struct shares s = {.flows = 2,
                       .links = 1,
                       .first = {0, 1, 2},
                       .rtts_ns = {20 * MS, 100 * MS},
                       .demands_bps = {TSSHARE_UNLIMITED, TSSHARE_UNLIMITED},
                       .capacities_bps = {100 * MBIT}};
    CHECK_EQ(shares_solve(&s), 0);
    CHECK_EQ(s.allocations_bps[0], 83333333);
    CHECK_EQ(s.allocations_bps[1], 16666666);
    CHECK_EQ(s.entitlements_bps[1], 16666666);
    CHECK_EQ(s.bottlenecks[0] | s.bottlenecks[1], 0);
}

/* The heaviest flows stop early; what is left to the lightest is exact all the same: their weights
 * are a 10^9th of those that were taken off the link. */
static void test_light_flows_after_heavy_ones(void) {
    struct shares s = {.flows = 4,
                       .links = 2,
                       .first = {0, 2, 4, 5, 6},
                       .used = {0, 1, 0, 1, 0, 0},
                       .rtts_ns = {0, 0, 50000000000000, 50000000000000},
                       .capacities_bps = {10000000000000, 2}};
    for (uint32_t flow = 0; flow < s.flows; flow++) {
        s.demands_bps[flow] = TSSHARE_UNLIMITED;
    }
    CHECK_EQ(shares_solve(&s), 0);
    CHECK_EQ(s.allocations_bps[0], 1);
    CHECK_EQ(s.allocations_bps[2], 4999999999999);
    CHECK_EQ(s.allocations_bps[3], 4999999999999);
}

static void test_nothing_to_share(void) {
    struct shares s = {.links = 1, .capacities_bps = {5}};
    CHECK_EQ(shares_solve(&s), 0);
    CHECK(!(s.levels_bits[0] > 0));
}

void test_solve(void) {
    static struct shares shares;
    uint64_t random = 2026;
    test_two_destinations();
    test_light_flows_after_heavy_ones();
    test_nothing_to_share();
    for (int i = 0; i < 4000; i++) {
        uint8_t data[1500];
        for (size_t at = 0; at < sizeof data; at++) {
            data[at] = (uint8_t)(next_random(&random) >> 32);
        }
        shares_draw(&shares, data, sizeof data);
        CHECK_EQ(shares_solve(&shares), 0);
        shares_prove(&shares);
    }
}

void test_solve_arguments(void) {
    struct shares s = {.flows = 2, .links = 2, .first = {0, 1, 2}, .used = {0, 1}};
    CHECK_EQ(tsshare_abi(), TSSHARE_ABI);
    CHECK_EQ(shares_solve(&s), 0);
    s.used[1] = 2;
    CHECK_EQ(shares_solve(&s), (uint64_t)-EINVAL);
    s.used[1] = 1;
    s.first[0] = 1;
    CHECK_EQ(shares_solve(&s), (uint64_t)-EINVAL);
    s.first[0] = 0;
    s.first[1] = 3;
    CHECK_EQ(shares_solve(&s), (uint64_t)-EINVAL);
    s.first[1] = 1;
    s.flows = UINT32_MAX;
    CHECK_EQ(shares_solve(&s), (uint64_t)-EINVAL);
}
