/* Writes a file in each way that there is to sync one, in its second life says which are whole. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SIZE = 3000 };

static char data[SIZE];

static int made(const char *name, int flags) {
    int file = open(name, O_RDWR | O_CREAT | flags, 0644);
    if (file < 0 || write(file, data, SIZE) != SIZE) {
        perror(name);
    }
    return file;
}

static void look(const char *name) {
    char found[SIZE + 1];
    int file = open(name, O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, found, sizeof found);
    if (length == SIZE && memcmp(found, data, SIZE) == 0) {
        printf("%s whole\n", name);
    } else {
        printf("%s %zd bytes\n", name, length);
    }
}

static void write_all(void) {
    made("sync", 0);
    sync();
    int directory = open(".", O_RDONLY | O_DIRECTORY);
    fsync(made("fsync", 0));
    fdatasync(made("fdatasync", 0));
    int file = made("msync", 0);
    char *shown = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memset(shown, 'x', SIZE);
    msync(shown, SIZE, MS_SYNC);
    mkdir("folder", 0755);
    int unnamed = made("folder/unnamed", 0);
    fsync(open("folder", O_RDONLY | O_DIRECTORY));
    shown = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, unnamed, 0);
    unlink("folder/unnamed");
    msync(shown, SIZE, MS_SYNC);
    close(made("O_DSYNC", O_DSYNC));
    struct open_how how = {.flags = O_WRONLY | O_CREAT | O_DSYNC, .mode = 0644};
    int through = (int)syscall(SYS_openat2, AT_FDCWD, "openat2", &how, sizeof how);
    if (write(through, data, SIZE) != SIZE) {
        perror("openat2");
    }
    close(made("before", O_DSYNC | O_APPEND));
    rename("before", "renamed");
    const struct iovec part = {.iov_base = data, .iov_len = SIZE};
    if (pwritev2(made("RWF_DSYNC", O_TRUNC), &part, 1, 0, RWF_DSYNC) != SIZE) {
        perror("RWF_DSYNC");
    }
    close(made("replaced", O_DSYNC));
    close(made("other", 0));
    rename("other", "replaced");
    close(made("truncated-and-synced", 0));
    fsync(made("truncated-and-synced", O_TRUNC));
    made("nothing", 0);
    int gone = made("gone", 0);
    unlink("gone");
    if (fsync(gone) == 0) {
        puts("gone synced");
    }
    fsync(directory);
    if (syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == ENOSYS) {
        puts("io_uring ENOSYS");
    }
    if (syscall(SYS_io_setup, 1, NULL) < 0 && errno == ENOSYS) {
        puts("io_setup ENOSYS");
    }
    fflush(stdout);
    pause();
}

int main(void) {
    static const char *const names[] = {
        "fsync",          "fdatasync", "msync",     "O_DSYNC",  "openat2", "truncated-and-synced",
        "folder/unnamed", "renamed",   "RWF_DSYNC", "replaced", "sync",    "nothing"};
    memset(data, 'x', SIZE);
    if (access("sync", F_OK) < 0) {
        write_all();
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        look(names[i]);
    }
    return 0;
}
