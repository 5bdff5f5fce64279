/* Options: one table, `--name value` or `--name=value`, nothing abbreviated, nothing ignored. */
#include "options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum kind { WORD, FLAG, COUNT, DURATION, RATE };

static const struct option_row {
    const char *name;
    enum kind kind;
    size_t at;
    int64_t low, high;
} ROWS[] = {
    {"port", COUNT, offsetof(struct options, port), 1, 65535},
    {"bind", WORD, offsetof(struct options, bind), 0, 0},
    {"count", COUNT, offsetof(struct options, count), 1, 100000000},
    {"size", COUNT, offsetof(struct options, size), 64, 65000},
    {"pps", COUNT, offsetof(struct options, pps), 1, 100000000},
    {"udp", RATE, offsetof(struct options, rate_bps), 0, 0},
    {"interval", DURATION, offsetof(struct options, interval_ns), 0, 0},
    {"seconds", DURATION, offsetof(struct options, seconds_ns), 0, 0},
    {"timeout", DURATION, offsetof(struct options, timeout_ns), 0, 0},
    {"skip", DURATION, offsetof(struct options, skip_ns), 0, 0},
    {"wait", DURATION, offsetof(struct options, wait_ns), 0, 0},
    {"stall", DURATION, offsetof(struct options, stall_ns), 0, 0},
    {"delay", DURATION, offsetof(struct options, delay_ns), 0, 0},
    {"mode", WORD, offsetof(struct options, mode), 0, 0},
    {"cc", WORD, offsetof(struct options, cc), 0, 0},
    {"tx-netns", WORD, offsetof(struct options, tx_netns), 0, 0},
    {"rx-netns", WORD, offsetof(struct options, rx_netns), 0, 0},
    {"each", FLAG, offsetof(struct options, each), 0, 0},
    {"probe", FLAG, offsetof(struct options, probe), 0, 0},
    {"reverse", FLAG, offsetof(struct options, reverse), 0, 0},
};

static bool listed(const char *words, const char *name, size_t length) {
    for (const char *p = words; *p;) {
        size_t word = strcspn(p, " ");
        if (word == length && memcmp(p, name, length) == 0) {
            return true;
        }
        p += word + (p[word] == ' ');
    }
    return false;
}

static const struct option_row *find(const char *name, size_t length, const char *allowed) {
    if (!listed(allowed, name, length)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (strlen(ROWS[i].name) == length && memcmp(ROWS[i].name, name, length) == 0) {
            return &ROWS[i];
        }
    }
    return NULL;
}

static int store(struct options *o, const struct option_row *row, const char *value) {
    char *base = (char *)o + row->at;
    int64_t number = 0;
    switch (row->kind) {
    case WORD:
        memcpy(base, &value, sizeof value);
        return 0;
    case FLAG:
        *(bool *)base = true;
        return 0;
    case COUNT:
        if (parse_count(value, row->low, row->high, &number)) {
            return -1;
        }
        break;
    case DURATION:
        if (parse_duration(value, &number)) {
            return -1;
        }
        break;
    case RATE:
        if (parse_rate(value, &number)) {
            return -1;
        }
        break;
    }
    memcpy(base, &number, sizeof number);
    return 0;
}

/* One `--name[=value]` at argv[*i]; moves *i over a separate value. */
static int read_option(int argc, char **argv, int *i, const char *allowed, struct options *o) {
    const char *name = argv[*i] + 2;
    size_t length = strcspn(name, "=");
    const struct option_row *row = find(name, length, allowed);
    if (!row) {
        return say_error(0, "this command has no option", argv[*i]);
    }
    if (row->kind == FLAG) {
        return name[length] ? say_error(0, "no value belongs to", argv[*i]) : store(o, row, NULL);
    }
    if (name[length]) {
        return store(o, row, name + length + 1);
    }
    if (*i + 1 >= argc) {
        return say_error(0, "a value is missing after", argv[*i]);
    }
    return store(o, row, argv[++*i]);
}

int options_parse(int argc, char **argv, const char *allowed, bool needs_host, struct options *o) {
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-4") || !strcmp(argv[i], "-6")) {
            o->family = argv[i][1] == '4' ? AF_INET : AF_INET6;
        } else if (!strncmp(argv[i], "--", 2)) {
            if (read_option(argc, argv, &i, allowed, o)) {
                return -1;
            }
        } else if (needs_host && !o->host) {
            o->host = argv[i];
        } else {
            return say_error(0, "one argument too many:", argv[i]);
        }
    }
    if (needs_host && !o->host) {
        return say_error(0, "no host given: tprobe", argv[0]);
    }
    return 0;
}
