/* Tests of the parts of tstorm-hold that need no container: names, reports, statuses, the search
 * for a program, installing. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
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
    CHECK(order_named("pause") == ORDER_PAUSE && order_named("setup") == ORDER_SETUP);
    CHECK(order_named("") == ORDER_NONE && order_named("joins") == ORDER_NONE);
}

/* Queued values come in order and none is merged; a plain signal is no order. */
static void test_queue(void) {
    static const int watched[] = {HOLD_SIGNAL};
    static const int sent[] = {ORDER_JOIN, ORDER_CRASH, ORDER_JOIN, ORDER_RESUME, 7, 0};
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
        CHECK(number == HOLD_SIGNAL && (int)order == (sent[i] <= ORDER_LAST ? sent[i] : 0));
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
    pid_t pid = program_start(good, NULL, false);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && exit_status(status) == 7);
    CHECK(program_start(bad, NULL, true) == -ENOENT && errno == ENOENT);
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

static void put(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(close(file) == 0);
}

/* Names and numbers; a stated group takes the place of all others. */
static void test_identity(const char *folder) {
    struct identity found;
    CHECK(chdir(folder) == 0);
    put("passwd", "root:x:0:0:root:/root:/bin/sh\nodd\n\ndb:x:70:71::/var/lib/db:/bin/sh\n"
                  "bad:x:y:z::/\n12:x:5:6::/five:\n");
    put("group", "root:x:0:\nssl:x:101:web,db,dba\ndb:x:71:\nmail:x:8:db\nbroken:x::db");
    CHECK(identity_find(&found, "db", "passwd", "group") == 0);
    CHECK(found.uid == 70 && found.gid == 71 && strcmp(found.home, "/var/lib/db") == 0);
    CHECK(found.count == 2 && found.groups[0] == 101 && found.groups[1] == 8);
    CHECK(identity_find(&found, "db:ssl", "passwd", "group") == 0);
    CHECK(found.uid == 70 && found.gid == 101 && found.count == 0);
    CHECK(identity_find(&found, "70", "passwd", "group") == 0 && found.gid == 71);
    CHECK(identity_find(&found, "12", "passwd", "group") == 0);
    CHECK(found.uid == 12 && found.gid == 0 && found.count == 0 && !*found.home);
    CHECK(identity_find(&found, "1000:2000", "absent", "absent") == 0);
    CHECK(found.uid == 1000 && found.gid == 2000);
    static const char *const unknown[] = {
        "", "nobody", "bad", ":db", "db:", "db:wheel", "-1", "db:web", "odd", "99999999999"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CHECK(identity_find(&found, unknown[i], "passwd", "group") == -EINVAL);
    }
    CHECK(identity_find(&found, "db", "absent", "group") == -EINVAL);
}

static void expect(const char *word, const char *expected) {
    char *found = variables_expanded(word);
    CHECK(found && strcmp(found, expected) == 0);
    free(found);
}

static void test_variables(void) {
    CHECK(setenv("TSTORM_INDEX", "3", 1) == 0 && setenv("OTHER", "x", 1) == 0);
    CHECK(unsetenv("TSTORM_NONE") == 0);
    expect("", "");
    expect("$TSTORM_INDEX", "3");
    expect("a${TSTORM_INDEX}b$TSTORM_INDEX-$TSTORM_INDEX.x$", "a3b3-3.x$");
    expect("$OTHER ${OTHER} $$ ${TSTORM_INDEX $TSTORM_NONE $TSTORM_INDEXES $",
           "$OTHER ${OTHER} $$ ${TSTORM_INDEX $TSTORM_NONE $TSTORM_INDEXES $");
    CHECK(setenv("TSTORM_ADDRESSES", "fd00::7,10.1.2.3,10.9.9.9", 1) == 0);
    CHECK(variables_of_addresses() == 0 && !getenv("TSTORM_ADDRESSES"));
    expect("$TSTORM_IPV4 $TSTORM_IPV6", "10.1.2.3 fd00::7");
    CHECK(setenv("TSTORM_ADDRESSES", "10.1.2.4", 1) == 0 && variables_of_addresses() == 0);
    expect("$TSTORM_IPV4 [$TSTORM_IPV6]", "10.1.2.4 []");
    CHECK(variables_of_addresses() == 0 && strcmp(getenv("TSTORM_IPV4"), "10.1.2.4") == 0);
}

static void test_signals(void) {
    CHECK(signal_named("SIGINT") == SIGINT && signal_named("SIGQUIT") == SIGQUIT);
    CHECK(signal_named("SIGRTMIN") == 34 && signal_named("SIGRTMIN+3") == 37);
    CHECK(signal_named("SIGRTMIN+30") == 64 && signal_named("SIGRTMIN+31") == 0);
    CHECK(!signal_named("INT") && !signal_named("SIG") && !signal_named("SIGRTMINx"));
    CHECK(!signal_named("") && !signal_named("SIGNONE"));
}

static void forget(struct options *found) {
    char **const commands[] = {found->argv, found->setup, found->ready};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        for (char **word = commands[i]; word && *word; word++) {
            free(*word);
        }
        free(commands[i]);
    }
}

static void test_options(void) {
    struct options found;
    char *all[] = {"run",     "--reports", "here", "--stop", "SIGINT", "--grace",
                   "30000",   "--setup",   "3",    "a",      "--",     "$NONE",
                   "--ready", "1",         "b",    "--user", "0",      "--ready-timeout",
                   "9",       "--",        "c",    "--stop", NULL};
    CHECK(setenv("HOME", "/stated", 1) == 0);
    CHECK(geteuid() != 0 || options_parse(&found, 22, all) == 0);
    if (geteuid() == 0) {
        CHECK(strcmp(found.reports, "here") == 0 && found.stop == SIGINT);
        CHECK(found.grace_ms == 30000 && found.ready_timeout_ms == 9 && found.user->uid == 0);
        CHECK(strcmp(found.setup[1], "--") == 0 && strcmp(found.setup[2], "$NONE") == 0);
        CHECK(!found.setup[3] && strcmp(found.ready[0], "b") == 0 && !found.ready[1]);
        CHECK(strcmp(found.argv[1], "--stop") == 0 && !found.argv[2]);
        CHECK(strcmp(getenv("HOME"), "/stated") == 0);
        forget(&found);
    }
    char *least[] = {"run", "--", "c", NULL};
    CHECK(options_parse(&found, 3, least) == 0 && found.stop == SIGTERM && !found.user);
    CHECK(found.grace_ms == GRACE_MS && !found.ready_port && !found.setup && !found.ready);
    forget(&found);
    char *wrong[][6] = {{"run", "--", NULL},
                        {"run", "c", NULL},
                        {"run", "--stop", "9", "--", "c", NULL},
                        {"run", "--grace", "soon", "--", "c", NULL},
                        {"run", "--setup", "3", "--", "c", NULL},
                        {"run", "--setup", "0", "--", "c", NULL},
                        {"run", "--ready-port", "65536", "--", "c", NULL},
                        {"run", "--user", "no-such-user", "--", "c", NULL},
                        {"run", "--reports", NULL}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int count = 0;
        while (count < 6 && wrong[i][count]) {
            count++;
        }
        CHECK(options_parse(&found, count, wrong[i]) == EXIT_REFUSED);
    }
}

static void test_directory(const char *folder) {
    struct options found;
    char path[256];
    char here[256];
    snprintf(path, sizeof path, "%s/some/where/new", folder);
    char *argv[] = {"run", "--cwd", path, "--", "c", NULL};
    CHECK(options_parse(&found, 5, argv) == 0);
    CHECK(getcwd(here, sizeof here) && strcmp(here, path) == 0);
    CHECK(strcmp(getenv("PWD"), path) == 0);
    forget(&found);
    argv[2] = "relative";
    CHECK(options_parse(&found, 5, argv) == EXIT_REFUSED);
    argv[2] = "/dev/null/x";
    CHECK(options_parse(&found, 5, argv) == EXIT_REFUSED);
}

static void settle(struct readiness *self, int64_t now_ms) {
    int status;
    readiness_act(self, now_ms);
    if (self->check > 0) {
        pid_t pid = self->check;
        CHECK(waitpid(pid, &status, 0) == pid && !readiness_reaped(self, pid + 1, 0, now_ms));
        CHECK(readiness_reaped(self, pid, status, now_ms));
    }
}

/* A command that fails is tried again, later each time, until it succeeds or time is over. */
static void test_readiness(const char *folder) {
    char *argv[] = {"/bin/sh", "-c", "echo loud; test -e up", NULL};
    struct options wanted = {.ready = argv, .ready_timeout_ms = 5000};
    struct readiness self;
    CHECK(chdir(folder) == 0);
    readiness_begin(&self, &wanted, 1000);
    static const int64_t expected[] = {1000, 1100, 1300, 1700, 2500, 3500, 4500};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        CHECK(readiness_due_ms(&self) == expected[i]);
        settle(&self, expected[i]);
    }
    put("up", "");
    settle(&self, 5000);
    CHECK(self.watching && readiness_due_ms(&self) == 5500);
    settle(&self, 5500);
    CHECK(!self.watching && readiness_due_ms(&self) == -1);
    readiness_begin(&self, &wanted, 0);
    argv[2] = "sleep 1000";
    readiness_act(&self, 0);
    CHECK(self.check > 0 && readiness_due_ms(&self) == 5000);
    readiness_act(&self, 5000); /* over: it is killed */
    CHECK(!self.watching && waitpid(self.check, NULL, 0) == self.check);
}

static void test_readiness_of_a_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(server >= 0 && bind(server, (void *)&at, sizeof at) == 0);
    CHECK(getsockname(server, (void *)&at, &size) == 0);
    struct options wanted = {.ready_port = ntohs(at.sin_port), .ready_timeout_ms = 1000};
    struct readiness self;
    readiness_begin(&self, &wanted, 0);
    settle(&self, 0);
    CHECK(self.watching && self.next_ms == 100);
    CHECK(listen(server, 1) == 0);
    settle(&self, 100);
    CHECK(!self.watching);
    close(server);
}

/* Removes what the tests above have made. */
static void clear(const char *folder) {
    char *argv[] = {"/bin/rm", "-rf", (char *)(size_t)folder, NULL};
    int status;
    pid_t pid = program_start(argv, NULL, false);
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
    test_identity(folder);
    test_variables();
    test_signals();
    test_options();
    test_directory(folder);
    test_readiness(folder);
    test_readiness_of_a_port();
    clear(folder);
    puts("hold: ok");
    return 0;
}
