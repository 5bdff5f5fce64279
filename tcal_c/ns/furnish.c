/* Furnishes an instance: what its program finds around it, before it starts. The driver composes
 * the operations (runtime/backend/local/filesystem/instance_filesystem.py), PID 1 of the instance
 * carries them out in its own namespaces, in order:
 *
 *   root DIR                       DIR is the root to be: targets are in it from now on, and made
 *   overlay TARGET OPTIONS         an overlay file system (its options as for mount(8))
 *   tmpfs TARGET                   an empty directory that everybody may enter; targets in it are
 *                                  made
 *   bind SOURCE TARGET ro|rw       a file or directory of the machine
 *   directory TARGET MODE UID GID  made with these if it is missing
 *   file SOURCE TARGET MODE UID GID  a copy of it; MODE is octal
 *   sysctl PATH VALUE              a file in /proc/sys
 *   user UID:GID[:GROUP…]          who programs are
 *   pivot                          the root to be becomes the root
 *
 * Sources are opened before anything is mounted, so a mount hides no source. Targets never leave
 * the root to be, whatever links there are in it (openat2(2), RESOLVE_IN_ROOT).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ns.h"

enum { MAX_SOURCES = 4096, MAX_ARGUMENTS = 5, SPARE_DESCRIPTORS = 64 };

struct furnishing {
    struct identity *who;
    const char *root; /* its path */
    int root_fd;
    bool make;           /* targets that are missing */
    const char *covered; /* a directory of ours, in which they are made in any case; or NULL */
    int sources[MAX_SOURCES];
    size_t used; /* of them */
    char *why;
    size_t room;
};

struct operation {
    const char *verb;
    int arguments;
    int (*perform)(struct furnishing *, char **);
};

static int failed(struct furnishing *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns -errno; `why` says what could not be done. */
static int failed(struct furnishing *self, const char *format, ...) {
    int reason = errno;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(self->why, self->room, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < self->room) {
        snprintf(self->why + length, self->room - (size_t)length, ": %s", strerror(reason));
    }
    return -(reason ? reason : EINVAL);
}

static int open_root(struct furnishing *self) {
    int fd = open(self->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    if (self->root_fd >= 0) {
        close(self->root_fd);
    }
    self->root_fd = fd;
    return 0;
}

static int find(const struct furnishing *self, const char *path) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    return (int)syscall(SYS_openat2, self->root_fd, *path ? path : "/", &how, sizeof how);
}

static int make_in(const struct furnishing *self, const char *path, bool directory);

/* The directory of a target, made where it is missing and that is allowed; *name is its last part.
 */
static int parent_of(const struct furnishing *self, const char *path, const char **name) {
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof above || !**name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(above, path, length);
    above[length] = '\0';
    return make_in(self, above, true);
}

static bool may_make(const struct furnishing *self, const char *path) {
    size_t length = self->covered ? strlen(self->covered) : 0;
    return self->make ||
           (length && strncmp(path, self->covered, length) == 0 && path[length] == '/');
}

/* Opens a target (O_PATH), which is made if it is missing and that is allowed. -1 with errno. */
static int make_in(const struct furnishing *self, const char *path, bool directory) {
    const char *name;
    int found = find(self, path);
    if (found >= 0 || errno != ENOENT || !may_make(self, path)) {
        return found;
    }
    int parent = parent_of(self, path, &name);
    if (parent < 0) {
        return -1;
    }
    int made = directory ? mkdirat(parent, name, 0755)
                         : openat(parent, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    int reason = errno;
    close(parent);
    if (made < 0) {
        errno = reason;
        return -1;
    }
    if (!directory) {
        close(made);
    }
    return find(self, path);
}

static const char *by_number(char room[32], int fd) {
    snprintf(room, 32, "/proc/self/fd/%d", fd);
    return room;
}

static int do_root(struct furnishing *self, char **words) {
    self->root = words[0];
    if (mount(words[0], words[0], NULL, MS_BIND, NULL) < 0 || open_root(self) < 0) {
        return failed(self, "make %s a root", words[0]);
    }
    self->make = true;
    return 0;
}

static int mount_new(struct furnishing *self, const char *kind, const char *target,
                     unsigned long flags, const char *options) {
    char where[32];
    int fd = make_in(self, target, true);
    if (fd < 0) {
        return failed(self, "find %s", target);
    }
    int done = mount(kind, by_number(where, fd), kind, flags, options);
    int reason = errno;
    close(fd);
    errno = reason;
    if (done < 0) {
        return failed(self, "mount %s on %s", kind, target);
    }
    if (strcmp(target, "/") == 0 && open_root(self) < 0) {
        return failed(self, "open %s", self->root);
    }
    return 0;
}

static int do_overlay(struct furnishing *self, char **words) {
    return mount_new(self, "overlay", words[0], MS_NODEV, words[1]);
}

static int do_tmpfs(struct furnishing *self, char **words) {
    self->covered = words[0];
    return mount_new(self, "tmpfs", words[0], MS_NOSUID | MS_NODEV, "mode=755");
}

static int do_bind(struct furnishing *self, char **words) {
    char from[32];
    char to[32];
    struct stat status;
    int source = self->sources[self->used++];
    if (fstat(source, &status) < 0) {
        return failed(self, "look at %s", words[0]);
    }
    int target = make_in(self, words[1], S_ISDIR(status.st_mode));
    if (target < 0) {
        return failed(self, "find %s, where %s is to be", words[1], words[0]);
    }
    int done = mount(by_number(from, source), by_number(to, target), NULL, MS_BIND | MS_REC, NULL);
    int reason = errno;
    close(target);
    errno = reason;
    if (done < 0) {
        return failed(self, "mount %s on %s", words[0], words[1]);
    }
    if (strcmp(words[2], "ro") != 0) {
        return 0;
    }
    target = find(self, words[1]); /* now what was mounted */
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
    done = target < 0 ? -1
                      : (int)syscall(SYS_mount_setattr, target, "", AT_EMPTY_PATH | AT_RECURSIVE,
                                     &attributes, sizeof attributes);
    reason = errno;
    if (target >= 0) {
        close(target);
    }
    errno = reason;
    return done < 0 ? failed(self, "make %s read-only", words[1]) : 0;
}

static int do_directory(struct furnishing *self, char **words) {
    struct rights rights;
    if (rights_parse(&rights, words + 1) < 0) {
        return failed(self, "make %s", words[0]);
    }
    int found = find(self, words[0]);
    bool made = found < 0 && errno == ENOENT && may_make(self, words[0]);
    if (made) {
        found = make_in(self, words[0], true);
    }
    char path[32];
    bool done =
        found >= 0 && (!made || (chown(by_number(path, found), rights.user, rights.group) == 0 &&
                                 chmod(by_number(path, found), rights.mode) == 0));
    int reason = errno;
    if (found >= 0) {
        close(found);
    }
    errno = reason;
    return done ? 0 : failed(self, "find %s", words[0]);
}

static int do_file(struct furnishing *self, char **words) {
    const char *name;
    struct rights rights;
    int source = self->sources[self->used++];
    if (rights_parse(&rights, words + 2) < 0) {
        return failed(self, "place %s", words[1]);
    }
    int parent = parent_of(self, words[1], &name);
    bool done = parent >= 0 && place_copy(source, parent, name, &rights) == 0;
    int reason = errno;
    if (parent >= 0) {
        close(parent);
    }
    errno = reason;
    return done ? 0 : failed(self, "place %s", words[1]);
}

static int do_sysctl(struct furnishing *self, char **words) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/sys/%s", words[0]);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written = file < 0 ? -1 : write(file, words[1], strlen(words[1]));
    int reason = errno;
    if (file >= 0) {
        close(file);
    }
    errno = reason;
    return written < 0 ? failed(self, "set %s to %s", path, words[1]) : 0;
}

static int do_user(struct furnishing *self, char **words) {
    return identity_parse(self->who, words[0]) < 0 ? failed(self, "be user %s", words[0]) : 0;
}

/* The old root is put under the new one and taken away there (pivot_root(2)). */
static int do_pivot(struct furnishing *self, char **words) {
    (void)words;
    if (fchdir(self->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0) {
        return failed(self, "change the root to %s", self->root);
    }
    self->root = "/";
    return open_root(self);
}

static const struct operation OPERATIONS[] = {
    {"root", 1, do_root},     {"overlay", 2, do_overlay},     {"tmpfs", 1, do_tmpfs},
    {"bind", 3, do_bind},     {"directory", 4, do_directory}, {"file", 5, do_file},
    {"sysctl", 2, do_sysctl}, {"user", 1, do_user},           {"pivot", 0, do_pivot},
};

/* Takes the next operation; NULL at the end or if it is malformed (then *at is not `end`). */
static const struct operation *next(char **at, char *end, char *words[MAX_ARGUMENTS]) {
    char *begin = *at;
    const char *verb = next_word(at, end);
    for (size_t i = 0; verb && i < sizeof OPERATIONS / sizeof *OPERATIONS; i++) {
        const struct operation *found = &OPERATIONS[i];
        if (strcmp(found->verb, verb) != 0) {
            continue;
        }
        for (int word = 0; word < found->arguments; word++) {
            if (!(words[word] = next_word(at, end))) {
                *at = begin;
                return NULL;
            }
        }
        return found;
    }
    *at = begin;
    return NULL;
}

/* All of what there is to do is understood, and each source open, before anything is done. */
static int open_sources(struct furnishing *self, char *at, char *end) {
    char *words[MAX_ARGUMENTS];
    const struct operation *operation;
    size_t opened = 0;
    while ((operation = next(&at, end, words))) {
        bool is_file = operation->perform == do_file;
        if (!is_file && operation->perform != do_bind) {
            continue;
        }
        if (opened == MAX_SOURCES) {
            errno = E2BIG;
            return failed(self, "take so many files");
        }
        self->sources[opened] = open(words[0], (is_file ? O_RDONLY : O_PATH) | O_CLOEXEC);
        if (self->sources[opened] < 0) {
            return failed(self, "open %s", words[0]);
        }
        opened++;
    }
    if (at != end) {
        errno = EINVAL;
        return failed(self, "understand what to do");
    }
    return 0;
}

static int perform_all(struct furnishing *self, char *text, char *end) {
    char *words[MAX_ARGUMENTS];
    char *at = text;
    const struct operation *operation;
    int opened = open_sources(self, text, end);
    if (opened < 0) {
        return opened;
    }
    while ((operation = next(&at, end, words))) {
        int done = operation->perform(self, words);
        if (done < 0) {
            return done;
        }
    }
    return 0;
}

/* There may be more sources than programs may have descriptors (often 1,024): the limit that it
 * was, for them. */
static struct rlimit allow_sources(void) {
    struct rlimit before = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_NOFILE, &before);
    rlim_t wanted = MAX_SOURCES + SPARE_DESCRIPTORS;
    wanted = wanted < before.rlim_max ? wanted : before.rlim_max;
    if (before.rlim_cur < wanted) {
        /* Where it is refused, opening says so. */
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){wanted, before.rlim_max});
    }
    return before;
}

int furnish(struct identity *who, char *text, size_t length, char *why, size_t room) {
    static struct furnishing self;
    self = (struct furnishing){.who = who, .root = "/", .root_fd = -1, .why = why, .room = room};
    for (size_t i = 0; i < MAX_SOURCES; i++) {
        self.sources[i] = -1;
    }
    struct rlimit limit = allow_sources();
    char *at = text;
    const char *verb = next_word(&at, text + length);
    int done;
    if (!verb || strcmp(verb, "furnish") != 0) {
        errno = EINVAL;
        done = failed(&self, "understand what to do");
    } else {
        done =
            open_root(&self) < 0 ? failed(&self, "open /") : perform_all(&self, at, text + length);
    }
    for (size_t i = 0; i < MAX_SOURCES && self.sources[i] >= 0; i++) {
        close(self.sources[i]);
    }
    if (self.root_fd >= 0) {
        close(self.root_fd);
    }
    setrlimit(RLIMIT_NOFILE, &limit);
    return done;
}
