/* How long to sleep and how long to spin before something is due. Sans-I/O. */
#ifndef PKTD_PACE_H
#define PKTD_PACE_H

#include "common/limits.h"
#include "pktd/core/structures/counter.h"

struct pace {
    uint64_t wake_ns;   /* how late the 99th of 100 sleeps ends, estimated */
    uint64_t write_ns;  /* what writing a small packet takes, estimated */
    uint64_t window_ns; /* start of the present accounting window */
    uint64_t slept_ns;  /* in this window */
    uint64_t spun_ns;
    uint64_t may_spin_ns; /* in this window */
    uint32_t sharers;
    counter spin_ns; /* for hello and stats: the spin in force */
};

/* `sharers` threads like this one share the machine's patience: the spin of each is so much less.
 */
void pace_init(struct pace *p, uint64_t now_ns, uint32_t sharers);

/* How long to sleep now if something is due at `due_ns` and may be late by `tolerance_ns`: 0 = do
 * not, look again at once. */
uint64_t pace_sleep(struct pace *p, uint64_t now_ns, uint64_t due_ns, uint64_t tolerance_ns);

/* A sleep that should have ended at `wanted_ns` ended at `now_ns`; `timer` tells that nothing else
 * did. */
void pace_woke(struct pace *p, uint64_t from_ns, uint64_t wanted_ns, uint64_t now_ns, bool timer);

/* A turn of the loop from `from_ns` to `now_ns` in which nothing was done but waiting. */
void pace_spun(struct pace *p, uint64_t from_ns, uint64_t now_ns);

/* A small packet was written in `took_ns`. */
void pace_wrote(struct pace *p, uint64_t took_ns);

/* How much ahead of its time a packet must be written to be there in time: the receiver has it
 * about half way through the write, the rest of which is its own protocol stack. */
static inline uint64_t pace_lead(const struct pace *p) {
    return p->write_ns * 5 / 8;
}

#endif
