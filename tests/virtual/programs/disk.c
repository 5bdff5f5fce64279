/* What each call on a file does, and how long it takes: at 1, 3, … s of CLOCK_MONOTONIC after BEGIN
 * (in ns), once for each word: `times`, `room` or `wrong`, or the number of calls that may fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 5000 };

static char data[SIZE];
static const struct iovec parts[] = {{data, 1000}, {data, 2000}};

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static const char *said(long result) {
    static char number[16];
    if (result < 0 && errno == EBADF) {
        return "EBADF";
    }
    if (result < 0 && errno != ENOSPC && errno != EIO) {
        snprintf(number, sizeof number, "%d", errno);
        return number;
    }
    return result >= 0 ? "ok" : errno == EIO ? "EIO" : "ENOSPC";
}

#define TRY(name, call)                                                                            \
    do {                                                                                           \
        int64_t begin = now();                                                                     \
        long result = (long)(call);                                                                \
        int64_t end = now();                                                                       \
        printf("%s %s %lld\n", name, said(result), (long long)(end - begin));                      \
    } while (0)

static void sync_memory(int file) {
    char *shown = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    shown[0] = 'y';
    TRY("msync", msync(shown, SIZE, MS_SYNC));
    munmap(shown, SIZE);
}

static void write_some(const char *name) {
    int ends[2];
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    int other = open("/proc/self/exe", O_RDONLY);
    TRY("write", write(file, data, SIZE));
    TRY("pwrite", pwrite(file, data, 100, SIZE));
    TRY("writev", writev(file, parts, 2));
    TRY("pwritev", pwritev(file, parts, 2, 100));
    TRY("sendfile", sendfile(file, other, NULL, 10));
    TRY("ftruncate", ftruncate(file, 3 * SIZE));
    TRY("fallocate", fallocate(file, 0, 3 * SIZE, SIZE));
    TRY("fsync", fsync(file));
    TRY("fdatasync", fdatasync(file));
    TRY("syncfs", syncfs(file));
    sync_memory(file);
    TRY("pread", pread(file, data, 10, 0));
    TRY("elsewhere", write(open("/dev/null", O_WRONLY), data, 10));
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    TRY("socket", write(ends[0], data, 10));
    TRY("truncate", truncate(name, 4 * SIZE));
    close(file);
}

/* In a file that has 8,000 bytes and is at 6,000. */
static void fill(void) {
    static const char name[] = "filled";
    int file = open(name, O_RDWR | O_CREAT, 0644);
    int end = open(name, O_WRONLY | O_APPEND);
    lseek(file, 6000, SEEK_SET);
    TRY("inside", write(file, data, 1000));
    TRY("to the end", write(file, data, 1000));
    TRY("across", pwrite(file, data, 2, 7999));
    TRY("behind", write(file, data, 1));
    TRY("appended", write(end, data, 1));
    TRY("parts inside", pwritev(file, parts, 2, 5000));
    TRY("parts across", pwritev(file, parts, 2, 5001));
    TRY("longer", ftruncate(file, 8001));
    TRY("longer by name", truncate(name, 8001));
    TRY("reserved", fallocate(file, 0, 0, 8001));
    TRY("shorter", ftruncate(file, 4000));
    TRY("again", pwrite(file, data, 1, 4000));
    TRY("created", open("new", O_WRONLY | O_CREAT, 0644));
    TRY("removed", unlink("new"));
    TRY("read", pread(file, data, 10, 0));
    TRY("synced", fsync(file));
    TRY("elsewhere", write(open("/dev/null", O_WRONLY), data, 10));
}

/* Calls that a kernel refuses, or has nothing to do for, whatever the disk has. */
static void do_wrong(void) {
    static const struct iovec nowhere[] = {{NULL, 0}, {(void *)8, 10}};
    const char *const bad = (const char *)8;
    int file = open("filled", O_RDWR);
    int reads = open("filled", O_RDONLY);
    int writes = open("filled", O_WRONLY);
    TRY("read-only", write(reads, data, SIZE));
    TRY("read-only at", pwrite(reads, data, 10, SIZE * 2));
    TRY("read-only parts", writev(reads, parts, 2));
    TRY("read-only reserved", fallocate(reads, 0, 0, SIZE * 9));
    TRY("read-only longer", ftruncate(reads, SIZE * 9));
    TRY("read-only copied", sendfile(reads, file, NULL, 10));
    TRY("from write-only", sendfile(file, writes, NULL, 10));
    TRY("write-only", pread(writes, data, 10, 0));
    TRY("by path only", write(open("filled", O_PATH), data, 10));
    TRY("closed", write(999, data, 10));
    TRY("nowhere", pwrite(file, bad, 10, SIZE * 9));
    TRY("parts nowhere", pwritev(file, nowhere, 2, SIZE * 9));
    TRY("before the file", pwrite(file, data, 10, -1));
    TRY("nothing", pwrite(file, data, 0, SIZE * 9));
    TRY("no parts", pwritev(file, parts, 0, SIZE * 9));
    TRY("nothing read", pread(file, data, 0, 0));
}

static void fail(int count) {
    int file = open("failing", O_RDWR | O_CREAT, 0644);
    for (int i = 0; i < count; i++) {
        errno = 0;
        long result = i % 3 == 0   ? pwrite(file, data, 10, 0)
                      : i % 3 == 1 ? fsync(file)
                                   : pread(file, data, 10, 0);
        printf("%d %s\n", i, said(result));
    }
}

int main(int argc, char **argv) {
    const int64_t begin = strtoll(argv[1], NULL, 10);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    memset(data, 'x', SIZE);
    int file = open("filled", O_WRONLY | O_CREAT, 0644);
    if (write(file, data, SIZE) + pwrite(file, data, 3000, SIZE) != 8000) {
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        const int64_t at = begin + (2 * i - 3) * INT64_C(1000000000);
        const struct timespec until = {at / 1000000000, at % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        printf("at %d\n", 2 * i - 3);
        if (strcmp(argv[i], "times") == 0) {
            write_some(argv[i]);
        } else if (strcmp(argv[i], "room") == 0) {
            fill();
        } else if (strcmp(argv[i], "wrong") == 0) {
            do_wrong();
        } else {
            fail(atoi(argv[i]));
        }
        fflush(stdout);
    }
    return 0;
}
