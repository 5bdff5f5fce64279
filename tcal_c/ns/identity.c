/* Who a program is: the user and groups that an instance states for it (user_namespaces(7): the
 * numbers are those of the run's user namespace). */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ns.h"

int identity_parse(struct identity *who, const char *text) {
    char copy[1024];
    char *kept = NULL;
    long numbers[MAX_GROUPS + 2];
    size_t count = 0;
    errno = EINVAL;
    bool mapped = strncmp(text, "map:", 4) == 0;
    text += mapped ? 4 : 0;
    if (strlen(text) >= sizeof copy) {
        return -EINVAL;
    }
    memcpy(copy, text, strlen(text) + 1);
    for (char *word = strtok_r(copy, ":", &kept); word; word = strtok_r(NULL, ":", &kept)) {
        if (count == MAX_GROUPS + 2 || parse_number(word, &numbers[count]) < 0 ||
            numbers[count] >= (long)(uid_t)-1) {
            errno = EINVAL;
            return -EINVAL;
        }
        count++;
    }
    if (count < 2) {
        return -EINVAL;
    }
    *who = (struct identity){.stated = true,
                             .mapped = mapped,
                             .user = (uid_t)numbers[0],
                             .group = (gid_t)numbers[1],
                             .count = count - 2};
    for (size_t i = 0; i < who->count; i++) {
        who->groups[i] = (gid_t)numbers[i + 2];
    }
    return 0;
}

int identity_become(const struct identity *who) {
    if (!who->stated) {
        return 0;
    }
    if (who->mapped) {
        return ids_become(who->user, who->group);
    }
    if (setgroups(who->count, who->groups) < 0 ||
        setresgid(who->group, who->group, who->group) < 0 ||
        setresuid(who->user, who->user, who->user) < 0) {
        return -errno;
    }
    return 0;
}
