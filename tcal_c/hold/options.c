/* What `run` is asked for: options, `--`, and the program's words.
 *
 * A command among the options says first how many words it has, so that no word of it is taken for
 * an option. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hold.h"

enum { RTMIN = 34, MAX_SIGNAL = 64, MAX_MS = 86400000 };

int signal_named(const char *name) {
    long offset;
    if (strncmp(name, "SIG", 3) != 0) {
        return 0;
    }
    name += 3;
    if (strncmp(name, "RTMIN", 5) == 0) {
        if (!name[5]) {
            return RTMIN;
        }
        bool valid = name[5] == '+' && parse_number(name + 6, &offset) == 0;
        return valid && offset <= MAX_SIGNAL - RTMIN ? RTMIN + (int)offset : 0;
    }
    for (int number = 1; number < RTMIN; number++) {
        const char *known = sigabbrev_np(number);
        if (known && strcmp(known, name) == 0) {
            return number;
        }
    }
    return 0;
}

/* `count` words, expanded; NULL after saying why not. */
static char **words_of(char **from, int count) {
    char **words = calloc((size_t)count + 1, sizeof *words);
    for (int i = 0; words && i < count; i++) {
        words[i] = variables_expanded(from[i]);
        if (!words[i]) {
            say("no memory for the words of a command");
            return NULL;
        }
    }
    return words;
}

struct cursor {
    char **argv;
    int at;
    int argc;
};

static const char *next(struct cursor *self) {
    return self->at < self->argc ? self->argv[self->at++] : "";
}

static bool take_milliseconds(struct cursor *from, int64_t *into) {
    long value;
    bool valid = parse_number(next(from), &value) == 0 && value <= MAX_MS;
    *into = valid ? value : 0;
    return valid;
}

static bool take_command(struct cursor *from, char ***into) {
    long count;
    if (parse_number(next(from), &count) < 0 || count < 1 || count > from->argc - from->at) {
        return false;
    }
    *into = words_of(from->argv + from->at, (int)count);
    from->at += (int)count;
    return *into != NULL;
}

static bool take_port(struct cursor *from, int *into) {
    long port;
    bool valid = parse_number(next(from), &port) == 0 && port > 0 && port < 65536;
    *into = valid ? (int)port : 0;
    return valid;
}

/* From the user that we are to another one only as root. Its home, unless env= has stated one: then
 * it is not that of who we are, nor `/`, as container engines set it. */
static bool take_user(struct cursor *from, const struct identity **into) {
    static struct identity user;
    struct identity self;
    char us[16];
    const char *words = next(from);
    const char *home = getenv("HOME");
    if (identity_find(&user, words, "/etc/passwd", "/etc/group") < 0) {
        say("this container has no user %s", words);
        return false;
    }
    if (geteuid() != 0 && !identity_is_ours(&user)) {
        errno = EPERM;
        say("only root can become user %s", words);
        return false;
    }
    snprintf(us, sizeof us, "%u", geteuid());
    identity_find(&self, us, "/etc/passwd", "/etc/group");
    if (*user.home && (!home || strcmp(home, "/") == 0 || strcmp(home, self.home) == 0)) {
        setenv("HOME", user.home, 1);
    }
    *into = &user;
    return true;
}

static bool take_option(struct options *found, struct cursor *from) {
    const char *name = next(from);
    if (strcmp(name, "--reports") == 0) {
        found->reports = next(from);
        return *found->reports;
    }
    if (strcmp(name, "--stop") == 0) {
        found->stop = signal_named(next(from));
        return found->stop > 0;
    }
    if (strcmp(name, "--grace") == 0) {
        return take_milliseconds(from, &found->grace_ms);
    }
    if (strcmp(name, "--user") == 0) {
        return take_user(from, &found->user);
    }
    if (strcmp(name, "--cwd") == 0) {
        found->cwd = next(from);
        return *found->cwd == '/';
    }
    if (strcmp(name, "--setup") == 0) {
        return take_command(from, &found->setup);
    }
    if (strcmp(name, "--ready") == 0) {
        return take_command(from, &found->ready);
    }
    if (strcmp(name, "--ready-port") == 0) {
        return take_port(from, &found->ready_port);
    }
    return strcmp(name, "--ready-timeout") == 0 &&
           take_milliseconds(from, &found->ready_timeout_ms);
}

/* The directory that programs run in, made where it is not there. It is the user's, since one that
 * a container engine has made for a mount in it is root's. */
static bool enter_directory(const char *path, const struct identity *user) {
    char part[4096];
    if (strlen(path) >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (size_t at = 1; at <= strlen(path); at++) {
        if (path[at] == '/' || !path[at]) {
            memcpy(part, path, at);
            part[at] = '\0';
            if (mkdir(part, 0755) < 0 && errno != EEXIST) {
                return false;
            }
        }
    }
    bool ours = !user || geteuid() != 0 || chown(path, user->uid, user->gid) == 0;
    return ours && chdir(path) == 0 && setenv("PWD", path, 1) == 0;
}

int options_parse(struct options *found, int argc, char **argv) {
    struct cursor from = {.argv = argv, .at = 1, .argc = argc};
    *found = (struct options){.reports = "/tstorm/reports",
                              .stop = SIGTERM,
                              .grace_ms = GRACE_MS,
                              .ready_timeout_ms = READY_TIMEOUT_MS};
    if (variables_of_addresses() < 0) {
        say("no memory for variables");
        return EXIT_REFUSED;
    }
    while (from.at < argc && strcmp(argv[from.at], "--") != 0) {
        const char *name = argv[from.at];
        errno = 0;
        if (!take_option(found, &from)) {
            say("run: %s is no option, or not complete", name);
            return EXIT_REFUSED;
        }
    }
    errno = 0;
    if (from.at >= argc - 1) {
        say("run: --, and a program after it, are needed");
        return EXIT_REFUSED;
    }
    if (found->cwd && !enter_directory(found->cwd, found->user)) {
        say("cannot use the directory %s", found->cwd);
        return EXIT_REFUSED;
    }
    found->argv = words_of(argv + from.at + 1, argc - from.at - 1);
    return found->argv ? 0 : EXIT_REFUSED;
}
