/* A tcald without descriptors: lines in, answers out, over the kernel in memory. */
#ifndef TCALD_TESTS_BENCH_H
#define TCALD_TESTS_BENCH_H

#include "kernel.h"
#include "tcald/proto.h"

struct bench {
    struct tcal *tcal;
    struct stage stage;
    struct proto proto;
    struct session_program program;
    struct text out;
    uint64_t now_ns;
    char answer[1024];
    char event[1024]; /* the last one */
};

/* Greeted, with time at one second, and an empty kernel. */
void bench_start(struct bench *b, bool deep);
void bench_end(struct bench *b);

/* One line and what is due after it; its answer without the newline. */
const char *bench_ask(struct bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same, which must be answered with ok. */
void bench_do(struct bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Commits at once: whether it was applied. */
bool bench_commit(struct bench *b);
/* Port 0 is as it shall be, or the test ends: the number of its kernel's objects. */
uint64_t bench_verify(struct bench *b);
/* Time passes. */
void bench_wait(struct bench *b, uint64_t ns);

/* Port 0 with node 0 at 10.77.0.1 bound, nodes up to `count` at 10.77.0.2 …, a path to each. */
void bench_star(struct bench *b, uint32_t count);

#define BENCH_ATTACH "attach 0 netns=/x if=eth0 prefix=10.77.0.0/16,fd77::/64"
#define BENCH_PATH "rate=8000000 delay=10000000 jitter=0 loss=0 queue=30000 up=1"

/* Descriptions of what there is: class and qdiscs of the n-th path that was made, from 0. */
uint32_t bench_class(uint32_t slot);
uint32_t bench_netem(uint32_t slot);
uint32_t bench_fifo(uint32_t slot);
uint32_t bench_hole(uint32_t slot);

#endif
