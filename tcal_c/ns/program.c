/* Starts one program of an instance. Input: the driver's `start` or `run` message; output: a
 * process in a session of its own with stdin from /dev/null, or the reason why exec was refused. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ns.h"

char *next_word(char **at, char *end) {
    char *word = *at;
    char *stop = word < end ? memchr(word, '\0', (size_t)(end - word)) : NULL;
    if (!stop) {
        return NULL;
    }
    *at = stop + 1;
    return word;
}

int program_parse(struct program *program, char *text, size_t length) {
    char *at = text;
    char *end = text + length;
    errno = EINVAL;
    program->directory = next_word(&at, end) ? next_word(&at, end) : NULL; /* after the verb */
    const char *count_text = program->directory ? next_word(&at, end) : NULL;
    long count;
    if (!count_text || parse_number(count_text, &count) < 0 || count < 1 || count > MAX_WORDS) {
        return -EINVAL;
    }
    for (long i = 0; i < count; i++) {
        if (!(program->argv[i] = next_word(&at, end))) {
            return -EINVAL;
        }
    }
    program->argv[count] = NULL;
    size_t entries = 0;
    char *entry;
    while ((entry = next_word(&at, end))) {
        if (entries == MAX_WORDS || !strchr(entry, '=')) {
            return -EINVAL;
        }
        program->env[entries++] = entry;
    }
    program->env[entries] = NULL;
    return at == end ? 0 : -EINVAL; /* a last word without its NUL is a cut message */
}

struct start {
    const struct program *program;
    const struct identity *who;
    int log;
    const struct hearing *hearing;
};

static bool tell_syncs(const struct hearing *hearing) {
    if (hearing->socket < 0) {
        return true;
    }
    int listener = syncs_watch(hearing->more, hearing->count);
    bool told = listener >= 0 && message_send(hearing->socket, "syncs", listener) >= 0;
    if (listener >= 0) {
        close(listener);
    }
    return told;
}

/* Another user may not have itself heard: that comes before. In a user namespace of its own it may,
 * and has to: that is made by writing files, and whoever lets writes pass waits for our start. */
static bool become_heard(const struct start *start) {
    if (start->who->mapped) {
        return identity_become(start->who) == 0 && tell_syncs(start->hearing);
    }
    return tell_syncs(start->hearing) && identity_become(start->who) == 0;
}

static void become(const void *context) {
    const struct start *start = context;
    const struct program *program = start->program;
    int empty = open("/dev/null", O_RDONLY);
    signals_reset();
    if (empty >= 0 && dup2(empty, 0) >= 0 && dup2(start->log, 1) >= 0 && dup2(start->log, 2) >= 0 &&
        setsid() >= 0 && become_heard(start) && chdir(program->directory) == 0) {
        if (empty > 2) {
            close(empty);
        }
        environ = (char **)(size_t)program->env; /* execvp searches the program's own PATH */
        execvp(program->argv[0], program->argv);
    }
}

pid_t program_start(const struct program *program, const struct identity *who, int log,
                    const struct hearing *hearing) {
    return process_start(become, &(struct start){program, who, log, hearing});
}
