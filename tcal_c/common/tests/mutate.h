/* Inputs that get past the first check: words of the protocol, frames with one thing wrong. */
#ifndef COMMON_MUTATE_H
#define COMMON_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* A fresh input of at most `room` bytes (at least 8,192); its size. */
size_t make_input(uint8_t *bytes, size_t room, uint64_t *random);

/* Changes an input in one place; its new size. */
size_t mutate(uint8_t *bytes, size_t size, size_t room, uint64_t *random);

#endif
