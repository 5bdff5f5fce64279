/* A one-way link: loss draw, drop-tail queue at a rate, delay with jitter, in order; and what
 * impair.h has. */
#ifndef PKTD_LINK_H
#define PKTD_LINK_H

#include "pktd/core/structures/counter.h"
#include "pktd/core/draws/impair.h"
#include "pktd/core/draws/measured.h"
#include "pktd/core/draws/reseed.h"
#include "pktd/core/structures/heap.h"
#include "pktd/record/ring.h"
#include "pktd/core/aqm/aqm.h"
#include "pktd/core/packets/only.h"
#include "pktd/core/packets/pool.h"
#include "flows.h"
#include "queue.h"

enum link_field {
    LINK_RATE = 1,
    LINK_DELAY = 2,
    LINK_JITTER = 4,
    LINK_LOSS = 8,
    LINK_QUEUE = 16,
    LINK_DIST = 32,
    LINK_UP = 64,
    LINK_ALL = 127, /* of a link, whose seed is told apart */
    LINK_SEED = 128,
    LINK_BURST = 256,
    LINK_BURST_PASS = 512,
    LINK_GAP_LOSS = 1024,
    LINK_DUPLICATE = 2048,
    LINK_CORRUPT = 4096,
    LINK_REORDER = 8192,
    LINK_BY = 16384,
    LINK_REJECT = 32768,
    LINK_CAP = 65536,
    LINK_MTU = 131072,
    LINK_FLOWS = 262144,
    LINK_TRACE = 524288,
    LINK_PKTS = 1048576,
    LINK_AQM = 2097152,
    LINK_ONLY = 4194304,
    LINK_NECK = 8388608,
    LINK_RTT = 16777216,
    LINK_OPTIONAL = 33554176 /* 0 where a link does not state them; of links only, not of paths */
};

/* Of the protocol, for usages. */
#define PATH_KEYS "rate delay jitter loss queue dist"
#define LINK_KEYS                                                                                  \
    PATH_KEYS                                                                                      \
    " burst burst-pass gap-loss duplicate corrupt reorder by reject cap mtu flows trace pkts aqm " \
    "only neck rtt"

/* Properties as a client states them; `fields` tells which are meant. */
struct link_config {
    uint32_t fields; /* of enum link_field */
    uint64_t rate_bps;
    uint64_t delay_ns;
    uint64_t jitter_ns;
    uint64_t loss_ppb;
    uint64_t queue_bytes;
    struct impairments impairments;
    uint64_t capacity_bps;
    uint64_t mtu;
    const struct flow_rates *flow_rates; /* NULL: none */
    struct flows *flows;                 /* where the link counts them, if it ever does */
    struct flow_share *share;            /* its part of these */
    uint32_t neck;                       /* that it shares the queue of; 0: none */
    uint64_t rtt_ns;                     /* without queues, of a path of a neck */
    const struct trace *trace;
    uint64_t packets; /* of the queue; 0: only bytes count */
    struct aqm_config aqm;
    const struct measured *measured; /* in place of `dist`; NULL: none */
    const struct only *only;         /* NULL: none */
    enum dist dist;
    bool up;
};

struct link_counters {
    counter out_pkts;
    counter out_bytes;
    counter pkts; /* offered, also while down */
    counter bytes;
    counter probes;        /* of `pkts` */
    counter accepted_pkts; /* by the queue, less what waited when the link went down */
    counter accepted_bytes;
    counter burst_pkts; /* accepted since the queue was last empty */
    counter burst_bytes;
    counter busy_until_ns; /* copies of the queue's state, for the backlog */
    counter rate_bps;
    counter drop_queue;
    counter drop_loss;
    counter drop_down;
    _Atomic(const struct trace *) trace; /* what serves the queue, and when it began */
    counter zero_ns;
    counter spare;     /* work that the trace will have served beyond what waits */
    counter held_pkts; /* that wait where a queue holds its packets; not what is being sent */
    counter held_bytes;
};

/* What the client was last told of a path. Control thread. */
struct link_usage {
    uint64_t sent_pkts;
    uint64_t sent_bytes;
    uint64_t drop_queue;
    uint64_t drop_loss;
    uint64_t backlog_bytes;
};

/* What is on a link, or waits for it, in order of leaving. */
struct lane {
    struct piece *head;
    struct piece *tail;
    uint64_t last_due_ns; /* of those that keep the order */
};

/* Of the cache, a packet that comes to a link meets four lines, and one that leaves it the first
 * two of them, as long as it has only a rate, a delay and a queue. */
struct link {
    _Alignas(64) struct heap_node waiting; /* must be first: the heap hands it back */
    uint32_t loss_ppb;
    uint16_t source; /* nodes */
    uint16_t dest;
    bool up;
    bool bare;      /* it has no trace, no `only` and nothing that `impairs` tells of */
    bool obstructs; /* it rejects, or has an MTU */
    bool impairs;   /* something of `impair` beside that */
    bool holds;     /* its queue holds its packets (holding.c) */
    bool chained;   /* it is among the links of a node of frames (switching.c) */
    bool managed;   /* a discipline is asked for, whether there is memory for it or not */
    uint64_t delay_ns;
    uint64_t jitter_ns;
    struct lane usual;

    struct lane apart; /* of its further class; some of one that has ended may still be in it */
    struct aqm *aqm;   /* NULL: no memory is needed, or there is none */
    _Atomic(struct captured *) captured; /* where its packets are recorded; NULL: nowhere */
    struct link_counters count;

    struct flows *flows; /* of a measured path that leaves more to several; NULL: nobody counts */
    _Atomic(struct captured *) offered; /* as `captured`, before its queue */
    struct queue queue;

    uint64_t seed;
    const struct trace *trace;       /* that it follows; NULL: none */
    const struct only *only;         /* its further class; NULL: it has none */
    const struct measured *measured; /* distribution of its jitter in place of `dist`; NULL: none */
    enum dist dist;
    uint32_t mtu; /* of IP packets; 0: any */
    struct impair impair;
    struct flow_share *share;
    uint32_t next_out; /* link + 1, of its source's links of frames; 0: it is the last */
    uint32_t packets;  /* that the queue holds; 0: only bytes count */
    counter digest;    /* 0 without packets */

    /* Control thread: */
    uint64_t digest_told;
    uint64_t reported; /* sum of the packet counters at the last report */
    bool neck_waited;  /* something was in its neck's queue then */
    struct link_usage told;
};
_Static_assert(offsetof(struct link, apart) == 64 && offsetof(struct link, flows) == 256,
               "begin lines of the cache");

/* Whether links have digests (record/digest.h), and of what. */
enum digests { DIGESTS_OFF, DIGESTS_CONTENTS, DIGESTS_TIMES };

/* What is on its way over all links, and what it needs. */
struct transit {
    enum digests digests; /* chosen before the first packet */
    counter epoch_ns;     /* from which their times and the links' jitter count */
    struct reseeds reseeds;
    struct ring *ring; /* for packets that are captured; NULL: none are */

    struct pool pool;
    struct heap heap; /* of links, by the time of their heads */
    uint64_t seq;
    counter in_flight;  /* pieces in links, or handed over */
    counter drop_nobuf; /* segments for which there was no memory */
    counter duplicated; /* copies that links made, whether they found room or not */
    counter corrupted;
    counter rejected;  /* segments that links refused */
    counter too_large; /* that they did not take, and could not be cut */
    counter reordered; /* segments that left the order, on any link */
    counter marked;    /* segments that queues marked: congestion experienced */
};

/* What the link draws by at that time. */
static inline uint64_t link_seed(const struct transit *t, const struct link *link, uint64_t at_ns) {
    return reseeded(&t->reseeds, link->seed, at_ns);
}

/* What the frame's bytes hash to, where anybody asks. */
static inline void transit_hash(const struct transit *t, struct frame *frame) {
    if (t->digests != DIGESTS_OFF) {
        frame->contents =
            digest_contents(frame_bytes(frame) + ETH_BYTES, frame->info.length - ETH_BYTES);
    }
}

/* How long the segments of one piece may take on a link; see docs/pktd.md, "Super-packets". TCP
 * makes super-packets of a good millisecond at its rate: a shorter limit would cut each into a
 * whole and a crumb, twice the system calls. */
#define PIECE_SERVICE_NS 1500000u

/* A piece arrives at the link at `at_ns`. Takes it over. */
void link_offer(struct transit *t, struct link *link, struct piece *piece, uint64_t at_ns);

/* Whether the link refuses the piece, which arrives at it; whether it is too large for the link. */
bool link_refuses(const struct transit *t, const struct link *link, const struct piece *piece,
                  uint64_t at_ns);
bool link_exceeded(const struct link *link, const struct piece *piece);

/* The piece is refused, and counted as dropped. Takes it over. */
void link_refuse(struct transit *t, struct link *link, struct piece *piece, uint64_t at_ns);

/* Does what the link has to do next: takes the piece that is due out of it, or sends what its queue
 * holds (NULL). */
struct piece *link_take(struct transit *t, struct link *link);

/* Bytes that wait at `at_ns`, and packets: those bytes divided by the mean size since the queue was
 * last empty. Any thread. */
uint64_t link_backlog(const struct link_counters *c, uint64_t at_ns, uint64_t *packets);

/* When segment `i` of the piece arrived, if the piece arrived at `at_ns`. */
uint64_t link_arrival(const struct piece *piece, uint32_t i, uint64_t at_ns);

/* For holding.c. A segment was dropped; one is drawn, and was lost by that; one as a piece of its
 * own, with the impairments of `fate`; a piece leaves at its time, computed at `at_ns`. */
void link_lose(const struct transit *t, struct link *link, const struct piece *origin,
               uint32_t segment, enum fate fate, uint64_t at_ns);
bool link_draws_loss(const struct transit *t, struct link *link, const struct piece *origin,
                     uint32_t segment, uint64_t nth, uint64_t at_ns);
struct piece *link_single(struct transit *t, struct link *link, const struct piece *origin,
                          uint32_t segment, uint64_t nth, unsigned fate, uint64_t at_ns);
void link_set_due(const struct transit *t, struct link *link, struct piece *piece,
                  uint64_t after_ns);
void link_append(struct transit *t, struct link *link, struct piece *piece, uint64_t at_ns);
struct lane *link_lane(struct link *link, const struct frame *frame);
void link_count_accepted(struct link *link, uint64_t packets, uint64_t bytes);

/* Changes properties at `at_ns`. */
void link_change(struct transit *t, struct link *link, const struct link_config *config,
                 uint64_t at_ns);

/* --- holding.c: links whose queue holds its packets until they are sent, so that what is dropped
 * can depend on how long they have waited, and their order on whose they are --- */

/* When the link sends the next packet that it holds, TIME_NEVER if it holds none. */
static inline uint64_t holding_next(const struct link *link) {
    const struct aqm *aqm = link->aqm;
    if (!aqm || aqm->packets == 0) {
        return TIME_NEVER;
    }
    return link->queue.rate_bps ? max_u64(link->queue.free_ns, aqm->since_ns) : aqm->since_ns;
}

/* The piece arrives at the link at `at_ns`; its first segment is the nth of its kind. Takes it
 * over.
 */
void holding_offer(struct transit *t, struct link *link, struct piece *piece, uint64_t nth,
                   uint64_t at_ns);

/* Sends what is sent up to `until_ns`, as the engine stands at `at_ns`. */
void holding_send(struct transit *t, struct link *link, uint64_t until_ns, uint64_t at_ns);

/* Takes a packet out that the link holds; NULL if there is none. */
struct piece *holding_remove(struct transit *t, struct link *link);

/* Takes what `config` says of the queue, at `at_ns`, when the rest of it has been taken. */
void holding_change(struct transit *t, struct link *link, const struct link_config *config,
                    uint64_t at_ns);

#endif
