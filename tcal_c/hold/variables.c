/* The run's own variables in the words of commands: `$TSTORM_NAME` and `${TSTORM_NAME}` become the
 * variable's value; one that is not set, and every other `$`, stays as it is written.
 *
 * The addresses of a pod are known to its containers only as a list (`status.podIPs`), which
 * TSTORM_ADDRESSES is; programs get them as in a local run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hold.h"

static const char PREFIX[] = "TSTORM_";
static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/* The value of the variable that `at` begins with, NULL if it is none; its end in `end`. */
static const char *variable_at(const char *at, const char **end) {
    char name[64];
    bool braces = at[0] == '$' && at[1] == '{';
    const char *begin = at + 1 + braces;
    size_t length = *at == '$' ? strspn(begin, LETTERS) : 0;
    if (length >= sizeof name || strncmp(begin, PREFIX, sizeof PREFIX - 1) != 0 ||
        (braces && begin[length] != '}')) {
        return NULL;
    }
    memcpy(name, begin, length);
    name[length] = '\0';
    *end = begin + length + braces;
    return getenv(name);
}

char *variables_expanded(const char *word) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return NULL;
    }
    while (*word) {
        const char *end = word + 1;
        const char *value = variable_at(word, &end);
        if (value) {
            fputs(value, out);
            word = end;
        } else {
            fputc(*word++, out);
        }
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

int variables_of_addresses(void) {
    const char *listed = getenv("TSTORM_ADDRESSES");
    if (!listed) {
        return 0;
    }
    char *copy = strdup(listed);
    if (!copy) {
        return -errno;
    }
    int result = setenv("TSTORM_IPV4", "", 1) | setenv("TSTORM_IPV6", "", 1);
    for (char *rest = copy, *one; (one = strsep(&rest, ",")) && result == 0;) {
        const char *name = strchr(one, ':') ? "TSTORM_IPV6" : "TSTORM_IPV4";
        if (*one && !*getenv(name)) {
            result = setenv(name, one, 1);
        }
    }
    free(copy);
    unsetenv("TSTORM_ADDRESSES");
    return result < 0 ? -errno : 0;
}
