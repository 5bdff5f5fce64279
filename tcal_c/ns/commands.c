/* Commands of the run's own in an instance, beside its program. Each is started as the program is,
 * so it is under the same limits, is paused with it, and meets the same faults of the disk.
 *
 * Input: "run NUMBER\0DIRECTORY\0ARGC\0ARG…\0NAME=VALUE…\0" and "end NUMBER" of the driver
 * (instance.c), and what has been reaped. Output: `ended NUMBER STATUS`, as a shell says it, once
 * for each that has begun.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ns.h"

enum { SWEEPS = 16 }; /* looks for processes of a session: one may fork while it is looked for */

struct command {
    struct command *next;
    long number;
    pid_t pid;
};

int commands_add(struct command **commands, long number, pid_t pid) {
    struct command *one = malloc(sizeof *one);
    if (!one) {
        return -errno;
    }
    *one = (struct command){.next = *commands, .number = number, .pid = pid};
    *commands = one;
    return 0;
}

/* Whether a process is in this session and alive, by its /proc/PID/stat. */
static bool is_of_session(const char *name, pid_t session) {
    char path[64];
    char text[512];
    char state = 'Z';
    int found = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    text[length] = '\0';
    const char *behind = strrchr(text, ')'); /* its name may hold anything */
    return behind && sscanf(behind, ") %c %*d %*d %d", &state, &found) == 2 && state != 'Z' &&
           found == session;
}

/* Kills what is in other process groups, as `timeout` makes one. Whether there was anything. */
static bool sweep(pid_t session) {
    bool any = false;
    const struct dirent *entry;
    DIR *processes = opendir("/proc");
    while (processes && (entry = readdir(processes))) {
        long pid;
        if (isdigit((unsigned char)entry->d_name[0]) && parse_number(entry->d_name, &pid) == 0 &&
            is_of_session(entry->d_name, session)) {
            any |= kill((pid_t)pid, SIGKILL) == 0;
        }
    }
    if (processes) {
        closedir(processes);
    }
    return any;
}

void commands_end(const struct command *commands, long number) {
    while (commands && commands->number != number) {
        commands = commands->next;
    }
    if (commands) {
        kill(-commands->pid, SIGKILL); /* it leads a session */
        for (int i = 0; i < SWEEPS && sweep(commands->pid); i++) {
            continue;
        }
    }
}

bool commands_reaped(struct command **commands, int control, pid_t pid, int wait_status) {
    while (*commands && (*commands)->pid != pid) {
        commands = &(*commands)->next;
    }
    struct command *one = *commands;
    if (!one) {
        return false;
    }
    message_sendf(control, "ended %ld %d", one->number, exit_status(wait_status));
    *commands = one->next;
    free(one);
    return true;
}
