/* Frames on links at which no address is looked up.
 *
 * A node of `NODE_END` has one link out: whatever frame enters its port is offered to that link as
 * it is, and what comes out of a link to it is written to its port as it is. A node of `NODE_LAN`
 * is a learning switch: where a frame came from is where its source address is; a frame goes to the
 * link of its destination, and to all others where that is not known, not up, or a group. Copies
 * share the frame's bytes. A node of `NODE_AIR` is the radio of the end that it has a link to: what
 * that sends goes to the radio of its destination, whether that is reached or not, and where it is
 * not known, or a group, to all radios that are reached; what comes from another radio goes to that
 * end alone. Its sender's link has the queue, so that what all hear is sent once. Lans have no
 * loops (the compiler sees to that) and no spanning tree; HOP_LIMIT bounds what a loop would do.
 *
 * What an end sends to an end counts as of that pair; what passes a lan has no pair that is told,
 * and counts by link. Sources: IEEE 802.1D-2004, sections 7.7 to 7.9 (without aging: an address
 * that has moved is where it was seen last).
 */
#include "engine.h"

#include <string.h>

#define MAC_BYTES 6u
#define PROBES 8u /* places where an address may stand */

static uint64_t mac_of(const uint8_t *bytes) {
    uint64_t mac = 0;
    for (uint32_t i = 0; i < MAC_BYTES; i++) {
        mac = mac << 8 | bytes[i];
    }
    return mac;
}

static struct station *place_of(struct engine *e, uint32_t lan, uint64_t mac, uint32_t probe) {
    uint64_t hash = (mac << 16 ^ lan) * 0x9E3779B97F4A7C15u;
    return &e->station[((hash >> 40) + probe) % STATION_LIMIT];
}

static bool is_station(const struct station *s, uint32_t lan, uint64_t mac) {
    return s->link && s->lan == lan && s->mac == mac;
}

/* The link to an address, as link + 1; 0: not known. */
static uint32_t link_to(struct engine *e, uint32_t lan, uint64_t mac) {
    for (uint32_t i = 0; i < PROBES; i++) {
        const struct station *s = place_of(e, lan, mac, i);
        if (is_station(s, lan, mac)) {
            return s->link;
        }
    }
    return 0;
}

/* Where all places are taken, another address is forgotten: frames to it go everywhere again. */
static void learn(struct engine *e, uint32_t lan, uint64_t mac, uint32_t link) {
    struct station *place = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct station *s = place_of(e, lan, mac, i);
        if (is_station(s, lan, mac)) {
            s->link = link;
            return;
        }
        if (!place && !s->link) {
            place = s;
        }
    }
    place = place ? place : place_of(e, lan, mac, 0);
    *place = (struct station){.mac = mac, .lan = (uint16_t)lan, .link = link};
}

void switching_add_link(struct engine *e, uint32_t number) {
    struct link *link = engine_link(e, number);
    if (e->node[link->source].kind == NODE_PLAIN || link->chained) {
        return;
    }
    uint32_t *at = &e->node[link->source].first_out;
    while (*at && *at - 1 < number) {
        at = &engine_link(e, *at - 1)->next_out;
    }
    link->next_out = *at;
    link->chained = true;
    *at = number + 1;
}

/* Onto a link of `node`. Nobody is told of what is refused or too large. Takes the piece over. */
static void send_on(struct engine *e, struct link *link, struct piece *piece, uint64_t at_ns) {
    if (piece->hops++ >= HOP_LIMIT) {
        pair_drop(piece->frame->pair, DROP_ROUTE, piece->count);
        pool_piece_release(&e->transit.pool, piece);
        return;
    }
    bool refused = link->obstructs && link_refuses(&e->transit, link, piece, at_ns);
    if (refused || (link->obstructs && link_exceeded(link, piece))) {
        counter_add(refused ? &e->transit.rejected : &e->transit.too_large, piece->count);
        link_refuse(&e->transit, link, piece, at_ns);
        return;
    }
    link_offer(&e->transit, link, piece, at_ns);
}

static void send_copy(struct engine *e, struct link *link, const struct piece *piece,
                      uint64_t at_ns) {
    struct piece *copy = pool_piece(&e->transit.pool, piece->frame);
    if (!copy) {
        counter_add(&e->transit.drop_nobuf, piece->count);
        return;
    }
    copy->first = piece->first;
    copy->count = piece->count;
    copy->span_ns = piece->span_ns;
    piece_come_as(copy, piece);
    send_on(e, link, copy, at_ns);
}

/* Whether a frame that stands at `node` and came from `from` may go on by this link, which is not
 * the one back. A radio does not pass on what it hears. */
static bool goes_on(const struct engine *e, uint32_t node, uint32_t from, const struct link *link) {
    bool heard = e->node[node].kind == NODE_AIR && e->node[from].kind == NODE_AIR;
    return !heard || e->node[link->dest].kind != NODE_AIR;
}

/* A frame stands at a lan or a radio that came from `from`. Takes the piece over. */
static void spread_out(struct engine *e, uint32_t lan, uint32_t from, struct piece *piece,
                       uint64_t at_ns) {
    const uint8_t *bytes = frame_content(piece->frame);
    const struct node *node = &e->node[lan];
    uint32_t back = 0;
    for (uint32_t out = node->first_out; out && !back; out = engine_link(e, out - 1)->next_out) {
        back = engine_link(e, out - 1)->dest == from ? out : 0;
    }
    if (back && !(bytes[MAC_BYTES] & 1)) {
        learn(e, lan, mac_of(bytes + MAC_BYTES), back);
    }
    uint32_t known = bytes[0] & 1 ? 0 : link_to(e, lan, mac_of(bytes));
    bool sent_there = known && (node->kind == NODE_AIR || engine_link(e, known - 1)->up);
    if (sent_there) {
        if (known != back && goes_on(e, lan, from, engine_link(e, known - 1))) {
            send_on(e, engine_link(e, known - 1), piece, at_ns);
            return;
        }
    } else {
        for (uint32_t out = node->first_out; out; out = engine_link(e, out - 1)->next_out) {
            struct link *link = engine_link(e, out - 1);
            if (out != back && link->up && goes_on(e, lan, from, link)) {
                send_copy(e, link, piece, at_ns);
            }
        }
    }
    pool_piece_release(&e->transit.pool, piece);
}

void switching_arrive(struct engine *e, const struct link *link, struct piece *piece,
                      uint64_t at_ns) {
    if (e->node[link->dest].kind != NODE_END) {
        spread_out(e, link->dest, link->source, piece, at_ns);
        return;
    }
    engine_deliver_at(e, link->dest, piece, at_ns);
    pool_piece_release(&e->transit.pool, piece);
}

/* What no packet of IP can be read from is carried as bytes, whole. */
static void take_as_bytes(struct packet_info *info, size_t bytes) {
    const struct virtio_net_hdr vnet = info->vnet;
    memset(info, 0, sizeof *info);
    info->vnet = vnet;
    info->length = (uint32_t)bytes;
    info->segments = 1;
}

void switching_take(struct engine *e, uint32_t port, struct frame *frame, size_t bytes,
                    enum packet_error error, uint64_t at_ns) {
    uint32_t source = e->port_node[port] - 1;
    if (bytes < ETH_BYTES || bytes > FRAME_LIMIT) {
        counter_add(&e->count.drop_malformed, 1);
        return;
    }
    if (error != PACKET_OK) {
        take_as_bytes(&frame->info, bytes);
    }
    uint32_t out = e->node[source].first_out;
    if (!out) {
        counter_add(&e->count.drop_unknown, frame->info.segments);
        return;
    }
    struct link *link = engine_link(e, out - 1);
    bool direct = e->node[link->dest].kind == NODE_END;
    frame->is_whole_frame = true;
    frame->source = (uint16_t)source;
    frame->dest = direct ? link->dest : (uint16_t)source;
    frame->pair = direct ? pairs_get(&e->pairs, source, link->dest) : &e->to_many.pair[1];
    if (e->transit.digests != DIGESTS_OFF) {
        frame->contents = digest_contents(frame_bytes(frame), frame->info.length);
    }
    struct piece *piece = frame->pair ? pool_piece(&e->transit.pool, frame) : NULL;
    if (!piece) {
        counter_add(&e->transit.drop_nobuf, frame->info.segments);
        return;
    }
    struct pair *pair = frame->pair;
    uint32_t segments = frame->info.segments;
    piece->count = (uint16_t)segments;
    counter_add(&pair->offered_pkts, segments);
    counter_add(&pair->offered_bytes, packet_bytes(&frame->info, 0, segments));
    send_on(e, link, piece, at_ns);
    pair_touch(pair);
}
