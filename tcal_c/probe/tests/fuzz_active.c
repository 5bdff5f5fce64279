/* Fuzzes tprobe active: any bytes as lines, with time that passes and packets that arrive between
 * them. Fails on anything the sanitizers see, and on an answer that is not exactly one.
 */
#include "common/tests/driver.h"
#include "fake_active.h"

#include <string.h>

static void one_line(struct fake *f, const uint8_t *bytes, size_t length) {
    char *line = malloc(length + 1);
    REQUIRE(line);
    memcpy(line, bytes, length);
    line[length] = '\0';
    session_line(&f->proto.session, line, length);
    free(line);
    struct text *out = &f->proto.out;
    const char *answer = out->bytes + out->begin;
    size_t left = text_left(out);
    REQUIRE(left >= 3 && answer[left - 1] == '\n');
    REQUIRE(!memcmp(answer, "ok", 2) || !memcmp(answer, "err ", 4));
    text_take(out, left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fake *f = fake_new();
    fake_ask(f, "open 0 netns=/x addr=10.77.0.1");
    fake_ask(f, "open 1 netns=/y addr=10.77.0.2");
    fake_ask(f, "pair 0 0 1 wait=10");
    while (size && !f->proto.session.quit) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t length = newline ? (size_t)(newline - data) : size;
        if (length <= PROTO_LINE_LIMIT) {
            one_line(f, data, length);
        }
        struct addr from = {.version = 4, .bytes = {10, 77, 0, 1}};
        active_arrived(&f->proto, length % 3, &from, data, length % 12, f->now_ns);
        fake_until(f, f->now_ns + 100);
        if (f->sent) {
            fake_deliver(f, f->sent - 1, 1, "10.77.0.1", f->now_ns);
        }
        length += newline != NULL;
        data += length;
        size -= length;
    }
    fake_free(f);
    return 0;
}

const char *const fuzz_words[] = {"hello 1",
                                  "open ",
                                  "close ",
                                  "pair ",
                                  "at ",
                                  "report ",
                                  "clock",
                                  "quit",
                                  " netns=/x",
                                  " addr=",
                                  "10.77.0.",
                                  "fd77::",
                                  " wait=",
                                  "0",
                                  "1",
                                  "2",
                                  "4095",
                                  "65534",
                                  "18446744073709551615",
                                  " ",
                                  "\n",
                                  "at 100 0\n",
                                  "report 0\n",
                                  "close 1\n",
                                  "open 1 netns=/x addr=10.77.0.2\n",
                                  NULL};

const bool fuzz_frames = false;
