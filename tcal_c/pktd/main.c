/* pktd: the packet engine. Speaks the protocol of docs/pktd.md on its standard input and output. */
#include "common/startup.h"
#include "control.h"
#include "pktd/ports/stamp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHARERS_MAX 1000u
#define CAPTURE_BYTES (64u << 20)
#define POOL_MAX_BYTES (2ull << 30)

static const char usage[] =
    "usage: pktd [--no-fifo] [--no-lock] [--no-bpf] [--pool-bytes N] [--cpu-share N]\n"
    "            [--allow-spoofing] [--digests] [--digest-times] [--captures FD]\n"
    "            [--capture-bytes N] [--virtual-time] [--engine-threads N] [--always-threads]\n"
    "Moves packets between network namespaces; commands on standard input, answers on standard\n"
    "output, as docs/pktd.md says. The options keep it from using what the machine would permit:\n"
    "real-time scheduling, locked memory, arrival stamps by BPF. --pool-bytes limits the memory "
    "of\n"
    "packets in flight (default: a quarter of the machine's, at most 2 GiB). --cpu-share tells\n"
    "that N pktds share this machine: each spins an N-th of what one would. --allow-spoofing lets\n"
    "packets through whose source address is not the one of the node that sends them. --digests\n"
    "keeps a digest of the packets of each link, --digest-times one of their times, too.\n"
    "--captures names the descriptor of a directory for files of packets, --capture-bytes how\n"
    "many may wait to be written (default 64 MiB). --virtual-time is for a machine whose clock\n"
    "stands still while a program runs. --engine-threads says how many threads may read and write\n"
    "(default: half of the processors, 4 at most); all but one only help where there is much to\n"
    "do, or with --always-threads always, for tests.\n";

static uint64_t default_pool_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    uint64_t quarter =
        pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 4 : POOL_MAX_BYTES;
    return min_u64(quarter, POOL_MAX_BYTES);
}

int main(int argc, char **argv) {
    static struct loop loop;
    struct loop_options options = {.fifo = true,
                                   .lock = true,
                                   .pool_bytes = default_pool_bytes(),
                                   .sharers = 1,
                                   .captures = -1,
                                   .capture_bytes = CAPTURE_BYTES};
    uint64_t sharers = 1;
    uint64_t threads = 0;
    uint64_t captures = UINT64_MAX;
    bool bpf = true;
    const struct setting settings[] = {
        {.name = "no-fifo", .flag = &options.fifo, .value = false},
        {.name = "no-lock", .flag = &options.lock, .value = false},
        {.name = "no-bpf", .flag = &bpf, .value = false},
        {.name = "allow-spoofing", .flag = &options.any_source, .value = true},
        {.name = "digests", .flag = &options.digests, .value = true},
        {.name = "captures", .number = &captures, .low = 0, .high = INT32_MAX},
        {.name = "capture-bytes", .number = &options.capture_bytes, .low = 1, .high = 1ull << 40},
        {.name = "digest-times", .flag = &options.times, .value = true},
        {.name = "virtual-time", .flag = &options.is_virtual, .value = true},
        {.name = "pool-bytes", .number = &options.pool_bytes, .low = 4u << 20, .high = INT64_MAX},
        {.name = "engine-threads", .number = &threads, .low = 1, .high = IO_THREADS_LIMIT + 1},
        {.name = "always-threads", .flag = &options.always_threads, .value = true},
        {.name = "cpu-share", .number = &sharers, .low = 1, .high = SHARERS_MAX},
        {.name = NULL}};
    int status = startup_options(argc, argv, "pktd", usage, settings);
    if (status >= 0) {
        return status;
    }
    if (!startup_system()) {
        return 0;
    }
    options.sharers = (uint32_t)sharers;
    options.threads = (uint32_t)threads;
    options.digests |= options.times;
    options.captures = captures <= INT32_MAX ? (int)captures : -1;
    draw_init();
    int program = bpf ? stamp_load() : -1;
    int error = loop_start(&loop, &options);
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
