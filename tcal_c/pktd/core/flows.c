/* A flow counts from its second packet with payload within the window until nothing of it has come
 * for as long, or it says that it ends (FIN, RST). Acknowledgements without payload, ICMP and the
 * run's own probes are no flows, and neither are fragments, which do not tell their ports.
 *
 * Flows stand in one list in order of their last packets, so that only its oldest are looked at.
 * They are looked at when a packet comes; each end takes effect at the moment at which it was due,
 * so that the queue has drained as it would have, whenever the next packet comes.
 *
 * A neck with F flows, F_p of them on path p, has the sum of F_p A_p(F) / F: each path's table is
 * read at the load of the neck (section 2.3 of "Modeling and Emulation of Internet Paths"). A queue
 * that is derived holds packets up for as long as flows tolerate, D = F W / A - R with the longest
 * round trip R of the paths in use, in either direction half of it. F W / A_p(F) is what the queue
 * that path p would have by itself tells, with its round trip: times in bytes at half the capacity.
 */
#include "flows.h"

#include "pktd/core/draws/draw.h"

#include <netinet/in.h>

#define SLOTS (2 * FLOW_LIMIT)
#define TCP_HEADER_BYTES 20u
#define UDP_HEADER_BYTES 8u
#define TCP_FIN 1
#define TCP_RST 4

/* Rounded half up. */
static uint64_t between(uint64_t from, uint64_t to, uint64_t part, uint64_t steps) {
    bool falls = to < from;
    uint64_t by = falls ? from - to : to - from;
    u128 twice = (u128)by * part * 2;
    uint64_t moved =
        (uint64_t)(falls ? (twice + steps - 1) / (2 * steps) : (twice + steps) / (2 * steps));
    return falls ? from - moved : from + moved;
}

static struct flow_rate at_flows(const struct flow_share *share, uint64_t count) {
    struct flow_rate before = share->one;
    for (uint32_t i = 0; i < share->more.count && count > before.flows; i++) {
        const struct flow_rate *row = &share->more.row[i];
        if (row->flows >= count) {
            uint64_t part = count - before.flows, steps = row->flows - before.flows;
            return (struct flow_rate){count, between(before.rate_bps, row->rate_bps, part, steps),
                                      between(before.queue_bytes, row->queue_bytes, part, steps)};
        }
        before = *row;
    }
    return before;
}

/* Of several links. Without flows it is as with one on each of them. */
static struct flow_rate of_neck(const struct flows *flows, uint64_t capacity_bps) {
    uint64_t all = 0, longest_ns = 0, count = max_u64(flows->active, 1);
    u128 rates = 0, tolerated = 0; /* the second: flows per byte, times 2^64 */
    for (const struct flow_share *share = flows->shares; share; share = share->next) {
        uint64_t weight = flows->active ? share->active : 1;
        if (weight) {
            struct flow_rate found = at_flows(share, count);
            u128 trip = (u128)share->rtt_ns * capacity_bps / (2 * BITS_NS);
            all += weight;
            rates += (u128)weight * found.rate_bps;
            tolerated += ((u128)weight << 64) / (trip + max_u64(found.queue_bytes, 1));
            longest_ns = max_u64(longest_ns, share->rtt_ns);
        }
    }
    uint64_t rate = (uint64_t)((2 * rates + all) / (2 * all));
    u128 whole = ((u128)all << 64) / max_u128(tolerated, 1);
    u128 trip = (u128)longest_ns * capacity_bps / (2 * BITS_NS);
    u128 queue = whole > trip ? whole - trip : 0;
    if (longest_ns) {
        u128 least = max_u128((u128)rate * longest_ns / BITS_NS, NECK_QUEUE_LEAST);
        queue = max_u128(queue, least);
    }
    return (struct flow_rate){count, rate,
                              queue < NECK_QUEUE_MOST ? (uint64_t)queue : NECK_QUEUE_MOST};
}

void flows_apply(const struct flows *flows, struct queue *q, uint64_t at_ns) {
    struct flow_rate found =
        flows->is_neck ? of_neck(flows, q->capacity_bps) : at_flows(flows->shares, flows->active);
    if (found.rate_bps != q->rate_bps) {
        queue_set_rate(q, at_ns, found.rate_bps);
    }
    queue_set_limit(q, at_ns, found.queue_bytes);
}

/* --- whose bytes wait ------------------------------------------------------------------------ */

void flows_own_enters(struct flow_share *share, const struct queue *q, uint32_t bytes,
                      uint64_t end_ns) {
    uint64_t pace = queue_pace(q);
    uint64_t part_ns = pace ? (uint64_t)((u128)q->limit_bytes * BITS_NS / pace / OWN_PARTS) : 0;
    struct own_step *step = &share->step[share->latest];
    if (end_ns - share->began_ns > part_ns) {
        share->began_ns = counter_get(&step->served_ns);
        share->latest = (share->latest + 1) % OWN_STEPS;
        step = &share->step[share->latest];
    }
    counter_add(&share->queued_bytes, bytes);
    counter_set(&step->served_ns, end_ns);
    counter_set(&step->bytes, counter_get(&share->queued_bytes));
}

void flows_own_retimed(struct flow_share *share, uint64_t at_ns, uint64_t old_bps,
                       uint64_t new_bps) {
    share->began_ns = queue_retimed(share->began_ns, at_ns, old_bps, new_bps);
    for (uint32_t i = 0; i < OWN_STEPS; i++) {
        counter *served_ns = &share->step[i].served_ns;
        counter_set(served_ns, queue_retimed(counter_get(served_ns), at_ns, old_bps, new_bps));
    }
}

void flows_own_gone(struct flow_share *share, uint64_t at_ns) {
    struct own_step *step = &share->step[share->latest];
    share->began_ns = 0; /* what comes next is a step of its own */
    counter_set(&step->served_ns, min_u64(counter_get(&step->served_ns), at_ns));
}

uint64_t flows_own_bytes(const struct flow_share *share, uint64_t at_ns) {
    uint64_t gone = 0, all = counter_get(&share->queued_bytes);
    for (uint32_t i = 0; i < OWN_STEPS; i++) {
        const struct own_step *step = &share->step[i];
        if (counter_get(&step->served_ns) <= at_ns) {
            gone = max_u64(gone, counter_get(&step->bytes));
        }
    }
    return all - min_u64(gone, all);
}

/* --- who there is --------------------------------------------------------------------------- */

static uint16_t *slot_of(struct flows *flows, uint64_t key) {
    return &flows->slot[key % SLOTS];
}

static void unlink_age(struct flows *flows, uint16_t who) {
    struct flow *flow = &flows->flow[who];
    flows->flow[flow->older].newer = flow->newer;
    flows->flow[flow->newer].older = flow->older;
}

static void make_newest(struct flows *flows, uint16_t who) {
    struct flow *flow = &flows->flow[who];
    flow->older = flows->flow[0].older;
    flow->newer = 0;
    flows->flow[flow->older].newer = who;
    flows->flow[0].older = who;
}

/* 0: nobody, and no room. */
static uint16_t enter(struct flows *flows, struct flow_share *share, uint64_t key) {
    uint16_t who = flows->free;
    if (who) {
        flows->free = flows->flow[who].chained;
    } else if (flows->used < FLOW_LIMIT) {
        who = ++flows->used;
    } else {
        return 0;
    }
    uint16_t *slot = slot_of(flows, key);
    flows->flow[who] = (struct flow){.key = key, .share = share, .chained = *slot};
    *slot = who;
    return who;
}

static uint16_t find(struct flows *flows, uint64_t key) {
    uint16_t who = *slot_of(flows, key);
    while (who && flows->flow[who].key != key) {
        who = flows->flow[who].chained;
    }
    return who;
}

static void leave(struct flows *flows, struct queue *q, uint16_t who, uint64_t at_ns) {
    struct flow *flow = &flows->flow[who];
    uint16_t *place = slot_of(flows, flow->key);
    while (*place != who) {
        place = &flows->flow[*place].chained;
    }
    *place = flow->chained;
    unlink_age(flows, who);
    flow->chained = flows->free;
    flows->free = who;
    if (flow->counts) {
        flows->active--;
        flow->share->active--;
        flows_apply(flows, q, at_ns);
    }
}

static void expire(struct flows *flows, struct queue *q, uint64_t at_ns) {
    for (uint16_t who; (who = flows->flow[0].newer) != 0;) {
        uint64_t over_ns = flows->flow[who].last_ns + FLOW_WINDOW_NS;
        if (over_ns > at_ns) {
            return;
        }
        leave(flows, q, who, over_ns);
    }
}

/* --- packets -------------------------------------------------------------------------------- */

/* Whether it is a packet of a flow, of which, and whether the flow ends with it. */
static bool flow_of(const struct frame *frame, uint64_t *key, bool *ends) {
    const struct packet_info *info = &frame->info;
    const uint8_t *l4 = frame_content(frame) + info->l4;
    bool tcp = info->protocol == IPPROTO_TCP;
    uint32_t there = info->length > info->l4 ? info->length - info->l4 : 0;
    if (info->probe || (!tcp && info->protocol != IPPROTO_UDP) ||
        there < (tcp ? TCP_HEADER_BYTES : UDP_HEADER_BYTES)) {
        return false;
    }
    uint32_t header = tcp ? 4u * (l4[12] >> 4) : UDP_HEADER_BYTES;
    *ends = tcp && l4[13] & (TCP_FIN | TCP_RST);
    uint64_t numbers[PACKET_FLOW];
    packet_flow(info, frame_content(frame), numbers);
    *key = info->flow ? info->flow : draw_flow(numbers, PACKET_FLOW);
    return *ends || there > header;
}

void flows_join(struct flows *flows, struct flow_share *share) {
    share->next = flows->shares;
    flows->shares = share;
}

void flows_see(struct flows *flows, struct flow_share *share, struct queue *q,
               const struct frame *frame, uint64_t at_ns) {
    uint64_t key;
    bool ends;
    expire(flows, q, at_ns);
    if (!flow_of(frame, &key, &ends)) {
        return;
    }
    key ^= share->salt;
    uint16_t who = find(flows, key);
    if (ends) {
        if (who) {
            leave(flows, q, who, at_ns);
        }
        return;
    }
    bool known = who != 0;
    who = known ? who : enter(flows, share, key);
    if (!who) {
        return;
    }
    struct flow *flow = &flows->flow[who];
    flow->last_ns = at_ns;
    if (known) {
        unlink_age(flows, who);
        if (!flow->counts) {
            flow->counts = true;
            flows->active++;
            share->active++;
            flows_apply(flows, q, at_ns);
        }
    }
    make_newest(flows, who);
}
