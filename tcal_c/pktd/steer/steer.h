/* Whether the protocol work of receivers is to be done on other processors (receive packet
 * steering). Sans-I/O: what was written goes in window by window, what to do comes out. */
#ifndef PKTD_STEER_H
#define PKTD_STEER_H

#include "common/limits.h"
#include "pktd/core/structures/counter.h"

#include <sched.h>

#define STEER_WINDOW_NS 100000000u
#define STEER_ACTIVE_FRAMES 10u /* in a window: a port with so many counts as active */
#define STEER_MASK_BYTES (CPU_SETSIZE / 32 * 9 + 1)

/* What was written in a window. */
struct steer_window {
    uint64_t frames;      /* to all ports */
    uint64_t most_frames; /* to the port that got most */
    uint32_t active;      /* ports */
    uint32_t load_ppm;    /* see load.h */
};

struct steer {
    bool is_on;
    uint64_t on_frames; /* in the window that switched it on */
    uint32_t away;      /* windows without a reason for it, one after the other */
    counter times;      /* how often it was switched on */
    counter on_ns;      /* how long it has been on */
};

/* A window of `length_ns` has ended: whether steering is to be on from now. */
bool steer_look(struct steer *s, const struct steer_window *w, uint64_t length_ns);

/* Whether a port with so many frames in such a window is one of those that are steered. */
bool steer_port(const struct steer_window *w, uint64_t frames);

/* Whether no packet waits on any processor, by /proc/net/softnet_stat; also where an old kernel
 * does not say. */
bool steer_is_drained(const char *text);

/* Whether it may be taken back from a port that was last written to at `wrote_ns`, when none waits
 * and it has been off since `off_ns`: a packet that is being received waits nowhere. */
bool steer_is_over(uint64_t now_ns, uint64_t wrote_ns, uint64_t off_ns);

/* One processor of `set` that is not `cpu`, another one in each turn, as the kernel reads it from
 * rps_cpus; false when there is none. */
bool steer_mask(const cpu_set_t *set, int cpu, uint32_t turn, char text[STEER_MASK_BYTES]);

#endif
