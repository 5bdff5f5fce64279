/* Two programs count in one file: read, then write one more, with nothing in between. Ends with 1 if counts were lost. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 200 };

static void count(int file) {
    for (int i = 0; i < TIMES; i++) {
        long value = 0;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (pread(file, &value, sizeof value, 0) < 0) {
            _exit(2);
        }
        value++;
        if (pwrite(file, &value, sizeof value, 0) < 0) {
            _exit(2);
        }
    }
}

int main(int argc, char **argv) {
    int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    pid_t child = fork();
    count(file);
    if (!child) {
        return 0;
    }
    wait(NULL);
    long value = 0;
    if (pread(file, &value, sizeof value, 0) < 0) {
        return 2;
    }
    printf("%ld of %d\n", value, 2 * TIMES);
    return value != 2 * TIMES;
}
