/* What a wrong caller gets: an error, and nothing changed. */
#include "common/tests/check.h"
#include "routes/paths.h"
#include "suites.h"

#include <errno.h>

static const uint8_t forwards[] = {1, 1};
static const uint32_t roots[] = {0, 1};
static const uint32_t tails[] = {0, 1};
static const uint32_t heads[] = {1, 0};
static const uint16_t choices[] = {1, 1};
static const uint32_t out_first[] = {0, 1, 2};
static const uint32_t out[] = {0, 1};
static const uint32_t nowhere[] = {UINT32_MAX, UINT32_MAX};
static const uint32_t two[] = {2, 2};

static uint16_t cells[4];

static void no_table(uint32_t rows, const uint32_t *r, const uint32_t *t, const uint32_t *h,
                     const uint16_t *c) {
    errno = 0;
    CHECK(!tsroutes_table_new(rows, 2, 2, forwards, r, t, h, c, 0, cells));
    CHECK_EQ(errno, EINVAL);
}

static void tables(void) {
    static const uint32_t backwards[] = {1, 0};
    static const uint16_t zero[] = {1, 0};
    no_table(2, two, tails, heads, choices);
    no_table(2, roots, backwards, heads, choices);
    no_table(2, roots, tails, two, choices);
    no_table(2, roots, two, heads, choices);
    no_table(2, roots, tails, heads, zero);
    no_table(65537, roots, tails, heads, choices);
    errno = 0;
    CHECK(!tsroutes_table_new(2, 2, 2, forwards, roots, tails, heads, choices, 4, cells));
    CHECK_EQ(errno, EINVAL);
}

static void changes(void) {
    static const uint64_t delays[] = {5, 5, 5};
    static const uint8_t up[] = {1, 1, 1};
    static const uint32_t three[] = {0, 1, 0};
    struct tsroutes_table *t =
        tsroutes_table_new(2, 2, 2, forwards, roots, tails, heads, choices, 0, cells);
    CHECK(t);
    CHECK_EQ(-tsroutes_table_apply(t, 1, two, delays, up), EINVAL);
    CHECK_EQ(-tsroutes_table_apply(t, 3, three, delays, up), EINVAL);
    CHECK_EQ(tsroutes_table_changed(t), 0);
    CHECK_EQ(tsroutes_table_apply(t, 2, three, delays, up), 0);
    CHECK_EQ(tsroutes_table_changed(t), 2);
    CHECK(cells[1] == 1 && cells[2] == 1);
    uint32_t changed[2];
    uint16_t values[2];
    uint16_t copy[4] = {9, 9, 9, 9};
    tsroutes_table_changes(t, changed, values);
    tsroutes_put(copy, 2, changed, values);
    CHECK(copy[0] == 9 && copy[1] == 1 && copy[2] == 1 && copy[3] == 9);
    CHECK_EQ(tsroutes_table_apply(t, 2, three, delays, up), 0);
    CHECK_EQ(tsroutes_table_changed(t), 0);
    tsroutes_table_free(t);
    tsroutes_table_free(NULL);
    CHECK_EQ(tsroutes_abi(), TSROUTES_ABI);
}

static struct tsroutes_paths *make(const uint32_t *first, const uint32_t *h, const uint32_t *rows,
                                   const uint32_t *access) {
    return tsroutes_paths_new(2, 2, 2, 2, roots, first, out, h, rows, roots, access, access);
}

static void no_paths(const uint32_t *first, const uint32_t *h, const uint32_t *rows,
                     const uint32_t *access) {
    errno = 0;
    CHECK(!make(first, h, rows, access));
    CHECK_EQ(errno, EINVAL);
}

static void compositions(void) {
    static const uint32_t odd[] = {1, 1, 2};
    static const uint32_t falling[] = {0, 2, 1};
    static const uint32_t much[] = {1000000001, 0};
    static const uint32_t little[] = {0, 0};
    static const uint64_t numbers[] = {1, 1};
    static const uint8_t up[] = {1, 1};
    static const uint16_t over[] = {0, 2, 1, 0};
    static const uint16_t right[] = {0, 1, 1, 0};
    static const uint16_t none[] = {0, 0, 0, 0};
    uint64_t figures[4];
    uint32_t hops[2];
    no_paths(odd, heads, roots, nowhere);
    no_paths(falling, heads, roots, nowhere);
    no_paths(out_first, two, roots, nowhere);
    no_paths(out_first, nowhere, roots, nowhere);
    no_paths(out_first, heads, two, nowhere);
    no_paths(out_first, heads, roots, two);
    struct tsroutes_paths *p = make(out_first, heads, roots, nowhere);
    CHECK(p);
    CHECK_EQ(-tsroutes_paths_set(p, up, numbers, numbers, much, numbers), EINVAL);
    CHECK_EQ(tsroutes_paths_set(p, up, numbers, numbers, little, numbers), 0);
    CHECK_EQ(-tsroutes_paths_compose(p, right, 1, two, 2, roots), EINVAL);
    CHECK_EQ(-tsroutes_paths_compose(p, over, 2, roots, 2, roots), EINVAL);
    CHECK_EQ(-tsroutes_paths_row(p, 0, 2, roots, figures, figures, figures, figures, hops), EINVAL);
    CHECK_EQ(tsroutes_paths_compose(p, right, 1, roots, 1, roots), 0);
    CHECK_EQ(-tsroutes_paths_row(p, 0, 2, roots, figures, figures, figures, figures, hops), EINVAL);
    CHECK_EQ(-tsroutes_paths_row(p, 1, 1, roots, figures, figures, figures, figures, hops), EINVAL);
    CHECK_EQ(-tsroutes_paths_row(p, 2, 1, roots, figures, figures, figures, figures, hops), EINVAL);
    CHECK_EQ(-tsroutes_paths_row(p, 0, 1, two, figures, figures, figures, figures, hops), EINVAL);
    CHECK_EQ(tsroutes_paths_row(p, 0, 1, roots, figures, figures, figures, figures, hops), 0);
    CHECK_EQ(hops[0], 0);
    CHECK_EQ(-tsroutes_paths_deciding(p, right, 2, 1, roots, hops, hops), EINVAL);
    CHECK_EQ(-tsroutes_paths_deciding(p, right, 0, 1, two, hops, hops), EINVAL);
    CHECK_EQ(-tsroutes_paths_deciding(p, over, 0, 2, roots, hops, hops), EINVAL);
    CHECK_EQ(tsroutes_paths_deciding(p, none, 0, 2, roots, hops, hops), 0);
    CHECK_EQ(hops[0], UINT32_MAX);
    CHECK_EQ(hops[1], UINT32_MAX);
    p->mark = UINT32_MAX - 1; /* marks begin again on the way */
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(tsroutes_paths_compose(p, right, 2, roots, 2, roots), 0);
        CHECK_EQ(tsroutes_paths_row(p, 0, 2, roots, figures, figures, figures, figures, hops), 0);
        CHECK_EQ(hops[1], 1);
    }
    tsroutes_paths_free(p);
    tsroutes_paths_free(NULL);
}

static void circles(void) {
    static const uint32_t itself[] = {0, 1};
    static const uint32_t losses[] = {0, 0};
    static const uint64_t numbers[] = {1, 1};
    static const uint8_t up[] = {1, 1};
    static const uint16_t table[] = {0, 1, 1, 0};
    uint32_t found[2];
    struct tsroutes_paths *p = make(out_first, itself, roots, nowhere);
    CHECK(p);
    CHECK_EQ(tsroutes_paths_set(p, up, numbers, numbers, losses, numbers), 0);
    CHECK_EQ(-tsroutes_paths_compose(p, table, 2, roots, 2, roots), EINVAL);
    CHECK_EQ(-tsroutes_paths_deciding(p, table, 0, 2, roots, found, found), EINVAL);
    tsroutes_paths_free(p);
}

void test_arguments(void) {
    tables();
    changes();
    compositions();
    circles();
}
