/* Structure-aware mutation, shared by libFuzzer and the driver. */
#include "mutate.h"

#include "check.h"
#include "driver.h"
#include "pktd/tests/frames.h"

#define HEADERS 90u /* where a frame's headers are: most changes go there */

static const char *word(uint64_t *random) {
    size_t count = 0;
    while (fuzz_words[count]) {
        count++;
    }
    return fuzz_words[next_random(random) % count];
}

static size_t make_a_frame(uint8_t *bytes, uint64_t *random) {
    static struct test_frame frame;
    int version = next_random(random) % 2 ? 4 : 6;
    int protocol = next_random(random) % 3 ? TEST_TCP : TEST_UDP;
    size_t payload = next_random(random) % 4000;
    unsigned segment = next_random(random) % 4 ? 1 + (unsigned)(next_random(random) % 1500) : 0;
    make_frame(&frame, version, protocol, 0, 1, payload, segment);
    memcpy(bytes, &frame.vnet, sizeof frame.vnet);
    memcpy(bytes + sizeof frame.vnet, frame.data, frame.bytes);
    return sizeof frame.vnet + frame.bytes;
}

static size_t insert(uint8_t *bytes, size_t size, size_t room, size_t at, const char *text) {
    size_t length = strlen(text);
    if (size + length > room) {
        return size;
    }
    memmove(bytes + at + length, bytes + at, size - at);
    memcpy(bytes + at, text, length);
    return size + length;
}

size_t make_input(uint8_t *bytes, size_t room, uint64_t *random) {
    if (fuzz_frames) {
        return make_a_frame(bytes, random);
    }
    size_t size = 0;
    for (uint64_t i = next_random(random) % 40; i > 0; i--) {
        size = insert(bytes, size, room, size, word(random));
    }
    return size;
}

size_t mutate(uint8_t *bytes, size_t size, size_t room, uint64_t *random) {
    if (size == 0) {
        return make_input(bytes, room, random);
    }
    size_t front = fuzz_frames && size > HEADERS && next_random(random) % 4 ? HEADERS : size;
    size_t at = next_random(random) % front;
    switch (next_random(random) % 5) {
    case 0:
        bytes[at] = (uint8_t)next_random(random);
        return size;
    case 1:
        bytes[at] ^= (uint8_t)(1u << next_random(random) % 8);
        return size;
    case 2: {
        size_t cut = next_random(random) % 32;
        cut = cut < size - at ? cut : size - at;
        memmove(bytes + at, bytes + at + cut, size - at - cut);
        return size - cut;
    }
    default:
        return insert(bytes, size, room, at, word(random));
    }
}
