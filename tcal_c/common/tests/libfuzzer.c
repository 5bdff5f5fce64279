/* libFuzzer with mutations that know what the input is. */
#include "check.h"
#include "pktd/core/draws/draw.h"
#include "mutate.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    draw_init();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    uint64_t random = seed * 2ull + 1;
    if (next_random(&random) % 2) {
        return LLVMFuzzerMutate(data, size, room);
    }
    if (next_random(&random) % 16 == 0 && room >= 8192) {
        return make_input(data, room, &random);
    }
    return mutate(data, size, room, &random);
}
