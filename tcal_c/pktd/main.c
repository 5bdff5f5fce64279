/* pktd: the packet engine. Speaks the protocol of docs/pktd.md on its standard input and output. */
#include "control.h"
#include "pktd/ports/stamp.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SHARERS_MAX 1000u
#define POOL_MAX_BYTES (2ull << 30)

static const char usage[] =
    "usage: pktd [--no-fifo] [--no-lock] [--no-bpf] [--pool-bytes N] [--cpu-share N]\n"
    "            [--allow-spoofing]\n"
    "Moves packets between network namespaces; commands on standard input, answers on standard\n"
    "output, as docs/pktd.md says. The options keep it from using what the machine would permit:\n"
    "real-time scheduling, locked memory, arrival stamps by BPF. --pool-bytes limits the memory "
    "of\n"
    "packets in flight (default: a quarter of the machine's, at most 2 GiB). --cpu-share tells\n"
    "that N pktds share this machine: each spins an N-th of what one would. --allow-spoofing lets\n"
    "packets through whose source address is not the one of the node that sends them.\n";

struct options {
    struct loop_options loop;
    bool bpf;
};

static uint64_t default_pool_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    uint64_t quarter =
        pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 4 : POOL_MAX_BYTES;
    return min_u64(quarter, POOL_MAX_BYTES);
}

/* A decimal number from `low` to `high`; complains otherwise. */
static bool read_number(const char *name, const char *text, uint64_t low, uint64_t high,
                        uint64_t *value) {
    char *end = NULL;
    *value = strtoull(text, &end, 10);
    if (*end || text[0] < '0' || text[0] > '9' || *value < low || *value > high) {
        fprintf(stderr, "pktd: --%s takes a number from %llu to %llu\n", name,
                (unsigned long long)low, (unsigned long long)high);
        return false;
    }
    return true;
}

/* -1: go on, otherwise the exit status. */
static int read_options(int argc, char **argv, struct options *o) {
    static const struct option names[] = {{"no-fifo", no_argument, NULL, 'f'},
                                          {"no-lock", no_argument, NULL, 'l'},
                                          {"no-bpf", no_argument, NULL, 'b'},
                                          {"pool-bytes", required_argument, NULL, 'p'},
                                          {"cpu-share", required_argument, NULL, 'c'},
                                          {"allow-spoofing", no_argument, NULL, 's'},
                                          {"version", no_argument, NULL, 'v'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        uint64_t number;
        switch (c) {
        case 'f':
            o->loop.fifo = false;
            break;
        case 'l':
            o->loop.lock = false;
            break;
        case 'b':
            o->bpf = false;
            break;
        case 'p':
            if (!read_number("pool-bytes", optarg, 4u << 20, INT64_MAX, &o->loop.pool_bytes)) {
                return 2;
            }
            break;
        case 'c':
            if (!read_number("cpu-share", optarg, 1, SHARERS_MAX, &number)) {
                return 2;
            }
            o->loop.sharers = (uint32_t)number;
            break;
        case 's':
            o->loop.any_source = true;
            break;
        case 'v':
            printf("pktd %s\n", VERSION);
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

int main(int argc, char **argv) {
    static struct loop loop;
    struct options options = {.loop = {true, true, default_pool_bytes(), 1, false}, .bpf = true};
    int status = read_options(argc, argv, &options);
    if (status >= 0) {
        return status;
    }
    /* Whoever started pktd may be killed while others hold copies of its end of the pipe. */
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) {
        return 0; /* it was, just now */
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    raise_file_limit();
    draw_init();
    int program = options.bpf ? stamp_load() : -1;
    int error = loop_start(&loop, &options.loop);
    if (error) {
        fprintf(stderr, "pktd: start the data thread: %s\n", strerror(-error));
        return 3;
    }
    error = control_serve(&loop, program < 0 ? -1 : program, STDIN_FILENO, STDOUT_FILENO);
    if (error) {
        fprintf(stderr, "pktd: serve commands: %s\n", strerror(-error));
        return 1;
    }
    return 0;
}
