/* The clocks of a program: nothing else in it reads one. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(const struct timespec *t) {
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return clock_ns(&t);
}

/* CPU time of this thread in ns. */
static inline uint64_t clock_thread(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return clock_ns(&t);
}

/* CLOCK_REALTIME in ns. */
static inline uint64_t clock_wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return clock_ns(&t);
}

#endif
