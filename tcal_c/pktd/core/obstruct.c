/* Answers and fragments are packets that no port brought in. They begin at the node where the link
 * does, with the link's own time. */
#include "engine.h"

#include "pktd/core/packets/fragment.h"
#include "pktd/core/packets/refusal.h"

/* A packet that was made here, in `frame`, which it takes over. NULL: it is none, or has no room.
 */
static struct piece *made(struct engine *e, struct frame *frame, size_t length, uint16_t source,
                          uint16_t dest) {
    static const struct virtio_net_hdr plain;
    uint8_t *bytes = frame_bytes(frame);
    struct piece *piece = NULL;
    if (length && packet_parse(&frame->info, &plain, bytes, length) == PACKET_OK) {
        frame->source = source;
        frame->dest = dest;
        transit_hash(&e->transit, frame);
        frame->pair = pairs_get(&e->pairs, source, dest);
        piece = frame->pair ? pool_piece(&e->transit.pool, frame) : NULL;
    }
    if (piece) {
        piece->count = 1;
    }
    pool_release(&e->transit.pool, frame); /* the piece has it */
    return piece;
}

/* On its way from `node` to the packet's sender. An answer has none of its own, so this ends. It
 * counts as delivered of the packet's destination, whoever it says that it is from. Nobody is told
 * of what is for many. */
static void answer(struct engine *e, uint32_t node, struct frame *to,
                   const struct refused_packet *refused, uint64_t at_ns) {
    bool silent = to->info.probe || to->pair == &e->to_many.pair[0];
    struct frame *frame = silent ? NULL : pool_frame(&e->transit.pool, REFUSAL_LIMIT);
    if (!frame) {
        return;
    }
    size_t length = refusal_make(&to->info, frame_bytes(to), refused, frame_bytes(frame));
    struct piece *piece = made(e, frame, length, to->dest, to->source);
    if (piece) {
        struct pair *pair = frame->pair;
        engine_arrive(e, node, piece, at_ns);
        pair_touch(pair);
    }
}

/* The first segment of a piece, as its sender is to see it: it has lost `aged` of its TTL. NULL
 * without memory. */
static struct frame *quoted(struct engine *e, const struct piece *piece, uint32_t aged) {
    struct frame *copy = pool_segment(&e->transit.pool, piece->frame, piece->first);
    if (copy) {
        packet_age(frame_bytes(copy), aged);
    }
    return copy;
}

/* The address of a hop that answers a packet of this version; NULL: it has none. */
static const uint8_t *hop_address(const struct engine *e, uint32_t node, uint8_t version) {
    const struct node *hop = &e->node[node];
    const struct addr *own = version == 4 ? &hop->addr4 : &hop->addr6;
    return hop->hop && own->version ? own->bytes : NULL;
}

/* All fragments of a whole packet, onto the link. */
static void offer_fragments(struct engine *e, struct link *link, const struct frame *whole,
                            const struct piece *origin, uint64_t at_ns) {
    uint32_t offset = 0;
    for (;;) {
        struct frame *part = pool_frame(&e->transit.pool, ETH_BYTES + link->mtu);
        if (!part) {
            counter_add(&e->transit.drop_nobuf, 1);
            return;
        }
        size_t bytes = fragment_make(frame_content(whole), whole->info.length, link->mtu, &offset,
                                     frame_bytes(part));
        struct piece *piece = made(e, part, bytes, whole->source, whole->dest);
        if (bytes == 0) {
            return;
        }
        if (piece) {
            piece_come_as(piece, origin);
            frame_send_as(piece->frame, whole);
            link_offer(&e->transit, link, piece, at_ns);
        }
    }
}

static void cut_up(struct engine *e, struct link *link, struct piece *piece, uint64_t at_ns) {
    struct pool *pool = &e->transit.pool;
    struct frame *frame = piece->frame;
    uint32_t end = (uint32_t)piece->first + piece->count;
    for (uint32_t i = piece->first; i < end; i++) {
        struct frame *whole = pool_segment(pool, frame, i);
        if (!whole) {
            counter_add(&e->transit.drop_nobuf, 1);
            continue;
        }
        offer_fragments(e, link, whole, piece, at_ns);
        pool_release(pool, whole);
    }
    pool_piece_release(pool, piece);
}

void obstruct(struct engine *e, struct link *link, struct piece *piece, uint64_t at_ns) {
    struct frame *frame = piece->frame;
    bool refused = link_refuses(&e->transit, link, piece, at_ns);
    if (!refused && !link_exceeded(link, piece)) {
        link_offer(&e->transit, link, piece, at_ns);
        return;
    }
    if (!refused && fragment_allowed(&frame->info, frame_bytes(frame))) {
        cut_up(e, link, piece, at_ns);
        return;
    }
    counter_add(refused ? &e->transit.rejected : &e->transit.too_large, piece->count);
    struct refused_packet why = {.why = REFUSED_RULE};
    struct frame *told = frame;
    if (refused) {
        frame->references++;
    } else {
        why = (struct refused_packet){.why = REFUSED_SIZE,
                                      .mtu = link->mtu,
                                      .from = hop_address(e, link->source, frame->info.version)};
        told = quoted(e, piece, piece->aged);
    }
    link_refuse(&e->transit, link, piece, at_ns);
    if (told) {
        answer(e, link->source, told, &why, at_ns);
        pool_release(&e->transit.pool, told);
    }
}

/* As Linux limits these errors: six to one sender at once, then one a second (icmp_ratelimit in
 * ip-sysctl.txt; inet_peer_xrlim_allow). */
static bool may_answer(struct pair *pair, uint64_t at_ns) {
    enum { AT_ONCE = 6 };
    uint64_t until = max_u64(pair->answers_ns, at_ns) + NS_PER_S;
    if (until > at_ns + AT_ONCE * NS_PER_S) {
        return false;
    }
    pair->answers_ns = until;
    return true;
}

static void tell_expired(struct engine *e, uint32_t node, const struct piece *piece,
                         uint64_t at_ns) {
    const struct frame *frame = piece->frame;
    const struct refused_packet why = {.why = REFUSED_TTL,
                                       .from = hop_address(e, node, frame->info.version)};
    struct pair *pair =
        why.from && !frame->info.probe ? pairs_get(&e->pairs, node, frame->source) : NULL;
    if (!pair || !refusal_is_heard(&frame->info, frame_content(frame))) {
        return;
    }
    if (!may_answer(pair, at_ns)) {
        counter_add(&e->count.withheld, 1);
        return;
    }
    struct frame *copy = quoted(e, piece, piece->aged - 1u);
    if (copy) {
        answer(e, node, copy, &why, at_ns);
        pool_release(&e->transit.pool, copy);
    }
}

bool engine_expire(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns) {
    const struct frame *frame = piece->frame;
    if (frame->pair == &e->to_many.pair[0]) {
        return many_expire(e, node, piece);
    }
    if (++piece->aged < frame->info.ttl) {
        return false;
    }
    counter_add(&e->count.expired, piece->count);
    pair_drop(frame->pair, DROP_ROUTE, piece->count);
    tell_expired(e, node, piece, at_ns);
    pool_piece_release(&e->transit.pool, piece);
    return true;
}
