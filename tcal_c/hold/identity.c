/* Who a program runs as: USER[:GROUP] of this container, as its own /etc/passwd and /etc/group
 * have it (passwd(5), group(5)). The files are read here, since a static program has no NSS.
 *
 * As container engines do: a number needs no entry and then has group 0; a user's further groups
 * count only where no group is stated. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hold.h"

enum { FIELDS = 7, WORD = 256 };

/* A line in its fields, in place; those that it has not are empty. */
static void split(char *line, char *fields[FIELDS]) {
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < FIELDS; i++) {
        fields[i] = line;
        line += strcspn(line, ":");
        if (*line) {
            *line++ = '\0';
        }
    }
}

/* Calls `take` with the fields of every line. A file that is not there has none. */
static void each_line(const char *path, void (*take)(char *fields[FIELDS], void *context),
                      void *context) {
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    while (file && getline(&line, &size, file) >= 0) {
        char *fields[FIELDS];
        split(line, fields);
        take(fields, context);
    }
    free(line);
    if (file) {
        fclose(file);
    }
}

static bool number_of(const char *text, unsigned *value) {
    long found;
    if (!*text || parse_number(text, &found) < 0 || found > 0x7fffffff) {
        return false;
    }
    *value = (unsigned)found;
    return true;
}

struct search {
    const char *name; /* as stated */
    bool by_number;
    unsigned number;
    bool found;
    char user[WORD]; /* passwd's name of it */
    struct identity *into;
};

static bool matches(const struct search *self, const char *name, const char *number) {
    unsigned value;
    if (self->by_number) {
        return number_of(number, &value) && value == self->number;
    }
    return strcmp(name, self->name) == 0;
}

static void take_user(char *fields[FIELDS], void *context) {
    struct search *self = context;
    unsigned uid;
    unsigned gid;
    if (self->found || !matches(self, fields[0], fields[2]) || !number_of(fields[2], &uid) ||
        !number_of(fields[3], &gid)) {
        return;
    }
    self->found = true;
    self->into->uid = uid;
    self->into->gid = gid;
    snprintf(self->user, sizeof self->user, "%s", fields[0]);
    snprintf(self->into->home, sizeof self->into->home, "%s", fields[5]);
}

static void take_group(char *fields[FIELDS], void *context) {
    struct search *self = context;
    unsigned gid;
    if (!self->found && matches(self, fields[0], fields[2]) && number_of(fields[2], &gid)) {
        self->found = true;
        self->into->gid = gid;
    }
}

static void take_membership(char *fields[FIELDS], void *context) {
    struct search *self = context;
    unsigned gid;
    if (!number_of(fields[2], &gid)) {
        return;
    }
    for (char *rest = fields[3], *name; (name = strsep(&rest, ","));) {
        if (strcmp(name, self->user) == 0 && self->into->count < MAX_GROUPS) {
            self->into->groups[self->into->count++] = gid;
            return;
        }
    }
}

static struct search search_for(const char *name, struct identity *into) {
    struct search self = {.name = name, .into = into};
    self.by_number = number_of(name, &self.number);
    return self;
}

int identity_find(struct identity *found, const char *words, const char *passwd,
                  const char *group) {
    char user[WORD];
    memset(found, 0, sizeof *found);
    size_t length = strcspn(words, ":");
    if (length == 0 || length >= sizeof user) {
        errno = EINVAL;
        return -errno;
    }
    memcpy(user, words, length);
    user[length] = '\0';
    struct search one = search_for(user, found);
    each_line(passwd, take_user, &one);
    if (!one.found && one.by_number) {
        found->uid = one.number;
        one.found = true;
    }
    if (one.found && words[length] == ':') {
        one = search_for(words + length + 1, found);
        each_line(group, take_group, &one);
        if (!one.found && one.by_number) {
            found->gid = one.number;
            one.found = true;
        }
    } else if (one.found && *one.user) {
        each_line(group, take_membership, &one);
    }
    errno = one.found ? 0 : EINVAL;
    return -errno;
}

bool identity_is_ours(const struct identity *wanted) {
    return wanted->uid == geteuid() && wanted->gid == getegid() && wanted->count == 0;
}

int identity_assume(const struct identity *wanted) {
    if (geteuid() != 0 && identity_is_ours(wanted)) {
        return 0;
    }
    if (setgroups(wanted->count, wanted->groups) < 0 || setgid(wanted->gid) < 0 ||
        setuid(wanted->uid) < 0) {
        return -errno;
    }
    return 0;
}
