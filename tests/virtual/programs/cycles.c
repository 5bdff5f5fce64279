/* Reads the processor's cycle counter in every way: what it says, and that waiting for it ends. */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void) {
    unsigned processor = 99;
    unsigned long long first = __rdtsc(), second = __rdtscp(&processor), after;
    long long clock = now();
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    after = __rdtsc();
    printf("%llu %llu %u\n", first, second, processor);
    printf("%d\n", first < second && second < after && after - second >= 50000000);
    printf("%d\n", (long long)(after - second) - (now() - clock) < 1000000);
    while (__rdtsc() < after + 1000000) {
    }
    __asm__ volatile("rex.W rdtsc" ::: "rax", "rdx"); /* as some compilers say it */
    return 0;
}
