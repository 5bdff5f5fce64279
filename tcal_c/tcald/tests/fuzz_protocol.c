/* Fuzzes tcald's line protocol: any bytes as lines, over the kernel in memory.
 *
 * Fails on anything the sanitizers see, on an answer that is not one `ok` or `err` (and the lines
 * it announces) per line, and when what the kernel has at the end is not what it shall have.
 */
#include "bench.h"
#include "common/tests/driver.h"
#include "tcal/tree/dist.h"
#include "verify.h"

#include <string.h>

static void one_line(struct bench *b, const uint8_t *bytes, size_t length) {
    char *line = malloc(length + 1);
    REQUIRE(line);
    memcpy(line, bytes, length);
    line[length] = '\0';
    session_line(&b->proto.session, line, length);
    free(line);
    const char *answer = b->out.bytes + b->out.begin;
    size_t left = text_left(&b->out);
    REQUIRE(left >= 3 && answer[left - 1] == '\n');
    while (left && *answer == '!') {
        const char *end = memchr(answer, '\n', left);
        left -= (size_t)(end + 1 - answer);
        answer = end + 1;
    }
    REQUIRE(left >= 3 && (!memcmp(answer, "ok", 2) || !memcmp(answer, "err ", 4)));
    text_take(&b->out, text_left(&b->out));
    b->now_ns += 1000;
    session_due(&b->proto.session);
    session_judge(&b->proto.session, b->now_ns);
    text_take(&b->out, text_left(&b->out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bench b;
    char why[VERIFY_TEXT];
    uint64_t objects;
    static bool ready;
    if (!ready) {
        tcal_dist_init();
        ready = true;
    }
    bench_start(&b, size & 2);
    bench_star(&b, 2);
    /* The first byte makes a message fail now and then. */
    kernel_fail(size && data[0] < 'a' ? 1 + data[0] % 32 : 0, -22);
    while (size && !b.proto.session.quit) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t length = newline ? (size_t)(newline - data) : size;
        if (length <= PROTO_LINE_LIMIT) {
            one_line(&b, data, length);
        }
        length += newline != NULL;
        data += length;
        size -= length;
    }
    kernel_fail(0, 0);
    bench_wait(&b, 1ull << 62);
    /* What others left there after a kernel that refused was not put right yet. */
    if (tcal_is_attached(b.tcal, 0) && !verify(b.tcal, 0, &objects, why)) {
        fprintf(stderr, "%s\n", why);
        REQUIRE(strstr(b.event, "could not be restored"));
    }
    bench_end(&b);
    return 0;
}

const char *const fuzz_words[] = {"hello 1",
                                  "attach ",
                                  "detach ",
                                  "node ",
                                  "bind ",
                                  "unbind ",
                                  "path ",
                                  "commit 0\n",
                                  "commit ",
                                  "abort\n",
                                  "sync a\n",
                                  "usage",
                                  " all\n",
                                  "stats ",
                                  "pairs",
                                  "engine",
                                  "lease 100\n",
                                  "lease 0\n",
                                  "ports\n",
                                  "quit",
                                  "\n",
                                  " ",
                                  "rate=",
                                  "delay=",
                                  "jitter=",
                                  "loss=",
                                  "queue=",
                                  "dist=",
                                  "pareto",
                                  "seed=",
                                  "up=0",
                                  "up=1",
                                  "ip=10.77.0.",
                                  "ip6=fd77::",
                                  "netns=/x",
                                  "if=eth0",
                                  "prefix=",
                                  "10.77.0.0/16",
                                  "fd77::/64",
                                  "0",
                                  "1",
                                  "2",
                                  "3",
                                  "65534",
                                  "18446744073709551615",
                                  "node 3 ip=10.77.3.3\n",
                                  "path 0 3 rate=1 delay=2 jitter=3 loss=4 queue=5 up=1\n",
                                  "path 0 1 up=0\n",
                                  "path 0 2 rate=1000\n",
                                  "bind 1 0\n",
                                  "unbind 0\n",
                                  NULL};

const bool fuzz_frames = false;
