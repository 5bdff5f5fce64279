/* The one file that reads the clocks. */
#include <errno.h>
#include <time.h>

#include "common/clock.h"
#include "probe.h"

int64_t now_ns(void) {
    return (int64_t)clock_now();
}

int64_t wall_ns(void) {
    return (int64_t)clock_wall();
}

void sleep_until(int64_t at) {
    struct timespec t = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};
    while (at > now_ns() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

int poll_ms(int64_t at) {
    int64_t left = at - now_ns();
    if (left <= 0) {
        return 0;
    }
    int64_t ms = (left + 999999) / 1000000;
    return ms > 60000 ? 60000 : (int)ms;
}
