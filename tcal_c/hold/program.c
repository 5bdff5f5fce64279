/* Finds and starts the program. Output: a process that leads a session of its own, or the reason
 * why exec was refused. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/signals.h"
#include "hold.h"

static int find_at(const char *path) {
    struct stat file;
    if (stat(path, &file) < 0) /* also where a folder of PATH is closed to this user */
        return EXIT_NOT_FOUND;
    if (!S_ISREG(file.st_mode)) {
        errno = EISDIR;
        return EXIT_NOT_EXECUTABLE;
    }
    return access(path, X_OK) == 0 ? 0 : EXIT_NOT_EXECUTABLE;
}

/* As execvp(3) searches: the first that can be executed; an empty entry is this directory. */
int program_find(const char *name) {
    const char *search = getenv("PATH");
    if (strchr(name, '/') || !*name)
        return find_at(name);
    int result = EXIT_NOT_FOUND;
    int reason = ENOENT;
    for (const char *at = search ? search : "/bin:/usr/bin";; at++) {
        char path[4096];
        int length = (int)strcspn(at, ":");
        int used = snprintf(path, sizeof path, "%.*s%s%s", length, at, length ? "/" : "", name);
        int found = used > 0 && (size_t)used < sizeof path ? find_at(path) : EXIT_NOT_FOUND;
        if (found == 0)
            return 0;
        if (found == EXIT_NOT_EXECUTABLE && result == EXIT_NOT_FOUND) {
            result = found;
            reason = errno;
        }
        at += length;
        if (!*at)
            break;
    }
    errno = reason;
    return result;
}

/* In the child: becomes the program, or writes errno to `failure`. */
static _Noreturn void become(char **argv, int failure) {
    signals_reset();
    if (setsid() >= 0)
        execvp(argv[0], argv);
    int reason = errno;
    ssize_t written = write(failure, &reason, sizeof reason);
    _exit(written == (ssize_t)sizeof reason ? EXIT_NOT_FOUND : EXIT_REFUSED);
}

/* The pipe closes by itself when exec succeeds (O_CLOEXEC), so reading it waits exactly until the
 * program runs or is known not to. */
pid_t program_start(char **argv) {
    int failure[2];
    if (pipe2(failure, O_CLOEXEC) < 0)
        return -1;
    pid_t child = fork();
    if (child == 0)
        become(argv, failure[1]);
    int reason = errno;
    close(failure[1]);
    ssize_t length = 0;
    if (child > 0) {
        do
            length = read(failure[0], &reason, sizeof reason);
        while (length < 0 && errno == EINTR);
    }
    close(failure[0]);
    if (child > 0 && length == 0)
        return child;
    if (child > 0)
        waitpid(child, NULL, 0);
    errno = child < 0 || length == (ssize_t)sizeof reason ? reason : EIO;
    return -1;
}

int exit_status(int wait_status) {
    if (WIFSIGNALED(wait_status))
        return 128 + WTERMSIG(wait_status);
    return WEXITSTATUS(wait_status);
}
