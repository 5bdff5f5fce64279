/* Runs the fuzzer where there is no libFuzzer: random inputs for a time.
 *
 *   fuzz-routes SECONDS [SEED]
 *
 * An input that fails is found again from the seed and the number that it prints at the end.
 */
#include "check.h"

#include <signal.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long long seed = 1;
static unsigned long long runs;

static void tell(int number) {
    fprintf(stderr, "input %llu of seed %llu\n", runs, seed);
    signal(number, SIG_DFL);
    raise(number);
}

int main(int argc, char **argv) {
    static uint8_t input[4096];
    time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 20);
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    signal(SIGABRT, tell);
    for (runs = 0; time(NULL) < end; runs++) {
        uint64_t random = (seed << 32 | runs) * 2 + 1;
        size_t size = next_random(&random) % sizeof input;
        for (size_t i = 0; i < size; i++) {
            input[i] = (uint8_t)(next_random(&random) >> 32);
        }
        LLVMFuzzerTestOneInput(input, size);
    }
    printf("%llu inputs, seed %llu: ok\n", runs, seed);
    return 0;
}
