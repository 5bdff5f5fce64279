/* Links whose queue holds its packets until they are sent, so that what is dropped can depend on
 * how long they have waited, and their order on whose they are. */
#ifndef PKTD_HOLDING_H
#define PKTD_HOLDING_H

#include "link.h"

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
