/* A chain: the hash of what happened now begins with the hash of all that happened before.
 *
 * A packet's bytes are hashed once, when it enters, however many links it crosses: what a link adds
 * is 24 bytes, which costs as much as a few instructions of the queue do.
 */
#include "digest.h"

#include "xxh64.h"

#include <endian.h>

uint64_t digest_contents(const void *packet, size_t bytes) {
    return xxh64(packet, bytes, 0);
}

uint64_t digest_add(uint64_t digest, uint64_t time_ns, enum fate fate, uint32_t first,
                    uint32_t count, uint64_t contents) {
    uint64_t what = (uint64_t)fate << 32 | (uint64_t)first << 16 | count;
    const uint64_t words[] = {htole64(time_ns), htole64(what), htole64(contents)};
    return xxh64(words, sizeof words, digest);
}
