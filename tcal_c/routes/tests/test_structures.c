/* The heap and the sorting of cells, against sorted copies; marks that begin again. */
#include "routes/cells.h"
#include "common/tests/check.h"
#include "routes/choose.h"
#include "routes/heap.h"
#include "suites.h"

#define KEYS 500

static void heap_gives_the_nearest_first(void) {
    static u128 memory[KEYS];
    struct heap heap = {.key = memory};
    uint64_t random = 3;
    for (int round = 0; round < 50; round++) {
        size_t left = 1 + next_random(&random) % KEYS;
        for (size_t i = 0; i < left; i++) {
            distance far = next_random(&random) % 40;
            uint32_t row = (uint32_t)(next_random(&random) % ROW_LIMIT);
            heap_push(&heap, round % 2 ? far : far << 90, row);
        }
        distance last_far = 0;
        uint32_t last_row = 0;
        while (left--) {
            distance far;
            uint32_t row = heap_pop(&heap, &far);
            CHECK(far > last_far || (far == last_far && row >= last_row));
            last_far = far;
            last_row = row;
        }
        CHECK_EQ(heap.count, 0);
    }
}

static void cells_come_sorted(void) {
    enum { ROWS = 60, COLUMNS = 40 };
    static uint32_t sorted[ROWS * COLUMNS];
    size_t first[ROWS + 1];
    struct cells cells = {0};
    uint64_t random = 11;
    for (uint32_t column = 0; column < COLUMNS; column++) {
        for (uint32_t row = ROWS; row-- > 0;) {
            if (next_random(&random) % 2) {
                CHECK_EQ(cells_add(&cells, row * COLUMNS + column), 0);
            }
        }
    }
    cells_sorted(&cells, ROWS, COLUMNS, first, sorted);
    CHECK(cells.count > 1000);
    for (size_t i = 1; i < cells.count; i++) {
        CHECK(sorted[i - 1] < sorted[i]);
    }
    cells_destroy(&cells);
}

/* After 2^32 columns marks begin again; what was marked long ago must not count. */
static void marks_wrap(void) {
    static const uint8_t forwards[] = {1, 1};
    static const uint32_t tails[] = {0, 1};
    static const uint32_t heads[] = {1, 0};
    static const uint16_t choices[] = {1, 1};
    struct network_plan plan = {2, 2, false, forwards, tails, heads, choices};
    struct network net;
    struct repair repair;
    struct chooser chooser;
    CHECK_EQ(network_init(&net, &plan), 0);
    CHECK_EQ(repair_init(&repair, &net), 0);
    CHECK_EQ(chooser_init(&chooser, &net), 0);
    for (uint32_t row = 0; row < 2; row++) {
        repair.cut[row] = repair.seen[row] = chooser.stale[row] = 1;
    }
    repair.mark = chooser.mark = UINT32_MAX;
    repair_begin(&repair);
    chooser_begin(&chooser);
    CHECK(repair.mark && chooser.mark);
    for (uint32_t row = 0; row < 2; row++) {
        CHECK(repair.cut[row] != repair.mark && repair.seen[row] != repair.mark);
        chooser_add(&chooser, row);
        chooser_add(&chooser, row);
    }
    CHECK_EQ(chooser.count, 2);
    chooser_destroy(&chooser);
    repair_destroy(&repair);
    network_destroy(&net);
}

void test_structures(void) {
    heap_gives_the_nearest_first();
    cells_come_sorted();
    marks_wrap();
}
