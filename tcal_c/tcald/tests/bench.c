/* Driving the protocol over the kernel in memory. */
#include "bench.h"

#include "common/tests/check.h"
#include "tcal/tree/objects.h"
#include "verify.h"

#include <stdarg.h>
#include <string.h>

static uint64_t read_clock(struct proto *p) {
    return ((struct bench *)((char *)p - offsetof(struct bench, proto)))->now_ns;
}

void bench_start(struct bench *b, bool deep) {
    struct tcal_options options = {deep, TCAL_BURST_NS};
    *b = (struct bench){.now_ns = NS_PER_S};
    kernel_reset();
    b->tcal = tcal_new(&options);
    CHECK(b->tcal && stage_init(&b->stage, b->tcal));
    b->program = proto_program;
    b->program.clock = read_clock;
    b->proto = (struct proto){
        .session = {.program = &b->program, .out = &b->out}, .tcal = b->tcal, .stage = &b->stage};
    bench_do(b, "hello 1");
}

void bench_end(struct bench *b) {
    stage_destroy(&b->stage);
    tcal_free(b->tcal);
    text_free(&b->out);
    kernel_reset();
}

/* Sorts what was written into events and answers; an answer of many lines stays one text. */
static void sort_out(struct bench *b) {
    size_t used = 0;
    b->answer[0] = '\0';
    while (text_left(&b->out)) {
        const char *line = b->out.bytes + b->out.begin;
        const char *end = memchr(line, '\n', text_left(&b->out));
        CHECK(end);
        size_t length = (size_t)(end - line);
        if (*line == '!') {
            CHECK(length < sizeof b->event);
            memcpy(b->event, line, length);
            b->event[length] = '\0';
        } else {
            CHECK(used + length + 2 < sizeof b->answer);
            used +=
                (size_t)sprintf(b->answer + used, "%s%.*s", used ? "\n" : "", (int)length, line);
        }
        text_take(&b->out, length + 1);
    }
}

static const char *ask(struct bench *b, const char *format, va_list args) {
    char line[70000];
    int length = vsnprintf(line, sizeof line, format, args);
    CHECK(length >= 0 && (size_t)length < sizeof line);
    session_line(&b->proto.session, line, (size_t)length);
    session_due(&b->proto.session);
    session_judge(&b->proto.session, b->now_ns);
    sort_out(b);
    return b->answer;
}

const char *bench_ask(struct bench *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *answer = ask(b, format, args);
    va_end(args);
    return answer;
}

void bench_do(struct bench *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *answer = ask(b, format, args);
    va_end(args);
    if (strncmp(answer, "ok", 2) != 0) {
        fprintf(stderr, "%s: %s\n", format, answer);
        abort();
    }
}

bool bench_commit(struct bench *b) {
    b->event[0] = '\0';
    bench_do(b, "commit 0");
    CHECK(b->event[0]);
    return strncmp(b->event, "! applied ", 10) == 0;
}

uint64_t bench_verify(struct bench *b) {
    uint64_t objects;
    char why[VERIFY_TEXT];
    if (!verify(b->tcal, 0, &objects, why)) {
        fprintf(stderr, "verify: %s\n", why);
        abort();
    }
    return objects;
}

void bench_wait(struct bench *b, uint64_t ns) {
    b->now_ns += ns;
    session_due(&b->proto.session);
    session_judge(&b->proto.session, b->now_ns);
    sort_out(b);
}

void bench_star(struct bench *b, uint32_t count) {
    bench_do(b, BENCH_ATTACH);
    bench_do(b, "node 0 ip=10.77.0.1 ip6=fd77::1");
    bench_do(b, "bind 0 0");
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t low = i + 1;
        bench_do(b, "node %u ip=10.77.%u.%u ip6=fd77::%x", i, low >> 8, low & 255, low);
        bench_do(b, "path 0 %u " BENCH_PATH, i);
    }
    CHECK(bench_commit(b));
}

uint32_t bench_class(uint32_t slot) {
    return tcal_class_of(slot);
}

uint32_t bench_netem(uint32_t slot) {
    return tcal_handle_of(slot, TCAL_NETEM);
}

uint32_t bench_fifo(uint32_t slot) {
    return tcal_handle_of(slot, TCAL_FIFO);
}

uint32_t bench_hole(uint32_t slot) {
    return tcal_handle_of(slot, TCAL_HOLE);
}
