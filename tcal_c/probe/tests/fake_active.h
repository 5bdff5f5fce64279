/* Ends, a clock and a network that are only told of. */
#ifndef PROBE_FAKE_ACTIVE_H
#define PROBE_FAKE_ACTIVE_H

#include "probe/active/active.h"

enum { FAKE_SENDS = 64 };

struct fake {
    struct proto proto;
    struct active_io io;
    uint64_t now_ns;
    int refuse_open, refuse_send; /* -errno; 0: they are not refused */
    uint32_t opened, closed, sent;
    struct {
        uint32_t end;
        struct addr to;
        size_t size;
        uint8_t bytes[PROBE_BYTES]; /* the first ones */
    } sends[FAKE_SENDS];            /* the last ones, by number */
    char answer[4096];
};

struct fake *fake_new(void); /* greeted */
void fake_free(struct fake *f);
/* The answer to one line, without its last newline. */
const char *fake_ask(struct fake *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Lets time pass and does what is due. */
void fake_until(struct fake *f, uint64_t now_ns);
/* The probe that was sent as the n-th arrives where it was sent to, as from that end's address. */
void fake_deliver(struct fake *f, uint32_t n, uint32_t to, const char *from, uint64_t at_ns);

#endif
