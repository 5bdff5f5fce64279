/* Four sums side by side over stripes of 32 bytes, joined at the end; what is left goes in by 8, 4
 * and 1 bytes; a last mix lets every bit of the input reach every bit of the result. Numbers are
 * read as little-endian, so a packet has the same hash on every machine.
 */
#include "xxh64.h"

#include <endian.h>
#include <string.h>

#define PRIME1 0x9E3779B185EBCA87ull
#define PRIME2 0xC2B2AE3D27D4EB4Full
#define PRIME3 0x165667B19E3779F9ull
#define PRIME4 0x85EBCA77C2B2AE63ull
#define PRIME5 0x27D4EB2F165667C5ull

#define LANES 4
#define STRIPE (8 * LANES)

static uint64_t rotate(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

static uint64_t read64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static uint64_t read32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t add(uint64_t sum, uint64_t input) {
    return rotate(sum + input * PRIME2, 31) * PRIME1;
}

/* All whole stripes of the input. */
static uint64_t stripes(const uint8_t *p, size_t bytes, uint64_t seed) {
    uint64_t lane[LANES] = {seed + PRIME1 + PRIME2, seed + PRIME2, seed, seed - PRIME1};
    for (; bytes >= STRIPE; p += STRIPE, bytes -= STRIPE) {
        lane[0] = add(lane[0], read64(p));
        lane[1] = add(lane[1], read64(p + 8));
        lane[2] = add(lane[2], read64(p + 16));
        lane[3] = add(lane[3], read64(p + 24));
    }
    uint64_t sum =
        rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < LANES; i++) {
        sum = (sum ^ add(0, lane[i])) * PRIME1 + PRIME4;
    }
    return sum;
}

uint64_t xxh64(const void *data, size_t bytes, uint64_t seed) {
    const uint8_t *p = data;
    const uint8_t *end = p + bytes;
    uint64_t sum = bytes < STRIPE ? seed + PRIME5 : stripes(p, bytes, seed);
    sum += bytes;
    p += bytes / STRIPE * STRIPE;
    for (; end - p >= 8; p += 8) {
        sum = rotate(sum ^ add(0, read64(p)), 27) * PRIME1 + PRIME4;
    }
    for (; end - p >= 4; p += 4) {
        sum = rotate(sum ^ read32(p) * PRIME1, 23) * PRIME2 + PRIME3;
    }
    for (; p < end; p++) {
        sum = rotate(sum ^ *p * PRIME5, 11) * PRIME1;
    }
    sum = (sum ^ sum >> 33) * PRIME2;
    sum = (sum ^ sum >> 29) * PRIME3;
    return sum ^ sum >> 32;
}
