/* The only file that reads a clock. */
#include <time.h>

#include "hold.h"

static int64_t read_ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now); /* cannot fail for these two */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_unix_ns(void) {
    return read_ns(CLOCK_REALTIME);
}

int64_t clock_steady_ms(void) {
    return read_ns(CLOCK_MONOTONIC) / 1000000;
}
