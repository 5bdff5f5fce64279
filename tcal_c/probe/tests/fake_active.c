#include "fake_active.h"

#include "common/tests/check.h"

#include <stdarg.h>

static uint64_t fake_clock(void *context) {
    return ((struct fake *)context)->now_ns;
}

static int fake_open(void *context, uint32_t number, const char *netns, const struct end *end) {
    struct fake *f = context;
    (void)number, (void)netns, (void)end;
    f->opened += !f->refuse_open;
    return f->refuse_open;
}

static int fake_send(void *context, uint32_t number, const struct end *from, const struct end *to,
                     const uint8_t *bytes, size_t size) {
    struct fake *f = context;
    CHECK(from->open && to->open);
    CHECK(size >= PROBE_BYTES);
    if (f->refuse_send) {
        return f->refuse_send;
    }
    uint32_t slot = f->sent++ % FAKE_SENDS;
    f->sends[slot].end = number;
    f->sends[slot].to = to->addr;
    f->sends[slot].size = size;
    memcpy(f->sends[slot].bytes, bytes, PROBE_BYTES);
    return 0;
}

static void fake_close(void *context, uint32_t end) {
    (void)end;
    ((struct fake *)context)->closed++;
}

struct fake *fake_new(void) {
    struct fake *f = calloc(1, sizeof *f);
    CHECK(f);
    f->io = (struct active_io){f, fake_clock, fake_open, fake_send, fake_close};
    CHECK(active_init(&f->proto, &f->io, 0xfeedbeef));
    CHECK_TEXT(fake_ask(f, "hello 1"), "ok tprobe 1 version=" VERSION);
    return f;
}

void fake_free(struct fake *f) {
    active_free(&f->proto);
    CHECK_EQ(f->closed, f->opened);
    free(f);
}

const char *fake_ask(struct fake *f, const char *format, ...) {
    char line[PROTO_LINE_LIMIT + 1];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    CHECK(length >= 0 && (size_t)length < sizeof line);
    session_line(&f->proto.session, line, (size_t)length);
    size_t left = text_left(&f->proto.out);
    CHECK(left > 0 && left < sizeof f->answer);
    memcpy(f->answer, f->proto.out.bytes + f->proto.out.begin, left);
    f->answer[left - 1] = '\0';
    text_take(&f->proto.out, left);
    return f->answer;
}

void fake_until(struct fake *f, uint64_t now_ns) {
    for (uint64_t next; (next = session_next(&f->proto.session)) <= now_ns;) {
        f->now_ns = max_u64(f->now_ns, next);
        session_due(&f->proto.session);
    }
    f->now_ns = now_ns;
}

void fake_deliver(struct fake *f, uint32_t n, uint32_t to, const char *from, uint64_t at_ns) {
    struct addr source;
    CHECK(word_ipv4(from, &source) || word_ipv6(from, &source));
    active_arrived(&f->proto, to, &source, f->sends[n % FAKE_SENDS].bytes,
                   f->sends[n % FAKE_SENDS].size, at_ns);
}
