/* Tests of the parts of tstorm-hold that need no container: names, reports, statuses, the search
 * for a program, installing. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hold/hold.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void test_orders(void) {
    CHECK(order_named("join") == ORDER_JOIN && order_named("crash") == ORDER_CRASH);
    CHECK(strcmp(order_name(order_named("leave")), "leave") == 0);
    CHECK(order_named("") == ORDER_NONE && order_named("joins") == ORDER_NONE);
}

/* Queued values come in order and none is merged; a plain signal is no order. */
static void test_queue(void) {
    static const int watched[] = {HOLD_SIGNAL};
    static const int sent[] = {ORDER_JOIN, ORDER_CRASH, ORDER_JOIN, ORDER_LEAVE, 4, 0};
    int signals = signal_fd(watched, 1, SFD_NONBLOCK);
    int number;
    enum order order;
    CHECK(signals >= 0);
    CHECK(signals_read(signals, &number, &order) == 0);
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        CHECK(sigqueue(getpid(), HOLD_SIGNAL, (union sigval){.sival_int = sent[i]}) == 0);
    }
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        CHECK(signals_read(signals, &number, &order) == 1);
        CHECK(number == HOLD_SIGNAL && (int)order == (sent[i] <= ORDER_CRASH ? sent[i] : 0));
    }
    CHECK(kill(getpid(), HOLD_SIGNAL) == 0);
    CHECK(signals_read(signals, &number, &order) == 1 && order == ORDER_NONE);
    close(signals);
    signals_reset();
}

static void test_report(void) {
    char line[REPORT_BYTES];
    const struct moment at = {.unix_ns = 12, .monotonic_ns = 5};
    const struct field fields[] = {{.name = "error", .text = "a\"b\\c\n\xe9"},
                                   {.name = "pid", .number = -7}};
    size_t length = report_format(line, sizeof line, "failed", at, fields, 2);
    static const char expected[] = "{\"tstorm_hold\":\"failed\",\"unix_ns\":12,\"monotonic_ns\":5,"
                                   "\"error\":\"a\\\"b\\\\c\\u000a\\u00e9\",\"pid\":-7}\n";
    CHECK(length == sizeof expected - 1 && memcmp(line, expected, length) == 0);
}

/* What is too long is cut, and the line stays whole. */
static void test_long_report(void) {
    char line[REPORT_BYTES];
    char *longer = malloc(2 * sizeof line);
    CHECK(longer);
    for (size_t start = 0; start < 8; start++) {
        memset(longer, '\x01', 2 * sizeof line);
        memset(longer, 'x', start);
        longer[2 * sizeof line - 1] = '\0';
        const struct moment at = {.unix_ns = 1};
        const struct field field = {.name = "program", .text = longer};
        size_t length = report_format(line, sizeof line, "failed", at, &field, 1);
        CHECK(length < sizeof line && length > sizeof line / 2);
        CHECK(memcmp(line + length - 9, "\\u0001\"}\n", 9) == 0);
    }
    free(longer);
}

static void test_status(void) {
    CHECK(waits_for_orders("Name:\ttstorm-hold\nPid:\t1\nSigBlk:\t0000000400014002\n"));
    CHECK(!waits_for_orders("Name:\ttstorm-hold\nSigBlk:\t0000000000014002\n"));
    CHECK(!waits_for_orders("Name:\ttstorm-holder\nSigBlk:\t0000000400014002\n"));
    CHECK(!waits_for_orders("Name:\tnginx\nSigBlk:\t0000000400014002\n"));
    CHECK(!waits_for_orders("Name:\ttstorm-hold\n"));
    CHECK(!waits_for_orders(""));
}

static void write_file(const char *path, mode_t mode) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && fchmod(file, mode) == 0 && close(file) == 0);
}

static off_t size_of(const char *path) {
    struct stat file;
    CHECK(lstat(path, &file) == 0);
    return file.st_size;
}

/* Reports are added to what is there; what is no file of its own is neither followed, waited for
 * nor written. */
static void test_report_file(const char *folder) {
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int err = dup(STDERR_FILENO);
    CHECK(nothing >= 0 && err >= 0 && dup2(nothing, STDERR_FILENO) >= 0);
    CHECK(chdir(folder) == 0);
    write_file("reports", 0600);
    CHECK(symlink("reports", "link") == 0 && mkfifo("fifo", 0600) == 0);
    report_to("reports");
    report("held", NULL, 0);
    off_t once = size_of("reports");
    report_to("reports");
    report("held", NULL, 0);
    CHECK(once > 60 && size_of("reports") > once + 60);
    off_t all = size_of("reports");
    static const char *const wrong[] = {"link", "fifo", "/dev/full", "."};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        report_to(wrong[i]);
        report("held", NULL, 0);
    }
    CHECK(size_of("reports") == all);
    CHECK(dup2(err, STDERR_FILENO) >= 0 && close(err) == 0 && close(nothing) == 0);
}

static void test_find(const char *folder) {
    char search[256];
    char path[256];
    CHECK(chdir(folder) == 0 && mkdir("first", 0700) == 0 && mkdir("second", 0700) == 0);
    CHECK(mkdir("second/dir", 0700) == 0);
    write_file("first/plain", 0600);
    write_file("second/plain", 0700);
    write_file("first/text", 0600);
    write_file("here", 0700);
    snprintf(search, sizeof search, "%s/first:%s/second:", folder, folder);
    CHECK(setenv("PATH", search, 1) == 0);
    CHECK(program_find("plain") == 0); /* the second: the first is not executable */
    CHECK(program_find("here") == 0);  /* the empty entry at the end */
    CHECK(program_find("text") == EXIT_NOT_EXECUTABLE && errno == EACCES);
    CHECK(program_find("dir") == EXIT_NOT_EXECUTABLE);
    CHECK(program_find("absent") == EXIT_NOT_FOUND && errno == ENOENT);
    CHECK(program_find("") == EXIT_NOT_FOUND);
    snprintf(path, sizeof path, "%s/second/plain", folder);
    CHECK(program_find(path) == 0);
    CHECK(program_find("./absent") == EXIT_NOT_FOUND);
}

static void test_start(void) {
    char *good[] = {"/bin/sh", "-c", "exit 7", NULL};
    char *bad[] = {"/nowhere/at/all", NULL};
    int status;
    pid_t pid = program_start(good);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && exit_status(status) == 7);
    CHECK(program_start(bad) == -ENOENT && errno == ENOENT);
}

static void test_install(const char *folder) {
    char *arguments[] = {"install", (char *)(size_t)folder, NULL};
    char *nowhere[] = {"install", "/nowhere/at/all", NULL};
    char path[256];
    struct stat file;
    struct stat self;
    snprintf(path, sizeof path, "%s/tstorm-hold", folder);
    CHECK(cmd_install(2, arguments) == 0 && cmd_install(2, arguments) == 0);
    CHECK(stat(path, &file) == 0 && stat("/proc/self/exe", &self) == 0);
    CHECK(file.st_size == self.st_size && (file.st_mode & 07777) == 0755);
    strcat(path, ".new");
    CHECK(access(path, F_OK) < 0);
    CHECK(cmd_install(2, nowhere) == EXIT_REFUSED && cmd_install(1, arguments) == EXIT_REFUSED);
}

/* Removes what the tests above have made. */
static void clear(const char *folder) {
    char *argv[] = {"/bin/rm", "-rf", (char *)(size_t)folder, NULL};
    int status;
    pid_t pid = program_start(argv);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

int main(void) {
    char folder[] = "/tmp/test-hold-XXXXXX";
    CHECK(mkdtemp(folder));
    test_orders();
    test_queue();
    test_report();
    test_long_report();
    test_status();
    test_start();
    test_install(folder);
    test_report_file(folder);
    test_find(folder);
    clear(folder);
    puts("hold: ok");
    return 0;
}
