/* tcald: shapes paths with the kernel's traffic control. Speaks the path protocol of docs/tcal.md
 * on its standard input and output. */
#include "control.h"
#include "tcal/dist.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define STATUS_LACKS 3
#define BURST_MAX_US 100000u

static const char usage[] =
    "usage: tcald [--deep] [--burst-us N]\n"
    "       tcald --probe\n"
    "Shapes what leaves network interfaces with the kernel's traffic control; commands on "
    "standard\n"
    "input, answers on standard output, as docs/tcal.md says.\n"
    "--burst-us says how late a timer may be without the rate suffering (default 1000).\n"
    "--deep builds what kernels need that lose count of packets inside netem (found by itself).\n"
    "--probe adds everything needed in a network namespace of its own and writes what is missing\n"
    "as JSON; its status is 0, or 3 when something is.\n";

struct options {
    struct tcal_options tcal;
    bool probe;
};

/* -1: go on, otherwise the exit status. */
static int read_options(int argc, char **argv, struct options *o) {
    static const struct option names[] = {
        {"burst-us", required_argument, NULL, 'b'}, {"deep", no_argument, NULL, 'd'},
        {"probe", no_argument, NULL, 'p'},          {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char *end = NULL;
        unsigned long long burst_us;
        switch (c) {
        case 'd':
            o->tcal.deep = true;
            break;
        case 'b':
            burst_us = strtoull(optarg, &end, 10);
            if (*end || optarg[0] < '0' || optarg[0] > '9' || burst_us > BURST_MAX_US) {
                fprintf(stderr, "tcald: --burst-us takes a number from 0 to %u\n", BURST_MAX_US);
                return 2;
            }
            o->tcal.burst_ns = burst_us * 1000;
            break;
        case 'p':
            o->probe = true;
            break;
        case 'v':
            printf("tcald %s\n", VERSION);
            return 0;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
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

/* One descriptor a port. */
static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The first thing needed that is not there, in words; false: nothing is missing. */
static bool missing(struct tcal_options *options, char *text, size_t room) {
    struct tcal_ability ability[TCAL_ABILITIES];
    struct tcal_error error;
    if (!tcal_probe(ability, &error)) {
        snprintf(text, room, "%s", error.text);
        return true;
    }
    for (int i = 0; i < TCAL_ABILITIES; i++) {
        if (ability[i].needed && !ability[i].found) {
            snprintf(text, room, "this kernel refuses %s: %s", ability[i].name, ability[i].why);
            return true;
        }
    }
    options->deep = options->deep || !ability[TCAL_COUNTS].found;
    return false;
}

/* The kernel's words contain no control characters, but may contain quotes. */
static void print_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
    putchar('"');
}

static int probe(void) {
    struct tcal_ability ability[TCAL_ABILITIES];
    struct tcal_error error;
    int status = 0;
    if (!tcal_probe(ability, &error)) {
        fputs("{\"error\":", stdout);
        print_text(error.text);
        puts("}");
        return STATUS_LACKS;
    }
    for (int i = 0; i < TCAL_ABILITIES; i++) {
        printf("%s\"%s\":{\"needed\":%s,\"found\":%s", i ? "," : "{", ability[i].name,
               ability[i].needed ? "true" : "false", ability[i].found ? "true" : "false");
        if (!ability[i].found) {
            fputs(",\"why\":", stdout);
            print_text(ability[i].why);
            status = ability[i].needed ? STATUS_LACKS : status;
        }
        putchar('}');
    }
    puts("}");
    return status;
}

int main(int argc, char **argv) {
    struct options options = {.tcal = {.burst_ns = TCAL_BURST_NS}};
    int status = read_options(argc, argv, &options);
    if (status >= 0) {
        return status;
    }
    tcal_dist_init();
    if (options.probe) {
        return probe();
    }
    /* Whoever started tcald may be killed while others hold copies of its end of the pipe. */
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) {
        return 0; /* it was, just now */
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    /* Batches are applied when they are due, not when it suits. */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    raise_file_limit();
    char lacks[400];
    bool lacking = missing(&options.tcal, lacks, sizeof lacks);
    struct tcal *tcal = tcal_new(&options.tcal);
    int error =
        tcal ? control_serve(tcal, lacking ? lacks : NULL, STDIN_FILENO, STDOUT_FILENO) : -1;
    tcal_free(tcal);
    if (error) {
        fprintf(stderr, "tcald: serve commands: %s\n", tcal ? strerror(-error) : "out of memory");
        return 1;
    }
    return 0;
}
