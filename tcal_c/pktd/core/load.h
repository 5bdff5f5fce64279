/* How busy the data thread is, and what follows from that: whether it may keep the real-time class,
 * and how long what is due may wait for what is due soon. Sans-I/O. */
#ifndef PKTD_LOAD_H
#define PKTD_LOAD_H

#include "common/limits.h"
#include "pktd/core/structures/counter.h"

#define LOAD_WINDOW_NS 10000000u /* how often the thread's CPU time is to be looked at */
#define TOLERANCE_MAX_NS 100000u

enum load_class { CLASS_FIFO, CLASS_OTHER };

struct load {
    uint32_t share_ppm; /* of one core, what the thread may take of the machine */
    uint32_t ppm;       /* what it works, of that share: a mean that forgets in 100 ms */
    uint64_t looked_ns;
    uint64_t worked_ns; /* CPU time without spinning, when it was last looked at */
    uint64_t cpu_ns;    /* with it */
    uint64_t rest_ns;   /* owed to the other programs */
    enum load_class wanted;
    bool may_fifo;
    bool is_relieved;     /* others do a part of its work */
    uint64_t relieved_ns; /* since when, or last did */
    uint64_t changed_ns;  /* when `wanted` was last changed */
    uint64_t calm_ns;     /* since when the load has been low */
    uint64_t stay_ns;     /* how long it has to be */
    uint64_t second_ns;   /* since when `busy_ppm` is summed up */
    uint64_t second_worked_ns;
    /* What is due in here waits for `gather_until_ns`. */
    uint64_t gather_from_ns;
    uint64_t gather_until_ns;
    counter busy_ppm;         /* of one core, over the last second */
    counter class_left;       /* how often it was to leave the class that it had */
    counter class_left_ns;    /* how long it has been out of it */
    counter coalesced_frames; /* that have waited for others */
    counter coalesced_max_ns; /* the longest */
};

/* `sharers` threads like this one share a machine of `cores`. One that has no real-time class
 * (`may_fifo`) never leaves it. */
void load_init(struct load *l, uint64_t now_ns, uint32_t sharers, uint32_t cores, bool may_fifo);

/* Whether it is time for load_look. */
static inline bool load_is_due(const struct load *l, uint64_t now_ns) {
    return now_ns - l->looked_ns >= LOAD_WINDOW_NS;
}

/* The thread has had `cpu_ns` of CPU time until now, `spun_ns` of it for waiting, and `class` since
 * the last look: the kernel may have refused the one that was `wanted`. */
void load_look(struct load *l, uint64_t now_ns, uint64_t cpu_ns, uint64_t spun_ns,
               enum load_class class);

/* Whether others do a part of the thread's work from now on. */
void load_relieve(struct load *l, uint64_t now_ns, bool is_relieved);

/* How long a real-time thread must rest now, whatever is due; then it owes nothing. Mostly 0. */
uint64_t load_rest(struct load *l);

/* How long what is due may wait for others: 0 when there is little to do. */
uint64_t load_tolerance(const struct load *l);

/* Until when to gather what is due or arrives, if the last round of work began at `began_ns`, and
 * never longer than `limit_ns`; 0: not at all. */
uint64_t load_gather(struct load *l, uint64_t began_ns, uint64_t now_ns, uint64_t limit_ns);

/* A frame was sent that was due at `due_ns`: it has waited for the end of the rest before this
 * round, from when it was due or the rest began. */
void load_sent(struct load *l, uint64_t due_ns);

#endif
