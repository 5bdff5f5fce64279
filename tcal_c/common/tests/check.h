/* Checks that say where and what when they fail. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(got, want)                                                                        \
    do {                                                                                           \
        uint64_t got_ = (uint64_t)(got);                                                           \
        uint64_t want_ = (uint64_t)(want);                                                         \
        if (got_ != want_) {                                                                       \
            fprintf(stderr, "%s:%d: %s is %llu, not %llu\n", __FILE__, __LINE__, #got,             \
                    (unsigned long long)got_, (unsigned long long)want_);                          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_TEXT(got, want)                                                                      \
    do {                                                                                           \
        if (strcmp(got, want) != 0) {                                                              \
            fprintf(stderr, "%s:%d: %s is '%s', not '%s'\n", __FILE__, __LINE__, #got, got, want); \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* One per file of tests. */
void test_structures(void);
void test_draws(void);
void test_measured(void);
void test_queues(void);
void test_traces(void);
void test_aqm(void);
void test_holding(void);
void test_packets(void);
void test_links(void);
void test_flows(void);
void test_necks(void);
void test_impairments(void);
void test_only(void);
void test_hops(void);
void test_many(void);
void test_switching(void);
void test_engine(void);
void test_spread(void);
void test_protocol(void);
void test_stages(void);
void test_paths(void);
void test_ports(void);
void test_digests(void);
void test_captures(void);
void test_arrivals(void);
void test_load(void);
void test_io_threads(void);
void test_waiting(void);
void test_steer(void);
void test_steering(void);

/* A small generator for inputs, so that every run has the same ones. */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
