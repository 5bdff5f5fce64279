/* Roots and losses beside the places where they round the other way. */
#include "brute.h"
#include "common/tests/check.h"
#include "routes/stretch.h"
#include "suites.h"

static void root_is(wide square) {
    uint64_t root = 0;
    wide wanted = brute_root(square);
    CHECK_EQ(round_root(square, &root), wanted >> 64 == 0);
    CHECK_EQ(root, (uint64_t)wanted);
}

/* (r + 1/2)^2 lies between r^2 + r and the next number. */
static void roots(void) {
    uint64_t random = 5;
    for (int bits = 0; bits < 64; bits++) {
        for (int i = 0; i < 200; i++) {
            wide r = next_random(&random) >> bits;
            root_is(r * r);
            root_is(r * r + r);
            root_is(r * r + r + 1);
            root_is(r ? r * r - 1 : 0);
        }
    }
    root_is(~(wide)0);
    root_is(~(wide)0 - UINT64_MAX);
}

static uint64_t loss_of(const uint32_t *losses, size_t count, bool *sure) {
    struct stretch sum = stretch_nothing();
    uint64_t loss = 0;
    for (size_t i = 0; i < count; i++) {
        struct stretch link = stretch_of_link(0, 0, losses[i], 0);
        sum = stretch_join(&sum, &link);
    }
    *sure = round_loss(&sum, &loss);
    return loss;
}

static void losses(void) {
    static const struct {
        uint32_t loss[6];
        uint32_t total;
        bool sure;
    } cases[] = {
        {{0}, 0, true},
        {{1}, 1, true},
        {{PPB}, PPB, true},
        {{PPB, 1, PPB}, PPB, true},
        {{PPB - 1, PPB - 1}, PPB, true},
        {{1, 1, 1, 1, 1, 1}, 6, true},
        {{10000000, 10000000}, 19900000, true},
        {{1, 500000000}, 500000001, true}, /* 500,000,000.5: a half goes up */
        {{3, 500000000}, 500000002, true}, /* ….5 again */
        {{31623, 31623}, 63245, true},
        {{1230000, 4560000}, 5784391, true},   /* 5,784,391.2 */
        {{1250000, 18760000}, 19986550, true}, /* exact */
    };
    bool sure;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(loss_of(cases[i].loss, 6, &sure), cases[i].total);
        CHECK_EQ(sure, cases[i].sure);
    }
    /* 2^29 * 2^6 m * 5^12 * 5^12 * 5^12 ppb kept: a half in 45 decimals, too many to tell. */
    uint32_t hard[] = {PPB - (1u << 29), PPB - 64 * 15600001, PPB - 244140625, PPB - 244140625,
                       PPB - 244140625};
    loss_of(hard, 5, &sure);
    CHECK(!sure);
}

/* The bound on the error is what ties rest on: here the truth is known exactly, in 120 bits. */
static void errors(void) {
    uint64_t random = 77;
    for (int i = 0; i < 20000; i++) {
        struct stretch sum = stretch_nothing();
        wide kept = 1;
        wide unit = 1;
        for (int k = 0; k < 4; k++) {
            uint32_t loss = (uint32_t)(next_random(&random) % PPB);
            struct stretch link = stretch_of_link(0, 0, loss, 0);
            sum = stretch_join(&sum, &link);
            kept *= PPB - loss;
            unit *= PPB;
            /* floor(kept * 2^128 / unit), eight bits at a time (unit < 2^120). */
            wide exact = 0;
            wide rest = kept;
            for (int step = 0; step < 16; step++) {
                exact = exact << 8 | (rest << 8) / unit;
                rest = (rest << 8) % unit;
            }
            CHECK(kept == unit || (sum.kept <= exact && exact - sum.kept < stretch_error(&sum)));
        }
    }
}

void test_rounding(void) {
    roots();
    losses();
    errors();
}
