// Computes in `processes` processes at once, each the same amount, `millions` of steps in `parts` with a system
// call that does nothing between them. Prints how long that took, by the clock and by the processes' own account, in
// milliseconds: "NAME CLOCK CPU". With "spin" it computes for ever.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static void compute(long steps) {
    unsigned long state = sink + 88172645463325252UL;
    for (long i = 0; i < steps; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    sink = state;
}

static double clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static double cpu_ms(void) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return used.ru_utime.tv_sec * 1e3 + used.ru_utime.tv_usec / 1e3;
}

int main(int argc, char **argv) {
    if (argc < 5) {
        return 2;
    }
    long processes = atol(argv[2]), millions = atol(argv[3]), parts = atol(argv[4]);
    double began = clock_ms();
    for (long i = 0; i < processes; i++) {
        if (fork() == 0) {
            for (long part = 0; part < parts || !strcmp(argv[1], "spin"); part++) {
                compute(millions * 1000000 / parts);
                if (strcmp(argv[1], "spin")) {
                    syscall(SYS_getppid);
                }
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    double took = clock_ms() - began;
    printf("%s %.3f %.3f\n", argv[1], took, cpu_ms());
    return 0;
}
