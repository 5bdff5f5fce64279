/* Tests of the parts of tstorm-ns that need no namespace: messages, start requests, helpers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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
        {"stop\0/\0"
         "1\0a",
         11}, /* another verb */
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
    pid_t pid = program_start(&program, ends[1]);
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

static void test_start_refused(void) {
    char *kept;
    static const char text[] = "start\0/\0"
                               "1\0/nowhere/at/all";
    CHECK(parse(text, sizeof text, &kept) == 0);
    CHECK(program_start(&program, 2) == -ENOENT);
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

int main(void) {
    test_parse_good();
    test_parse_bad();
    test_start();
    test_start_refused();
    test_messages();
    test_numbers();
    puts("ns: ok");
    return 0;
}
