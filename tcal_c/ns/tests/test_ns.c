/* Tests of the parts of tstorm-ns that need no namespace: messages, start requests, helpers. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ns/ns.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct program program;
static const struct hearing NOBODY = {.socket = -1};

/* Parses a copy on the heap, so that the sanitizer sees a read past its end. */
static int parse(const char *text, size_t length, char **kept) {
    *kept = malloc(length ? length : 1);
    CHECK(*kept);
    memcpy(*kept, text, length);
    return program_parse(&program, *kept, length);
}

static void test_parse_good(void) {
    static const char text[] = "start\0/tmp\0"
                               "2\0sh\0\0A=1\0B=";
    char *kept;
    CHECK(parse(text, sizeof text, &kept) == 0);
    CHECK(strcmp(program.directory, "/tmp") == 0);
    CHECK(strcmp(program.argv[0], "sh") == 0 && strcmp(program.argv[1], "") == 0);
    CHECK(program.argv[2] == NULL);
    CHECK(strcmp(program.env[0], "A=1") == 0 && strcmp(program.env[1], "B=") == 0);
    CHECK(program.env[2] == NULL);
    free(kept);
}

static void test_parse_bad(void) {
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {
        {"", 0},
        {"start", 5}, /* no verb */
        {"start\0/\0"
         "1\0a",
         11}, /* the last word is cut */
        {"start\0/\0"
         "2\0a",
         12}, /* fewer words than said */
        {"start\0/\0"
         "0\0a",
         12}, /* no program */
        {"start\0/\0"
         "-1\0a",
         13}, /* not a count */
        {"start\0/\0"
         "9999999\0a",
         18},
        {"start\0/\0"
         "1\0a\0novalue",
         20},
        {"start", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *kept;
        CHECK(parse(cases[i].text, cases[i].length, &kept) == -EINVAL);
        free(kept);
    }
}

static void test_start(void) {
    int ends[2];
    char *kept;
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    static const char text[] = "start\0/\0"
                               "3\0sh\0-c\0echo $A; pwd; exit 7\0A=here";
    CHECK(parse(text, sizeof text, &kept) == 0);
    program.env[1] = strdup("PATH=/usr/bin:/bin");
    program.env[2] = NULL;
    pid_t pid = program_start(&program, &(struct identity){0}, ends[1], &NOBODY);
    CHECK(pid > 0);
    close(ends[1]);
    char said[64] = "";
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], said + length, sizeof said - 1 - length)) > 0) {
        length += (size_t)got;
    }
    close(ends[0]);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && exit_status(status) == 7);
    CHECK(strcmp(said, "here\n/\n") == 0);
    free(program.env[1]);
    free(kept);
}

static void test_commands(void) {
    int ends[2];
    struct command *commands = NULL;
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    char *kept;
    static const char text[] = "run 7\0/\0"
                               "1\0/bin/cat\0A=1";
    CHECK(parse(text, sizeof text, &kept) == 0);
    pid_t pid = program_start(&program, &(struct identity){0}, 2, &NOBODY);
    CHECK(pid > 0 && commands_add(&commands, 7, pid) == 0);
    CHECK(commands_add(&commands, 8, pid + 1) == 0); /* the later one comes first */
    commands_end(commands, 9);                       /* is none */
    int status;
    CHECK(waitpid(pid, &status, 0) == pid); /* cat of /dev/null ends by itself */
    CHECK(!commands_reaped(&commands, ends[0], pid + 2, status));
    CHECK(commands_reaped(&commands, ends[0], pid, 3 << 8));
    char said[32];
    int descriptor;
    CHECK(message_receive(ends[1], said, sizeof said, &descriptor) > 0);
    CHECK(strcmp(said, "ended 7 3") == 0);
    CHECK(!commands_reaped(&commands, ends[0], pid, status));
    CHECK(commands_reaped(&commands, ends[0], pid + 1, SIGKILL) && commands == NULL);
    CHECK(message_receive(ends[1], said, sizeof said, &descriptor) > 0);
    CHECK(strcmp(said, "ended 8 137") == 0);
    close(ends[0]);
    close(ends[1]);
    free(kept);
}

static void test_start_refused(void) {
    char *kept;
    static const char text[] = "start\0/\0"
                               "1\0/nowhere/at/all";
    CHECK(parse(text, sizeof text, &kept) == 0);
    CHECK(program_start(&program, &(struct identity){0}, 2, &NOBODY) == -ENOENT);
    CHECK(errno == ENOENT);
    free(kept);
}

static void test_messages(void) {
    int ends[2];
    int descriptor;
    char buffer[64];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    CHECK(message_send(ends[0], "hello", STDERR_FILENO) == 0);
    CHECK(message_receive(ends[1], buffer, sizeof buffer, &descriptor) == 5);
    CHECK(strcmp(buffer, "hello") == 0 && descriptor > STDERR_FILENO);
    close(descriptor);
    CHECK(message_sendf(ends[0], "%070d", 1) == 0);
    CHECK(message_receive(ends[1], buffer, sizeof buffer, &descriptor) == -EMSGSIZE &&
          errno == EMSGSIZE);
    close(ends[0]);
    CHECK(message_receive(ends[1], buffer, sizeof buffer, &descriptor) == 0);
    close(ends[1]);
}

static void test_numbers(void) {
    long value;
    CHECK(parse_number("0", &value) == 0 && value == 0);
    CHECK(parse_number("4194304", &value) == 0 && value == 4194304);
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(parse_number(bad[i], &value) == -EINVAL);
    }
}

static void test_identity(void) {
    struct identity who = {0};
    CHECK(identity_become(&who) == 0); /* not stated: nobody else */
    CHECK(identity_parse(&who, "105:107") == 0);
    CHECK(who.stated && who.user == 105 && who.group == 107 && who.count == 0);
    CHECK(identity_parse(&who, "1:2:3:4") == 0 && who.count == 2 && who.groups[1] == 4);
    static const char *const bad[] = {"", "1", "a:b", "1:-2", "1:4294967295", "1: 2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(identity_parse(&who, bad[i]) == -EINVAL);
    }
    char many[4 * (MAX_GROUPS + 3) + 1] = "";
    for (size_t i = 0; i < MAX_GROUPS + 3; i++) {
        strcat(many, "7:");
    }
    CHECK(identity_parse(&who, many) == -EINVAL);
}

/* What is not understood is refused before anything is done. */
static void test_furnish_bad(void) {
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {{"", 0},
                 {"start", sizeof "start"},
                 {"furnish\0paint\0wall", sizeof "furnish\0paint\0wall"},
                 {"furnish\0user", sizeof "furnish\0user"},
                 {"furnish\0user\0"
                  "1:2\0pivot",
                  sizeof "furnish.user.1:2.pivot" - 1}, /* the last word is cut */
                 {"furnish\0user\0nobody", sizeof "furnish\0user\0nobody"},
                 {"furnish\0bind\0/nowhere/at/all\0/mnt\0ro",
                  sizeof "furnish\0bind\0/nowhere/at/all\0/mnt\0ro"},
                 {"furnish\0bind\0/tmp\0/mnt", sizeof "furnish\0bind\0/tmp\0/mnt"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct identity who = {0};
        char why[128] = "";
        char *kept = malloc(cases[i].length ? cases[i].length : 1);
        CHECK(kept);
        memcpy(kept, cases[i].text, cases[i].length);
        CHECK(furnish(&who, kept, cases[i].length, why, sizeof why) < 0);
        CHECK(why[0] && !who.stated);
        free(kept);
    }
}

static void test_furnish_files(void) {
    char place[] = "/tmp/ns-test-XXXXXX";
    char text[512];
    char why[128];
    struct identity who = {0};
    CHECK(mkdtemp(place));
    int length =
        snprintf(text, sizeof text, "furnish%cuser%c5:6%cfile%c/etc/hostname%c%s/copy%c640%c%u%c%u",
                 0, 0, 0, 0, 0, place, 0, 0, geteuid(), 0, getegid());
    CHECK(furnish(&who, text, (size_t)length + 1, why, sizeof why) == 0);
    CHECK(who.stated && who.user == 5 && who.group == 6);
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "%s/copy", place);
    CHECK(stat(path, &status) == 0 && (status.st_mode & 07777) == 0640);
    CHECK(unlink(path) == 0);
    length = snprintf(text, sizeof text, "furnish%cfile%c/etc/hostname%c%s/no/copy%c640%c0%c0", 0,
                      0, 0, place, 0, 0, 0);
    CHECK(furnish(&who, text, (size_t)length + 1, why, sizeof why) ==
          -ENOENT); /* nothing is made */
    CHECK(rmdir(place) == 0);
}

static char message[16 * 1024];
static size_t message_length;

/* One more word of it. */
static void say_word(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say_word(const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(message + message_length, sizeof message - message_length, format, args);
    va_end(args);
    message_length += (size_t)length + 1;
    CHECK(message_length <= sizeof message);
}

static void say_file(const char *source, const char *target, const char *mode) {
    say_word("file");
    say_word("%s", source);
    say_word("%s", target);
    say_word("%s", mode);
    say_word("%u", geteuid());
    say_word("%u", getegid());
}

static int furnish_said(void) {
    struct identity who = {0};
    char why[128];
    size_t length = message_length;
    message_length = 0;
    return furnish(&who, message, length, why, sizeof why);
}

/* What is done before a source's turn does not hide it, and set-id bits stay. */
static void test_furnish_opens_first(void) {
    char where[] = "/tmp/ns-test-XXXXXX";
    char one[64], two[64];
    struct stat status, empty;
    CHECK(mkdtemp(where));
    snprintf(one, sizeof one, "%s/one", where);
    snprintf(two, sizeof two, "%s/two", where);
    int file = open(one, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0 && write(file, "before", 6) == 6 && close(file) == 0);
    say_word("furnish");
    say_file("/dev/null", one, "600");
    say_file(one, two, "4751");
    CHECK(furnish_said() == 0);
    CHECK(stat(one, &empty) == 0 && empty.st_size == 0);
    CHECK(stat(two, &status) == 0 && status.st_size == 6 && (status.st_mode & 07777) == 04751);
    CHECK(unlink(one) == 0 && unlink(two) == 0 && rmdir(where) == 0);
}

/* More files than a program may open. */
static void test_furnish_many(void) {
    enum { FILES = 60, MOST = 32 };
    char where[] = "/tmp/ns-test-XXXXXX";
    char path[64];
    struct rlimit before, after;
    CHECK(mkdtemp(where));
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const struct rlimit few = {MOST, before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    say_word("furnish");
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%d", where, i);
        say_file("/dev/null", path, "600");
    }
    CHECK(furnish_said() == 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &after) == 0 && after.rlim_cur == MOST);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%d", where, i);
        CHECK(unlink(path) == 0);
    }
    CHECK(rmdir(where) == 0 && setrlimit(RLIMIT_NOFILE, &before) == 0);
}

/* The same calls as compiler/plan/numbered_draws.py says. */
static void test_which_calls_fail(void) {
    static const uint64_t expected[] = {44, 45, 51, 69, 75, 121, 133, 183, 347};
    size_t count = 0;
    for (uint64_t number = 0; number < 400; number++) {
        if (faults_fails(INT64_MAX - 1, number, 10000000)) {
            CHECK(count < sizeof expected / sizeof *expected && expected[count] == number);
            count++;
        }
        CHECK(faults_fails(7, number, 1000000000) && !faults_fails(7, number, 0));
    }
    CHECK(count == sizeof expected / sizeof *expected);
}

static void test_words_of_faults(void) {
    static const char *const good[] = {"ok", "full", "slow 20000000", "error 10000000 5"};
    static const char *const bad[] = {"", "slow", "slow 1s", "error 5", "error 5 6 7", "fuller"};
    struct faults *faults = faults_make();
    CHECK(faults && !faults_are_allowed(faults));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(faults_set(faults, good[i]) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(faults_set(faults, bad[i]) == -EINVAL);
    }
    CHECK(faults_allow(faults, "reads") == -EINVAL && faults_allow(faults, "reads x") == -EINVAL);
    CHECK(faults_allow(faults, "all /x") == -EINVAL && !faults_are_allowed(faults));
    CHECK(faults_allow(faults, "writes /a place") == 0 && faults_are_allowed(faults));
    size_t writes = faults_hearing(faults, -1).count;
    CHECK(faults_allow(faults, "reads /x") == 0 && faults_hearing(faults, -1).count > writes);
    close(faults_descriptor(faults));
    free(faults);
}

#ifdef __x86_64__
/* Calls with other numbers than those that are heard are not carried out. */
static void test_other_numbers_are_not_carried_out(void) {
    enum { X32 = 0x40000000, MKDIR_OF_32_BIT = 39, WORKS = 7, UNHEARD = 77 };
    int status;
    pid_t child = fork();
    if (child == 0) {
        const char *nowhere = NULL;
        long result = MKDIR_OF_32_BIT;
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syncs_watch(NULL, 0) < 0) {
            _exit(UNHEARD); /* in a sandbox that hears calls itself */
        }
        if (syscall(SYS_getpid | X32) != -1 || errno != ENOSYS || getpid() <= 0) {
            _exit(WORKS);
        }
        __asm__ volatile("int $0x80" : "+a"(result) : "b"(nowhere), "c"(0) : "memory");
        _exit(WORKS);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNHEARD) {
        puts("ns: skipped: nobody can be heard here");
        return;
    }
    /* SIGSEGV: of a kernel without 32-bit calls */
    CHECK(WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV));
}
#endif

int main(void) {
    test_parse_good();
    test_parse_bad();
    test_start();
    test_start_refused();
    test_commands();
    test_messages();
    test_numbers();
    test_identity();
    test_furnish_bad();
    test_furnish_files();
    test_furnish_opens_first();
    test_furnish_many();
    test_which_calls_fail();
    test_words_of_faults();
#ifdef __x86_64__
    test_other_numbers_are_not_carried_out();
#endif
    puts("ns: ok");
    return 0;
}
