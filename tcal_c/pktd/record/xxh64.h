/* XXH64, a hash of 64 bits (Collet, "xxHash fast digest algorithm", version 0.1.1). */
#ifndef PKTD_XXH64_H
#define PKTD_XXH64_H

#include <stddef.h>
#include <stdint.h>

uint64_t xxh64(const void *data, size_t bytes, uint64_t seed);

#endif
