/* What a fuzzer is to libFuzzer and to the driver of our own. */
#ifndef COMMON_DRIVER_H
#define COMMON_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Pieces of input that mean something; NULL at the end. */
extern const char *const fuzz_words[];

/* Whether inputs are frames behind a virtio header. */
extern const bool fuzz_frames;

#endif
