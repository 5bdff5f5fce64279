/* Runs a fuzzer where there is no libFuzzer: mutations of seeds and of what was tried, for a time.
 *
 *   driver SECONDS SEED [FILE...]   a FILE is run once and nothing else is
 *
 * Without coverage there is no telling which inputs are interesting, so the corpus is a ring of the
 * last ones. The input that fails is left beside the program, with .crash behind its name; the seed
 * makes the whole run again.
 */
#include "driver.h"

#include "check.h"
#include "pktd/core/draws/draw.h"
#include "mutate.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#define CORPUS 64
#define ROOM 70000u

static uint8_t input[ROOM];
static size_t input_size;
static char crash_path[512];
static struct {
    uint8_t *bytes;
    size_t size;
} corpus[CORPUS];

static void save_input(int number) {
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, input, input_size) >= 0) {
        close(fd);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void keep(size_t slot, const void *bytes, size_t size) {
    free(corpus[slot].bytes);
    corpus[slot].bytes = malloc(size + 1);
    REQUIRE(corpus[slot].bytes);
    memcpy(corpus[slot].bytes, bytes, size);
    corpus[slot].size = size;
}

static void plant(uint64_t *random) {
    for (size_t i = 0; i < CORPUS; i++) {
        static uint8_t bytes[ROOM];
        keep(i, bytes, make_input(bytes, ROOM, random));
    }
}

static void fuzz(unsigned seconds, uint64_t seed) {
    uint64_t random = seed * 2 + 1;
    uint64_t runs = 0;
    plant(&random);
    time_t end = time(NULL) + seconds;
    while (time(NULL) < end) {
        size_t from = next_random(&random) % CORPUS;
        memcpy(input, corpus[from].bytes, corpus[from].size);
        input_size = corpus[from].size;
        for (uint64_t i = next_random(&random) % 8 + 1; i > 0; i--) {
            input_size = mutate(input, input_size, ROOM, &random);
        }
        LLVMFuzzerTestOneInput(input, input_size);
        if (next_random(&random) % 4 == 0) {
            keep(next_random(&random) % CORPUS, input, input_size);
        }
        if (++runs % 4096 == 0) {
            plant(&random);
        }
    }
    printf("%llu inputs, seed %llu: ok\n", (unsigned long long)runs, (unsigned long long)seed);
}

static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 2;
    }
    input_size = fread(input, 1, ROOM, file);
    fclose(file);
    LLVMFuzzerTestOneInput(input, input_size);
    printf("%s: ok\n", path);
    return 0;
}

int main(int argc, char **argv) {
    draw_init();
    snprintf(crash_path, sizeof crash_path, "%s.crash", argv[0]);
    signal(SIGABRT, save_input);
    for (int i = 3; i < argc; i++) {
        int status = run_file(argv[i]);
        if (status || i == argc - 1) {
            return status;
        }
    }
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20;
    fuzz(seconds, argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    for (size_t i = 0; i < CORPUS; i++) {
        free(corpus[i].bytes);
    }
    return 0;
}
