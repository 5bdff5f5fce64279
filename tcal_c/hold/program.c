/* Finds and starts the program. Output: a process that leads a session of its own and is the
 * user's that was asked for, or the reason why that or exec was refused. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hold.h"

static int find_at(const char *path) {
    struct stat file;
    if (stat(path, &file) < 0) { /* also where a folder of PATH is closed to this user */
        return EXIT_NOT_FOUND;
    }
    if (!S_ISREG(file.st_mode)) {
        errno = EISDIR;
        return EXIT_NOT_EXECUTABLE;
    }
    return access(path, X_OK) == 0 ? 0 : EXIT_NOT_EXECUTABLE;
}

/* As execvp(3) searches: the first that can be executed; an empty entry is this directory. */
int program_find(const char *name) {
    const char *search = getenv("PATH");
    if (strchr(name, '/') || !*name) {
        return find_at(name);
    }
    int result = EXIT_NOT_FOUND;
    int reason = ENOENT;
    for (const char *at = search ? search : "/bin:/usr/bin";; at++) {
        char path[4096];
        int length = (int)strcspn(at, ":");
        int used = snprintf(path, sizeof path, "%.*s%s%s", length, at, length ? "/" : "", name);
        int found = used > 0 && (size_t)used < sizeof path ? find_at(path) : EXIT_NOT_FOUND;
        if (found == 0) {
            return 0;
        }
        if (found == EXIT_NOT_EXECUTABLE && result == EXIT_NOT_FOUND) {
            result = found;
            reason = errno;
        }
        at += length;
        if (!*at) {
            break;
        }
    }
    errno = reason;
    return result;
}

struct start {
    char **argv;
    const struct identity *user;
    bool quiet;
};

static bool silenced(void) {
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return nothing >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 && dup2(nothing, STDERR_FILENO) >= 0;
}

static void become(const void *context) {
    const struct start *self = context;
    signals_reset();
    if (setsid() < 0 || (self->quiet && !silenced())) {
        return;
    }
    if (!self->user || identity_assume(self->user) == 0) {
        execvp(self->argv[0], self->argv);
    }
}

pid_t program_start(char **argv, const struct identity *user, bool quiet) {
    const struct start start = {.argv = argv, .user = user, .quiet = quiet};
    return process_start(become, &start);
}
