/* An eventfd as the bell that wakes another thread. */
#ifndef COMMON_BELL_H
#define COMMON_BELL_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

static inline void bell_ring(int fd) {
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

#endif
