/* install DIR: this very program as DIR/tstorm-hold, there whole or not at all.
 *
 * An init container copies it into a volume from which the program's own image, which may hold
 * nothing but its program, runs it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hold.h"

enum { MODE = 0755, CHUNK = 1 << 20 };

static bool copy(int from, int to) {
    ssize_t moved;
    while ((moved = sendfile(to, from, NULL, CHUNK)) != 0) {
        if (moved < 0 && errno != EINTR) {
            return false;
        }
    }
    return fchmod(to, MODE) == 0; /* whatever the umask */
}

int cmd_install(int argc, char **argv) {
    char partial[4096];
    char target[4096];
    errno = 0;
    if (argc != 2) {
        say("install: a directory is needed");
        return EXIT_REFUSED;
    }
    int used = snprintf(target, sizeof target, "%s/tstorm-hold", argv[1]);
    if (used < 0 || snprintf(partial, sizeof partial, "%s.new", target) >= (int)sizeof partial) {
        say("install: the directory's name is too long");
        return EXIT_REFUSED;
    }
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    bool whole = from >= 0 && to >= 0 && copy(from, to) && close(to) == 0;
    if (whole && rename(partial, target) == 0) {
        return 0;
    }
    say("cannot write %s", target);
    if (to >= 0) {
        unlink(partial);
    }
    return EXIT_REFUSED;
}
