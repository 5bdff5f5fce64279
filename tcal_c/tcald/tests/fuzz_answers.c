/* Fuzzes what is made of the kernel's answers to a batch and to the reading of counters: any
 * bytes in datagrams of any size, or real answers with some bytes changed.
 * Nothing but the sanitizers judges. */
#include "bench.h"
#include "tcal/tree/dist.h"
#include "common/tests/driver.h"

#include <string.h>

static void ignore(void *context, const struct tcal_usage *usage) {
    (void)context;
    (void)usage;
}

static void say(struct bench *b, const char *text) {
    char line[64];
    size_t length = strlen(text);
    memcpy(line, text, length + 1);
    session_line(&b->proto.session, line, length);
    session_due(&b->proto.session);
    session_judge(&b->proto.session, b->now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bench b;
    struct tcal_error error;
    static bool ready;
    if (!ready) {
        tcal_dist_init();
        ready = true;
    }
    bench_start(&b, false);
    bench_star(&b, 2);
    kernel_stats_of(bench_class(0))->qlen = 1;
    if (size && data[0] % 2) {
        kernel_garble(data + 1, size - 1);
    } else {
        kernel_script(data, size);
    }
    tcal_read(b.tcal, TCAL_READ_ALL, ignore, NULL, &error);
    say(&b, "path 0 1 rate=5");
    say(&b, "commit 0");
    say(&b, "path 0 2 up=0");
    say(&b, "commit 0");
    tcal_read(b.tcal, TCAL_READ_PAIRS, ignore, NULL, &error);
    kernel_script(NULL, 0);
    kernel_garble(NULL, 0);
    bench_end(&b);
    return 0;
}

const char *const fuzz_words[] = {"\1",     "\x10\1", "\x14\1",   "\x18\1", "\x1c\1",
                                  "\2\1\1", "\3\4\5", "\xff\xff", NULL};

const bool fuzz_frames = false;
