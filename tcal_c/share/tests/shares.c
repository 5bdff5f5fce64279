/* Drawing problems and proving answers. */
#include "shares.h"

#include "common/tests/check.h"
#include "share/tsshare.h"

#include <stdbool.h>

__extension__ typedef unsigned __int128 u128;

struct bytes {
    const uint8_t *data;
    size_t size;
};

static uint32_t take(struct bytes *bytes) {
    if (!bytes->size) {
        return 0;
    }
    bytes->size--;
    return *bytes->data++;
}

/* Small numbers often, so that ties are common; sizes of all magnitudes; rarely any number. */
static uint64_t take_number(struct bytes *bytes) {
    uint32_t kind = take(bytes);
    uint64_t number = 0;
    if (kind < 64) {
        return kind % 8;
    }
    if (kind < 128) {
        return (uint64_t)(1 + kind % 8) * 10000000;
    }
    for (int i = 0; i < 8; i++) {
        number = number << 8 | take(bytes);
    }
    return kind == 255 ? number : number >> (20 + kind % 44);
}

void shares_draw(struct shares *shares, const uint8_t *data, size_t size) {
    struct bytes bytes = {data, size};
    memset(shares, 0, sizeof *shares);
    shares->flows = take(&bytes) % (MOST_FLOWS + 1);
    shares->links = 1 + take(&bytes) % MOST_LINKS;
    for (uint32_t link = 0; link < shares->links; link++) {
        shares->capacities_bps[link] = take_number(&bytes);
    }
    uint32_t uses = 0;
    for (uint32_t flow = 0; flow < shares->flows; flow++) {
        for (uint32_t i = take(&bytes) % 9; i > 0 && uses < MOST_USES; i--) {
            shares->used[uses++] = take(&bytes) % shares->links;
        }
        shares->first[flow + 1] = uses;
        shares->rtts_ns[flow] = take_number(&bytes);
        shares->demands_bps[flow] = take(&bytes) % 2 ? TSSHARE_UNLIMITED : take_number(&bytes);
    }
}

int32_t shares_solve(struct shares *s) {
    return tsshare_solve(s->flows, s->first, s->used, s->rtts_ns, s->demands_bps, s->links,
                         s->capacities_bps, s->allocations_bps, s->bottlenecks, s->entitlements_bps,
                         s->levels_bits);
}

static u128 rtt(const struct shares *s, uint32_t flow) {
    uint64_t rtt = s->rtts_ns[flow];
    return rtt < TSSHARE_LEAST_RTT_NS ? TSSHARE_LEAST_RTT_NS : rtt;
}

static bool exact(const struct shares *s) {
    for (uint32_t link = 0; link < s->links; link++) {
        if (s->capacities_bps[link] > MOST_EXACT_BPS) {
            return false;
        }
    }
    return true;
}

/* What a link carries, and by how many uses. */
static u128 carried(const struct shares *s, uint32_t link, uint32_t *uses) {
    u128 sum = 0;
    *uses = 0;
    for (uint32_t flow = 0; flow < s->flows; flow++) {
        for (uint32_t use = s->first[flow]; use < s->first[flow + 1]; use++) {
            if (s->used[use] == link) {
                sum += s->allocations_bps[flow];
                ++*uses;
            }
        }
    }
    return sum;
}

static bool passes(const struct shares *s, uint32_t flow, uint32_t link) {
    for (uint32_t use = s->first[flow]; use < s->first[flow + 1]; use++) {
        if (s->used[use] == link) {
            return true;
        }
    }
    return false;
}

static bool limited(const struct shares *s, uint32_t flow) {
    for (uint32_t use = s->first[flow]; use < s->first[flow + 1]; use++) {
        if (s->capacities_bps[s->used[use]]) {
            return true;
        }
    }
    return false;
}

/* The link is full, and nobody there has risen higher than this flow. Rounded down a rate misses up
 * to a bit, rounded to the next whole one it is up to 1/1024 too high. */
static void prove_bottleneck(const struct shares *s, uint32_t flow, uint32_t link) {
    uint32_t uses;
    CHECK(link < s->links);
    CHECK(s->capacities_bps[link]);
    CHECK(passes(s, flow, link));
    CHECK(s->levels_bits[link] > 0);
    CHECK(carried(s, link, &uses) + uses + 2 >= s->capacities_bps[link]);
    u128 highest = ((u128)s->allocations_bps[flow] + 2) * rtt(s, flow);
    for (uint32_t other = 0; other < s->flows; other++) {
        if (passes(s, other, link)) {
            u128 level = (u128)s->allocations_bps[other] * rtt(s, other);
            CHECK(level <= highest + rtt(s, other) / 1000);
        }
    }
}

void shares_prove(const struct shares *s) {
    uint32_t uses;
    if (!exact(s)) {
        return;
    }
    for (uint32_t link = 0; link < s->links; link++) {
        if (s->capacities_bps[link]) {
            u128 sum = carried(s, link, &uses);
            CHECK(sum <= s->capacities_bps[link] + uses / 1000);
        } else {
            CHECK(!(s->levels_bits[link] > 0));
        }
    }
    for (uint32_t flow = 0; flow < s->flows; flow++) {
        CHECK(s->allocations_bps[flow] <= s->demands_bps[flow]);
        CHECK(s->entitlements_bps[flow] >= s->allocations_bps[flow]);
        for (uint32_t use = s->first[flow]; use < s->first[flow + 1]; use++) {
            uint64_t capacity = s->capacities_bps[s->used[use]];
            CHECK(!capacity || s->entitlements_bps[flow] <= capacity);
        }
        if (s->bottlenecks[flow] == TSSHARE_NONE) {
            CHECK_EQ(s->allocations_bps[flow], s->demands_bps[flow]);
            CHECK(s->demands_bps[flow] != TSSHARE_UNLIMITED || !limited(s, flow));
        } else {
            prove_bottleneck(s, flow, s->bottlenecks[flow]);
        }
    }
}
