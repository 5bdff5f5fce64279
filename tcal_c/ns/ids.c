/* The user and group numbers of a run's user namespace (user_namespaces(7)).
 *
 * An ordinary user may map one number, its own. More of them newuidmap(1) and newgidmap(1) map,
 * from ranges that the administrator gave the user (/etc/subuid, /etc/subgid). They must be started
 * outside of the namespace, so a child that is there before it waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ns.h"

enum { MAP_WORDS = 3 * 340 }; /* the kernel takes 340 ranges */

static bool write_file(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t written = write(file, text, strlen(text));
    int reason = errno;
    close(file);
    errno = reason;
    return written == (ssize_t)strlen(text);
}

static bool is_mapped(const char *path) {
    char first;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool any = file >= 0 && read(file, &first, 1) == 1;
    if (file >= 0) {
        close(file);
    }
    return any;
}

/* user_namespaces(7) asks for setgroups to be denied before an ordinary user may map a group. */
static bool map_group(const char *groups) {
    return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", groups);
}

/* A map can be written once: groups that newgidmap has mapped stay. */
static bool map_one(unsigned user, unsigned group) {
    char users[64];
    char groups[64];
    snprintf(users, sizeof users, "0 %u 1\n", user);
    snprintf(groups, sizeof groups, "0 %u 1\n", group);
    bool grouped = is_mapped("/proc/self/gid_map") || map_group(groups);
    if (!grouped || !write_file("/proc/self/uid_map", users)) {
        say("cannot map this user to root in its user namespace");
        return false;
    }
    return true;
}

/* Runs `program PID NUMBER…` and returns whether it ended well. What it says is not for the log of
 * a run, which goes on with one number and says so. */
static bool run_mapper(const char *program, pid_t pid, const char *map) {
    static char words[16 * MAP_WORDS];
    char number[16];
    char *argv[MAP_WORDS + 3] = {(char *)(size_t)program, number};
    char *kept = NULL;
    size_t count = 2;
    snprintf(number, sizeof number, "%d", (int)pid);
    snprintf(words, sizeof words, "%s", map);
    for (char *word = strtok_r(words, " ", &kept); word; word = strtok_r(NULL, " ", &kept)) {
        if (count == MAP_WORDS + 2) {
            return false;
        }
        argv[count++] = word;
    }
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        signals_reset();
        dup2(nowhere, STDERR_FILENO);
        execvp(program, argv);
        _exit(EXIT_NOT_FOUND);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && exit_status(status) == 0;
}

/* The helper: waits until the namespace is there, maps, and says with its status how that went.
 * Users come last: if they are not mapped, map_one can still map ours. */
static _Noreturn void map_when_there(int waiting, pid_t pid, const char *users,
                                     const char *groups) {
    char there;
    bool go = read(waiting, &there, 1) == 1;
    bool mapped = go && run_mapper("newgidmap", pid, groups) && run_mapper("newuidmap", pid, users);
    _exit(mapped ? 0 : 1);
}

bool ids_separate(const char *users, const char *groups) {
    unsigned user = (unsigned)geteuid();
    unsigned group = (unsigned)getegid();
    int ends[2];
    pid_t helper = -1;
    if (users && groups) {
        pid_t self = getpid();
        if (pipe2(ends, O_CLOEXEC) < 0 || (helper = fork()) < 0) {
            say("cannot start newuidmap");
            return false;
        }
        if (helper == 0) {
            close(ends[1]);
            map_when_there(ends[0], self, users, groups);
        }
        close(ends[0]);
    }
    if (unshare(CLONE_NEWUSER) < 0) {
        say("cannot create a user namespace");
        return false;
    }
    if (helper < 0) {
        return map_one(user, group);
    }
    int status = -1;
    bool told = write(ends[1], "x", 1) == 1;
    close(ends[1]);
    bool mapped = told && waitpid(helper, &status, 0) == helper && exit_status(status) == 0;
    /* Refused (no range for us, a file without its privilege): one number is better than no run. */
    return mapped || map_one(user, group);
}

int ids_become(uid_t user, gid_t group) {
    char users[64];
    char groups[64];
    snprintf(users, sizeof users, "%u %u 1\n", (unsigned)user, (unsigned)geteuid());
    snprintf(groups, sizeof groups, "%u %u 1\n", (unsigned)group, (unsigned)getegid());
    if (unshare(CLONE_NEWUSER) < 0 || !write_file("/proc/self/setgroups", "deny") ||
        !write_file("/proc/self/uid_map", users) || !write_file("/proc/self/gid_map", groups)) {
        return -errno;
    }
    return 0;
}
