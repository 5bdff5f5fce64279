/* The threads that read and write for the core while there is much to do. Core's thread, unless it
 * says otherwise. */
#ifndef PKTD_HANDS_H
#define PKTD_HANDS_H

#include "hand.h"
#include "pktd/core/structures/histogram.h"

#define HANDS_LIMIT 15u

struct hands_look {
    uint64_t at_ns;  /* the last one */
    uint64_t cpu_ns; /* of the core until then, without spinning */
    uint64_t frames; /* until then */
    uint64_t given;  /* frames a second when the ports were given away */
    uint32_t quiet;  /* looks since then with less than half of that, one after the other */
};

struct hands {
    uint32_t count;
    bool always; /* the turn is theirs also when there is little to do */
    bool are_given;
    int epoll;    /* where the core looks for packets; -1: nowhere */
    uint32_t tag; /* of hand 0's ports there; downwards those of the others */
    struct engine *engine;
    struct histogram *late;
    atomic_bool core_sleeps;
    struct hands_look look;
    counter frames; /* that hands have read and written, all in all */
    struct hand hand[HANDS_LIMIT];
};

/* `core` is the eventfd that wakes the core: 0 or -errno. */
int hands_start(struct hands *hands, uint32_t count, bool always, struct engine *engine,
                struct histogram *late, int core);
void hands_end(struct hands *hands);

/* Whose port it is. There must be hands. */
static inline struct hand *hands_of(struct hands *hands, const struct port *port) {
    return &hands->hand[port->number % hands->count];
}

/* Puts the ports of hand 0 as `tag`, downwards those of the others, into the core's epoll for good.
 * Packets are seen there while the core has the turn. 0 or -errno. */
int hands_watch(struct hands *hands, int epoll, uint32_t tag);

/* The ports of the hands are theirs from now on, or the core's again. The core then has everything
 * that they had read, which hands_input gives, and has written what they had not. */
void hands_give(struct hands *hands);
void hands_recall(struct hands *hands);

/* Lets a hand write the frame: true. False: the core has the turn. Waits where there is no room. */
bool hands_write(struct hands *hands, struct port *port, uint64_t due_ns,
                 const struct leaving *leaving, const struct iovec *io, int count);

/* The oldest frame that this hand has read, which is the caller's; false when there is none.
 * Without a frame the port has gone, or, when it is `lost`, there was no memory for what was read;
 * without a port either, some device is down, or has gone, which nobody was told before. */
bool hands_input(struct hands *hands, struct hand *hand, struct hand_input *input, bool *lost);

/* Takes note of what has been written: whether anything has. */
bool hands_finish(struct hands *hands);

/* Whether hands have something for the core; if not, it may sleep, and hands wake it. */
bool hands_may_sleep(struct hands *hands);
void hands_woke(struct hands *hands);

/* Gives the ports away or takes them back, as the core's load wants it: `cpu_ns` is the CPU time
 * that it has used, without spinning, `frames` what it has read and written. */
void hands_look(struct hands *hands, uint64_t now_ns, uint64_t cpu_ns, uint64_t frames);

/* When hands_look is worth its while again. */
#define HANDS_LOOK_NS 10000000u

/* CPU time of all hands. Any thread. */
uint64_t hands_cpu_ns(const struct hands *hands);

#endif
