/* Answers and fragments are packets that no port brought in. They begin at the node where the link
 * does, with the link's own time. */
#include "obstruct.h"

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

/* On its way from `node` to the packet's sender. An answer has none of its own, so this ends. */
static void answer(struct engine *e, uint32_t node, struct frame *to, uint32_t mtu,
                   uint64_t at_ns) {
    struct frame *frame = to->info.probe ? NULL : pool_frame(&e->transit.pool, REFUSAL_LIMIT);
    if (!frame) {
        return;
    }
    size_t length = refusal_make(&to->info, frame_bytes(to), mtu, frame_bytes(frame));
    struct piece *piece = made(e, frame, length, to->dest, to->source);
    if (piece) {
        struct pair *pair = frame->pair;
        engine_arrive(e, node, piece, at_ns);
        pair_touch(pair);
    }
}

/* All fragments of a whole packet, onto the link. */
static void offer_fragments(struct engine *e, struct link *link, const struct frame *whole,
                            uint32_t hops, uint64_t at_ns) {
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
            piece->hops = (uint8_t)hops;
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
        offer_fragments(e, link, whole, piece->hops, at_ns);
        pool_release(pool, whole);
    }
    pool_piece_release(pool, piece);
}

bool obstruct(struct engine *e, uint32_t node, struct link *link, struct piece *piece,
              uint64_t at_ns) {
    struct frame *frame = piece->frame;
    bool refused = link_refuses(link, piece);
    if (!refused && !link_exceeded(link, piece)) {
        return false;
    }
    if (!refused && fragment_allowed(&frame->info, frame_bytes(frame))) {
        cut_up(e, link, piece, at_ns);
        return true;
    }
    counter_add(refused ? &e->transit.rejected : &e->transit.too_large, piece->count);
    frame->references++;
    link_refuse(&e->transit, link, piece, at_ns);
    answer(e, node, frame, refused ? 0 : link->mtu, at_ns);
    pool_release(&e->transit.pool, frame);
    return true;
}
