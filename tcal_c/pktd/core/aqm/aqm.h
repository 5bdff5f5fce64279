/* A queue that holds its packets until they are sent, and drops or marks some before it is full
 * (active queue management, RFC 7567). Whose packets they are, and when the next is sent, is the
 * link's (holding.c). */
#ifndef PKTD_AQM_H
#define PKTD_AQM_H

#include "codel.h"
#include "fq.h"
#include "pie.h"
#include "red.h"

#define AQM_FLOWS_LIMIT 16384u

enum aqm_kind { AQM_NONE, AQM_CODEL, AQM_FQ_CODEL, AQM_PIE, AQM_RED, AQM_COUNT };

/* As a client states it; what is not of its kind is 0. */
struct aqm_config {
    enum aqm_kind kind;
    uint64_t ecn;       /* 1: marks in place of drops, where a packet allows that */
    uint64_t target_ns; /* codel, fq_codel, pie */
    uint64_t interval_ns;
    uint64_t quantum; /* fq_codel: bytes */
    uint64_t flows;
    uint64_t tupdate_ns; /* pie */
    uint64_t alpha;      /* in 1/16 */
    uint64_t beta;
    uint64_t min_bytes; /* red; 0: a third of max */
    uint64_t max_bytes; /* 0: a quarter of the limit */
    uint64_t probability_ppb;
    uint64_t avpkt;
    uint64_t burst; /* packets; 0: (2 min + max) / (3 avpkt) */
};

/* Of fq_codel: the packets whose addresses, protocol and ports hash to the same place. */
struct fq_flow {
    struct fifo fifo;
    struct codel codel;
    struct fq_flow *next; /* in the list that it is in */
    int64_t deficit;      /* bytes */
    bool listed;
};

struct fq_list {
    struct fq_flow *head;
    struct fq_flow *tail;
};

struct aqm {
    struct aqm_config is;
    uint64_t seed; /* of what is drawn now */
    uint64_t salt; /* of the hashes that tell flows apart */
    uint64_t limit_bytes;
    uint64_t limit_packets; /* 0: only bytes count */
    uint64_t bytes;         /* of all that is held; what is being sent is not */
    uint64_t packets;
    uint64_t since_ns; /* when the first of them came, after it was empty */
    struct fifo fifo;  /* but for fq_codel */
    struct fifo lost;  /* until the caller takes them */
    struct codel codel;
    struct pie pie;
    struct red red;
    struct fq_flow *flow;
    uint32_t flow_room;
    struct fq_list fresh; /* flows that have just begun are served first */
    struct fq_list old;
};

/* What the link is doing. */
struct aqm_sending {
    uint64_t rate_bps; /* at which packets leave */
    uint64_t bytes;    /* that are still to be sent of the packet that is; 0: none is */
    uint64_t free_ns;  /* when the last packet was sent, or will have been */
};

/* Takes other parameters at `at_ns`; what is held stays. `flow` is room for the flows. */
void aqm_change(struct aqm *aqm, const struct aqm_config *config, struct fq_flow *flow,
                uint64_t at_ns);

/* Forgets what has been, at `at_ns`; nothing is held. */
void aqm_reset(struct aqm *aqm, uint64_t at_ns);

/* Takes another limit, which only later packets meet. */
void aqm_limit(struct aqm *aqm, uint64_t bytes, uint64_t packets);

/* The packet, of a single segment, the nth of its kind, comes at `at_ns`. It, or others, may be
 * lost by that. */
void aqm_put(struct aqm *aqm, struct piece *piece, uint64_t n, const struct aqm_sending *sending,
             uint64_t at_ns);

/* The packet that is sent from `at_ns` on; NULL when none is left. Others may be lost by that. */
struct piece *aqm_take(struct aqm *aqm, uint64_t at_ns);

/* The next one, whatever the parameters; NULL when none is left. */
struct piece *aqm_remove(struct aqm *aqm);

/* One of the packets that were lost; NULL when all have been taken. */
struct piece *aqm_lost(struct aqm *aqm);

/* For the disciplines: a packet comes to a fifo, leaves it, is lost, is marked if it allows that.
 */
void aqm_put_in(struct aqm *aqm, struct fifo *fifo, struct piece *piece);
struct piece *aqm_take_of(struct aqm *aqm, struct fifo *fifo);
void aqm_lose(struct aqm *aqm, struct piece *piece);
bool aqm_mark(const struct aqm *aqm, struct piece *piece);

#endif
