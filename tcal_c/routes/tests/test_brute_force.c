/* Random networks and changes, the same ones in every run. */
#include "brute.h"
#include "common/tests/check.h"
#include "suites.h"

#define ROUNDS 3000

void test_brute_force(void) {
    static uint8_t input[2048];
    uint64_t random = 20201;
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = next_random(&random) % sizeof input;
        for (size_t i = 0; i < size; i++) {
            input[i] = (uint8_t)(next_random(&random) >> 32);
        }
        compare_with_brute_force(input, size);
    }
    compare_with_brute_force(input, 0);
}
