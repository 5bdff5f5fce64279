/*
 * Looks at the real-time clock of an instance, and waits for moments of it in every way that there is. Lines of
 * standard output: what, CLOCK_MONOTONIC before and after, CLOCK_REALTIME between the two, and what was wanted, in ns.
 *
 * Its first argument is the monotonic time of the experiment's start; what is to happen in the past does not. With
 * `own` it sets the clock itself; then come seconds at which it looks once more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define MS 1000000LL

static long long start_ns;

static long long read_clock(clockid_t clock) {
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static struct timespec of_ns(long long ns) {
    return (struct timespec){ns / SECOND, ns % SECOND};
}

static void show(const char *what, long long wanted_ns) {
    long long before = read_clock(CLOCK_MONOTONIC), real = read_clock(CLOCK_REALTIME);
    long long after = read_clock(CLOCK_MONOTONIC);
    printf("%s %lld %lld %lld %lld\n", what, before, after, real, wanted_ns);
    fflush(stdout);
}

/* False: it is over already. */
static int wait_for(long long elapsed_ms) {
    struct timespec due = of_ns(start_ns + elapsed_ms * MS);
    if (read_clock(CLOCK_MONOTONIC) > start_ns + elapsed_ms * MS) {
        return 0;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    return 1;
}

static void sleep_until(const char *what, long long after_ms) {
    long long wanted = read_clock(CLOCK_REALTIME) + after_ms * MS;
    struct timespec due = of_ns(wanted);
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &due, NULL);
    show(what, wanted);
}

static void wait_on_futex(void) {
    long long wanted = read_clock(CLOCK_REALTIME) + 100 * MS;
    struct timespec due = of_ns(wanted);
    uint32_t word = 0;
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &due, NULL, FUTEX_BITSET_MATCH_ANY);
    show("futex", wanted);
}

static void wait_on_timer(void) {
    sigset_t alarm;
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    long long wanted = read_clock(CLOCK_REALTIME) + 100 * MS;
    struct itimerspec due = {.it_value = of_ns(wanted), .it_interval = of_ns(50 * MS)};
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    timer_create(CLOCK_REALTIME, &event, &timer);
    timer_settime(timer, TIMER_ABSTIME, &due, NULL);
    sigwaitinfo(&alarm, NULL);
    show("timer", wanted);
    sigwaitinfo(&alarm, NULL);
    show("period", wanted + 50 * MS);
    timer_delete(timer);
}

static void wait_on_timerfd(const char *what, long long after_ms, int flags) {
    uint64_t count;
    int timer = timerfd_create(CLOCK_REALTIME, 0);
    long long wanted = read_clock(CLOCK_REALTIME) + after_ms * MS;
    struct itimerspec due = {.it_value = of_ns(wanted)};
    timerfd_settime(timer, TFD_TIMER_ABSTIME | flags, &due, NULL);
    if (read(timer, &count, sizeof count) < 0 && errno == ECANCELED) {
        what = "canceled";
    }
    show(what, wanted);
    close(timer);
}

static void show_coarser(void) {
    struct timeval day;
    syscall(SYS_gettimeofday, &day, NULL);
    show("day", day.tv_sec * SECOND + day.tv_usec * 1000LL);
    show("second", syscall(SYS_time, NULL) * SECOND);
    show("coarse", read_clock(CLOCK_REALTIME_COARSE));
    show("tai", read_clock(CLOCK_TAI));
}

static void set_own(void) {
    struct timespec hour_ago = of_ns(read_clock(CLOCK_REALTIME) - 3600 * SECOND);
    struct timex faster = {.modes = ADJ_FREQUENCY, .freq = 1 << 16};
    clock_settime(CLOCK_REALTIME, &hour_ago);
    show("own", hour_ago.tv_sec * SECOND + hour_ago.tv_nsec);
    printf("adjtimex %d\n", adjtimex(&faster) < 0 ? errno : 0);
}

int main(int argc, char **argv) {
    start_ns = argc > 1 ? atoll(argv[1]) : 0;
    show("first", 0);
    if (wait_for(500)) {
        show("before", 0);
    }
    if (wait_for(1500)) { /* it is set at 1 s */
        show("set", 0);
        show_coarser();
        sleep_until("sleep", 100);
        wait_on_futex();
        wait_on_timer();
        wait_on_timerfd("timerfd", 100, 0);
    }
    if (wait_for(3500)) { /* it steps back by 3 s at 4 s */
        if (!fork()) {
            wait_on_timerfd("late", 1000, TFD_TIMER_CANCEL_ON_SET);
            return 0;
        }
        sleep_until("back", 1000);
        wait(NULL);
    }
    if (wait_for(8500)) { /* it steps on by 10 s at 9 s */
        sleep_until("on", 5000);
    }
    int own = argc > 2 && !strcmp(argv[2], "own");
    if (own && wait_for(10000)) {
        set_own();
    }
    for (int i = own ? 3 : 2; i < argc; i++) {
        if (wait_for(atoll(argv[i]) * 1000)) {
            show("later", 0);
        }
    }
    return 0;
}
