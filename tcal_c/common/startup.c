/* Options by getopt_long(3), limits, and the end that follows the parent's. */
#include "startup.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SETTINGS 16
#define HELP 'h'
#define OUR_VERSION 'v'
#define FIRST 256 /* the first setting's; getopt's own are characters */

/* A decimal number in range; complains otherwise. */
static bool read_number(const char *program, const struct setting *s, const char *text) {
    char *end = NULL;
    *s->number = strtoull(text, &end, 10);
    if (*end || text[0] < '0' || text[0] > '9' || *s->number < s->low || *s->number > s->high) {
        fprintf(stderr, "%s: --%s takes a number from %llu to %llu\n", program, s->name,
                (unsigned long long)s->low, (unsigned long long)s->high);
        return false;
    }
    return true;
}

int startup_options(int argc, char **argv, const char *program, const char *usage,
                    const struct setting *settings) {
    struct option names[SETTINGS + 3] = {{"help", no_argument, NULL, HELP},
                                         {"version", no_argument, NULL, OUR_VERSION}};
    for (int i = 0; i < SETTINGS && settings[i].name; i++) {
        names[i + 2] = (struct option){
            settings[i].name, settings[i].flag ? no_argument : required_argument, NULL, FIRST + i};
    }
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c >= FIRST && settings[c - FIRST].flag) {
            *settings[c - FIRST].flag = settings[c - FIRST].value;
        } else if (c >= FIRST) {
            if (!read_number(program, &settings[c - FIRST], optarg)) {
                return 2;
            }
        } else if (c == HELP) {
            fputs(usage, stdout);
            return 0;
        } else if (c == OUR_VERSION) {
            printf("%s %s\n", program, VERSION);
            return 0;
        } else {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind < argc) {
        fputs(usage, stderr);
        return 2;
    }
    return -1;
}

bool startup_system(void) {
    /* Whoever started us may be killed while others hold copies of its end of the pipe. */
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) {
        return false; /* it was, just now */
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    /* One descriptor a port. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return true;
}
