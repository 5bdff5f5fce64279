/* tcald: shapes paths with the kernel's traffic control. Speaks the path protocol of docs/tcal.md
 * on its standard input and output. */
#include "common/startup.h"
#include "control.h"
#include "tcal/tree/dist.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
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
    struct tcal_options options = {.burst_ns = TCAL_BURST_NS};
    uint64_t burst_us = TCAL_BURST_NS / 1000;
    bool probing = false;
    const struct setting settings[] = {
        {.name = "deep", .flag = &options.deep, .value = true},
        {.name = "probe", .flag = &probing, .value = true},
        {.name = "burst-us", .number = &burst_us, .high = BURST_MAX_US},
        {.name = NULL}};
    int status = startup_options(argc, argv, "tcald", usage, settings);
    if (status >= 0) {
        return status;
    }
    options.burst_ns = burst_us * 1000;
    tcal_dist_init();
    if (probing) {
        return probe();
    }
    if (!startup_system()) {
        return 0;
    }
    /* Batches are applied when they are due, not when it suits. */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    char lacks[400];
    bool lacking = missing(&options, lacks, sizeof lacks);
    struct tcal *tcal = tcal_new(&options);
    int error =
        tcal ? control_serve(tcal, lacking ? lacks : NULL, STDIN_FILENO, STDOUT_FILENO) : -1;
    tcal_free(tcal);
    if (error) {
        fprintf(stderr, "tcald: serve commands: %s\n", tcal ? strerror(-error) : "out of memory");
        return 1;
    }
    return 0;
}
