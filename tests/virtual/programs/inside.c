/*
 * A race inside computing: between reading and writing there is no system call, only now and then between two counts. Says how much of what was counted is
 * there, and ends with 1 if some of it is not. What is given: "threads" or "processes" that count beside each other
 * without a lock, or "lock": threads that have one. "flags" counts nothing: it ends with 1 if the processor's flags
 * have another program's trap flag.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 1000, AT_ONCE = 100 };

struct counts {
    pthread_mutex_t lock;
    int locked;
    volatile long count;
};

static void *count(void *given) {
    struct counts *counts = given;
    for (int i = 0; i < TIMES; i++) {
        if (i % AT_ONCE == 0) {
            usleep(1000);
        }
        if (counts->locked) {
            pthread_mutex_lock(&counts->lock);
        }
        long value = counts->count;
        counts->count = value + 1;
        if (counts->locked) {
            pthread_mutex_unlock(&counts->lock);
        }
    }
    return NULL;
}

static void beside(struct counts *counts) {
    pthread_t other;
    pthread_create(&other, NULL, count, counts);
    count(counts);
    pthread_join(other, NULL);
}

static void in_a_child(struct counts *counts) {
    pid_t child = fork();
    count(counts);
    if (!child) {
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static int trapped(void) {
    unsigned long flags, all = 0;
    for (int i = 0; i < TIMES; i++) {
        getppid();
        for (int j = 0; j < 20; j++) {
            __asm__ volatile("pushfq; pushfq; popq %0; popfq" : "=r"(flags) : : "memory", "cc");
            all |= flags;
        }
    }
    return (all & 0x100) != 0;
}

int main(int argc, char **argv) {
    struct counts *counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc != 2 || counts == MAP_FAILED) {
        return 2;
    }
    if (!strcmp(argv[1], "flags")) {
        return trapped();
    }
    pthread_mutex_init(&counts->lock, NULL);
    counts->locked = !strcmp(argv[1], "lock");
    if (!strcmp(argv[1], "processes")) {
        in_a_child(counts);
    } else {
        beside(counts);
    }
    printf("%ld of %d\n", counts->count, 2 * TIMES);
    return counts->count != 2 * TIMES;
}
