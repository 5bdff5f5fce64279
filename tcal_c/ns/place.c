/* Places a copy of a file, which becomes whose it is to be before it gets its rights: a new owner
 * takes the set-id bits away (chown(2)). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ns.h"

int rights_parse(struct rights *rights, char **words) {
    char *end;
    long user;
    long group;
    unsigned long mode = strtoul(words[0], &end, 8);
    if (*end || mode > 07777 || parse_number(words[1], &user) < 0 ||
        parse_number(words[2], &group) < 0) {
        errno = EINVAL;
        return -EINVAL;
    }
    *rights = (struct rights){(mode_t)mode, (uid_t)user, (gid_t)group};
    return 0;
}

static int copy(int source, int target) {
    static char block[64 * 1024];
    ssize_t got;
    while ((got = read(source, block, sizeof block)) > 0) {
        for (ssize_t at = 0; at < got;) {
            ssize_t put = write(target, block + at, (size_t)(got - at));
            if (put < 0) {
                return -1;
            }
            at += put;
        }
    }
    return got < 0 ? -1 : 0;
}

int place_copy(int source, int parent, const char *name, const struct rights *rights) {
    unlinkat(parent, name, 0);
    int target = openat(parent, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (target < 0) {
        return -errno;
    }
    bool done = copy(source, target) == 0 && fchown(target, rights->user, rights->group) == 0 &&
                fchmod(target, rights->mode) == 0;
    int reason = errno;
    close(target);
    errno = reason;
    return done ? 0 : -reason;
}
