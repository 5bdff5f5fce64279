/* Packets from port to port, hop by hop, and the changes between them.
 *
 * A packet enters at a port, belongs to the node bound there, and is looked up by destination
 * address. At each node the route for its destination names the next link; at the destination's own
 * node it is delivered. Link by link it moves when its time has come (engine_step); all times are
 * virtual, so being late at one hop does not add up over the path.
 */
#include "engine.h"

#include "batch.h"

#include "pktd/core/draws/draw.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct engine *engine_new(uint64_t pool_limit_bytes, engine_deliver *deliver, void *context) {
    /* Several megabytes, nearly all of which stay untouched: zero pages straight from the system.
     */
    struct engine *e =
        mmap(NULL, sizeof *e, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (e == MAP_FAILED) {
        return NULL;
    }
    pool_init(&e->transit.pool, pool_limit_bytes);
    e->deliver = deliver;
    e->deliver_context = context;
    e->to_many.pair[0].page = e->to_many.pair[1].page = &e->to_many;
    return e;
}

void engine_free(struct engine *e) {
    if (!e) {
        return;
    }
    for (size_t i = 0; i < sizeof e->link_page / sizeof *e->link_page; i++) {
        free(atomic_load_explicit(&e->link_page[i], memory_order_relaxed));
    }
    fib_destroy(&e->fib);
    spread_destroy(&e->spread);
    pairs_destroy(&e->pairs);
    free(e->transit.heap.entry);
    free(e->addrs.slot);
    pool_destroy(&e->transit.pool);
    munmap(e, sizeof *e);
}

bool engine_prepare_link(struct engine *e, uint32_t link) {
    _Atomic(struct link_page *) *slot = &e->link_page[link / LINK_FAN];
    if (atomic_load_explicit(slot, memory_order_relaxed)) {
        return true;
    }
    struct link_page *page = aligned_alloc(_Alignof(struct link_page), sizeof *page);
    if (!page) {
        return false;
    }
    memset(page, 0, sizeof *page);
    for (uint32_t i = 0; i < LINK_FAN; i++) {
        page->link[i].waiting.at = HEAP_OUT;
    }
    atomic_store_explicit(slot, page, memory_order_release);
    return true;
}

void engine_reserve(struct engine *e, struct engine_room *room) {
    if (room->heap && room->heap_capacity > e->transit.heap.capacity) {
        room->heap = heap_reserve(&e->transit.heap, room->heap, room->heap_capacity);
    }
    if (room->slots && room->slot_capacity > e->addrs.capacity) {
        room->slots = addr_reserve(&e->addrs, room->slots, room->slot_capacity);
    }
}

static void count_left(struct engine *e, const struct leaving *l, int error) {
    if (error) {
        counter_add(&e->count.drop_write, l->count);
        return;
    }
    counter_add(&e->count.tx, l->count);
    counter_add(&e->count.tx_frames, 1);
    if (l->passes) {
        counter_add(&e->count.passed, l->count);
        return;
    }
    struct pair *pair = l->frame->pair;
    if (pair == &e->to_many.pair[0]) {
        counter_add(&e->count.group_delivered, l->count);
    }
    counter_add(&pair->delivered_pkts, l->count);
    counter_add(&pair->delivered_bytes, l->bytes);
    pair_touch(pair);
}

void engine_left(struct engine *e, const struct leaving *leaving, int error) {
    counter_set(&e->transit.in_flight, counter_get(&e->transit.in_flight) - 1);
    count_left(e, leaving, error);
    pool_release(&e->transit.pool, leaving->frame);
}

static void leave(struct engine *e, uint32_t port, uint64_t at_ns, const struct leaving *l,
                  const struct iovec *io, int count) {
    if (e->hand_over && e->hand_over(e->deliver_context, port, at_ns, l, io, count)) {
        l->frame->references++;
        counter_add(&e->transit.in_flight, 1);
        return;
    }
    count_left(e, l, e->deliver(e->deliver_context, port, at_ns, io, count));
}

void engine_deliver_at(struct engine *e, uint32_t node, const struct piece *piece, uint64_t at_ns) {
    struct frame *frame = piece->frame;
    uint32_t port = e->node[node].port;
    if (port == 0) {
        pair_drop(frame->pair, DROP_ROUTE, piece->count);
        return;
    }
    struct packet_piece cut;
    uint8_t *bytes = frame_bytes(frame);
    packet_cut(&frame->info, bytes, piece->first, piece->count, &cut);
    if (piece->aged && cut.header_bytes == 0 && frame->references == 1) { /* nobody else looks */
        packet_age(bytes, piece->aged);
    } else if (piece->aged) {
        piece_age(piece, &cut);
    }
    struct iovec io[3] = {{&cut.vnet, sizeof cut.vnet},
                          {cut.header, cut.header_bytes},
                          {bytes + cut.payload_offset, cut.payload_bytes}};
    if (cut.header_bytes == 0) {
        io[1] = io[2];
    }
    const struct leaving leaving = {.frame = frame,
                                    .count = piece->count,
                                    .bytes =
                                        packet_bytes(&frame->info, piece->first, piece->count)};
    leave(e, port - 1, at_ns, &leaving, io, cut.header_bytes ? 3 : 2);
}

const struct link *engine_any_link(const struct engine *e, uint32_t next) {
    if (next < LINK_LIMIT) {
        return engine_link(e, next);
    }
    const struct spread_group *group = spread_find(&e->spread, next);
    return group ? engine_link(e, group->link[0]) : NULL;
}

/* Of a group the link whose draw for the packet's flow is the highest: rendezvous hashing (Thaler
 * and Ravishankar, "Using name-based mappings to increase hit rates", 1998). Nothing is remembered,
 * so packets of a flow keep their link and their order, and a link that leaves a group moves its
 * own flows only. compiler/plan/paths/flows.py computes the same from docs/plan.md. */
static struct link *link_of_flow(struct engine *e, uint32_t next, struct frame *frame) {
    const struct spread_group *group = spread_find(&e->spread, next);
    struct link *best = NULL;
    uint64_t highest = 0;
    if (group && !frame->info.flow) {
        uint64_t numbers[PACKET_FLOW];
        packet_flow(&frame->info, frame_content(frame), numbers);
        frame->info.flow = draw_flow(numbers, PACKET_FLOW);
    }
    for (uint32_t i = 0; group && i < group->count; i++) {
        struct link *link = engine_link(e, group->link[i]);
        uint64_t drawn = draw_share(link->seed, frame->info.flow);
        if (!best || drawn > highest) {
            best = link;
            highest = drawn;
        }
    }
    return best;
}

/* As engine_forward(), which other files call. */
static inline void forward(struct engine *e, uint32_t next, struct piece *piece, uint64_t at_ns) {
    struct link *link =
        next < LINK_LIMIT ? engine_link(e, next) : link_of_flow(e, next, piece->frame);
    if (!link || piece->hops++ >= HOP_LIMIT) {
        pair_drop(piece->frame->pair, DROP_ROUTE, piece->count);
        pool_piece_release(&e->transit.pool, piece);
        return;
    }
    if (link->obstructs) {
        obstruct(e, link, piece, at_ns);
    } else {
        link_offer(&e->transit, link, piece, at_ns);
    }
}

void engine_forward(struct engine *e, uint32_t link, struct piece *piece, uint64_t at_ns) {
    forward(e, link, piece, at_ns);
}

void engine_arrive(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns) {
    if (e->closed) {
        pair_drop(piece->frame->pair, DROP_DOWN, piece->count);
        pool_piece_release(&e->transit.pool, piece);
        return;
    }
    if (piece->frame->audience) {
        many_arrive(e, node, piece, at_ns);
        return;
    }
    if (node == piece->frame->dest) {
        engine_deliver_at(e, e->paths ? piece->frame->source : node, piece, at_ns);
        pool_piece_release(&e->transit.pool, piece);
        return;
    }
    forward(e, fib_get(&e->fib, node, piece->frame->dest), piece, at_ns);
}

enum verdict { VERDICT_ENTER, VERDICT_PASS, VERDICT_UNKNOWN, VERDICT_SPOOFED };

bool engine_is_own_source(const struct node *node, const struct packet_info *info) {
    const struct addr *own = info->version == 4 ? &node->addr4 : &node->addr6;
    if (own->version && memcmp(own->bytes, info->source, sizeof own->bytes) == 0) {
        return true;
    }
    struct addr from = {.version = info->version};
    memcpy(from.bytes, info->source, sizeof from.bytes);
    return prefix_has(&node->behind, &from);
}

/* Which node leads to an address that none has: by the longest prefix, then the lowest node. */
static uint32_t node_before(const struct engine *e, const struct addr *to) {
    uint32_t found = NODE_NONE;
    for (uint32_t next = e->first_behind; next; next = e->node[next - 1].next_behind) {
        const struct prefix *behind = &e->node[next - 1].behind;
        if (prefix_has(behind, to) &&
            (found == NODE_NONE || behind->bits > e->node[found].behind.bits ||
             (behind->bits == e->node[found].behind.bits && next - 1 < found))) {
            found = next - 1;
        }
    }
    return found;
}

/* Finds out where a frame comes from and where it goes. */
static enum verdict classify(const struct engine *e, uint32_t port, struct frame *frame) {
    struct addr to = {.version = frame->info.version};
    memcpy(to.bytes, frame->info.dest, sizeof to.bytes);
    uint32_t dest = addr_find(&e->addrs, &to);
    uint32_t source = e->port_node[port];
    if (dest == NODE_NONE && e->first_behind) {
        dest = node_before(e, &to);
    }
    if (dest == NODE_NONE && e->paths) {
        /* What is sent to a group was not sent to pktd: the filters choose single destinations. */
        return frame_bytes(frame)[0] & 1 ? VERDICT_UNKNOWN : VERDICT_PASS;
    }
    if (dest == NODE_NONE || source == 0) {
        return VERDICT_UNKNOWN;
    }
    /* Path by path, whoever made the interface sees to that: docs/pktd.md, Path mode. */
    if (!e->paths && !e->any_source && !engine_is_own_source(&e->node[source - 1], &frame->info)) {
        return VERDICT_SPOOFED;
    }
    frame->source = (uint16_t)(source - 1);
    frame->dest = (uint16_t)dest;
    return VERDICT_ENTER;
}

/* Out again as it came, at once. */
static void pass(struct engine *e, uint32_t port, struct frame *frame, uint64_t at_ns) {
    struct iovec io[2] = {{&frame->info.vnet, sizeof frame->info.vnet},
                          {frame_bytes(frame), frame->info.length}};
    const struct leaving leaving = {.frame = frame, .count = frame->info.segments, .passes = true};
    leave(e, port, at_ns, &leaving, io, 2);
}

/* Not in place of a group's. */
void engine_readdress(const struct engine *e, struct frame *frame) {
    const struct node *node = &e->node[frame->dest];
    uint8_t *mac = frame_bytes(frame);
    if (node->has_mac && !(mac[0] & 1)) {
        memcpy(mac, node->mac, sizeof node->mac);
    }
}

static void enter(struct engine *e, struct frame *frame, uint64_t at_ns) {
    uint32_t segments = frame->info.segments;
    if (e->readdresses) {
        engine_readdress(e, frame);
    }
    frame->pair = pairs_get(&e->pairs, frame->source, frame->dest);
    transit_hash(&e->transit, frame);
    struct piece *piece = frame->pair ? pool_piece(&e->transit.pool, frame) : NULL;
    if (!piece) {
        counter_add(&e->transit.drop_nobuf, segments);
        return;
    }
    piece->count = (uint16_t)segments;
    counter_add(&frame->pair->offered_pkts, segments);
    counter_add(&frame->pair->offered_bytes, packet_bytes(&frame->info, 0, segments));
    if (frame->source == frame->dest) {
        /* A kernel never sends to itself through a device. */
        pair_drop(frame->pair, DROP_ROUTE, segments);
        pool_piece_release(&e->transit.pool, piece);
        return;
    }
    engine_arrive(e, frame->source, piece, at_ns);
    /* Last: it announces what the first link has counted, too. */
    pair_touch(frame->pair);
}

void engine_input(struct engine *e, uint32_t port, struct frame *frame, size_t bytes,
                  uint64_t at_ns) {
    struct virtio_net_hdr vnet;
    memcpy(&vnet, frame->data, sizeof vnet);
    counter_add(&e->count.rx_frames, 1);
    enum packet_error error = packet_parse(&frame->info, &vnet, frame_bytes(frame), bytes);
    counter_add(&e->count.rx, frame->info.segments);
    if (e->port_node[port] && e->node[e->port_node[port] - 1].kind != NODE_PLAIN) {
        switching_take(e, port, frame, bytes, error, at_ns);
        pool_release(&e->transit.pool, frame);
        return;
    }
    if (error == PACKET_MALFORMED) {
        counter_add(&e->count.drop_malformed, 1);
        pool_release(&e->transit.pool, frame);
        return;
    }
    switch (error == PACKET_NOT_IP ? VERDICT_UNKNOWN : classify(e, port, frame)) {
    case VERDICT_ENTER:
        enter(e, frame, at_ns);
        break;
    case VERDICT_PASS:
        pass(e, port, frame, at_ns);
        break;
    case VERDICT_UNKNOWN:
        if (error == PACKET_OK && many_take(e, port, frame, at_ns)) {
            break;
        }
        counter_add(&e->count.drop_unknown, frame->info.segments);
        if (error == PACKET_OK && packet_is_for_many(&frame->info, frame_bytes(frame))) {
            counter_add(&e->port[port].group, frame->info.segments);
        }
        break;
    case VERDICT_SPOOFED:
        counter_add(&e->count.drop_spoofed, frame->info.segments);
        counter_add(&e->port[port].spoofed, frame->info.segments);
        break;
    }
    pool_release(&e->transit.pool, frame);
}

void engine_lost(struct engine *e, const uint8_t *data, size_t bytes) {
    struct virtio_net_hdr vnet;
    struct packet_info info;
    memcpy(&vnet, data, sizeof vnet);
    packet_parse(&info, &vnet, data + VNET_BYTES, bytes); /* no packet is one segment, too */
    counter_add(&e->transit.drop_nobuf, info.segments);
}

void engine_step(struct engine *e) {
    /* `waiting` is the first member of a link. */
    struct link *link = (struct link *)(void *)heap_top(&e->transit.heap)->node;
    struct piece *piece = link_take(&e->transit, link);
    if (!piece) {
        return;
    }
    if (piece->frame->is_whole_frame) {
        switching_arrive(e, link, piece, piece->due_ns);
        return;
    }
    bool passes = e->has_hops && e->node[link->dest].hop;
    if (!passes || !engine_expire(e, link->dest, piece, piece->due_ns)) {
        engine_arrive(e, link->dest, piece, piece->due_ns);
    }
}

void engine_run(struct engine *e, uint64_t until_ns) {
    while (engine_next(e) <= until_ns) {
        engine_step(e);
    }
}

static void lead_to(struct engine *e, uint32_t node, const struct prefix *behind) {
    struct node *n = &e->node[node];
    uint32_t *next = &e->first_behind;
    while (*next && *next != node + 1) {
        next = &e->node[*next - 1].next_behind;
    }
    if (*next) {
        *next = n->next_behind;
    }
    n->behind = *behind;
    if (behind->addr.version) {
        n->next_behind = e->first_behind;
        e->first_behind = node + 1;
    }
}

static void apply_node(struct engine *e, uint32_t node, const struct op_node *op) {
    struct node *n = &e->node[node];
    if (n->addr4.version && !n->hop) {
        addr_drop(&e->addrs, &n->addr4, node);
    }
    if (n->addr6.version && !n->hop) {
        addr_drop(&e->addrs, &n->addr6, node);
    }
    n->addr4 = op->addr4;
    n->addr6 = op->addr6;
    n->hop = op->hop;
    n->has_mac = op->has_mac;
    memcpy(n->mac, op->mac, sizeof n->mac);
    e->readdresses |= op->has_mac;
    e->has_hops |= op->hop;
    n->kind = op->kind;
    lead_to(e, node, &op->behind);
    if (n->addr4.version && !n->hop) { /* a hop answers, and is no destination */
        addr_put(&e->addrs, &n->addr4, node);
    }
    if (n->addr6.version && !n->hop) {
        addr_put(&e->addrs, &n->addr6, node);
    }
}

static void unbind(struct engine *e, uint32_t node) {
    if (e->node[node].port) {
        e->port_node[e->node[node].port - 1] = 0;
        e->node[node].port = 0;
        groups_forget(&e->groups, node);
    }
}

void engine_close_port(struct engine *e, uint32_t port) {
    if (e->port_node[port]) {
        unbind(e, e->port_node[port] - 1);
    }
}

static void bind(struct engine *e, uint32_t node, uint32_t port) {
    if (e->node[node].port == port + 1) {
        return; /* as it is: it listens to what it does */
    }
    unbind(e, node);
    engine_close_port(e, port);
    e->port_end = port + 1 > e->port_end ? port + 1 : e->port_end;
    e->node[node].port = port + 1;
    e->port_node[port] = node + 1;
}

static void apply_link(struct engine *e, uint32_t number, const struct op_link *op,
                       uint64_t at_ns) {
    struct link *link = engine_link(e, number);
    link->source = op->source;
    link->dest = op->dest;
    link->seed = op->seed;
    switching_add_link(e, number);
    link_change(&e->transit, link, &op->config, at_ns);
}

/* A path is a link with the route that leads over it. */
static void apply_path(struct engine *e, const struct op *op, const struct op_link *path,
                       uint64_t at_ns) {
    struct link *link = engine_link(e, op->link);
    link->source = path->source;
    link->dest = path->dest;
    link->seed = path->config.fields & LINK_SEED ? path->seed : link->seed;
    link_change(&e->transit, link, &path->config, at_ns);
    fib_set(&e->fib, path->source, path->dest, path->dest, op->link);
}

void engine_use_paths(struct engine *e) {
    e->paths = true;
}

void engine_take_any_source(struct engine *e) {
    e->any_source = true;
}

void engine_close_paths(struct engine *e, bool closed) {
    e->closed = closed;
}

void engine_apply(struct engine *e, const struct batch *batch, uint64_t at_ns) {
    for (size_t i = 0; i < batch->op_count; i++) {
        const struct op *op = &batch->op[i];
        switch ((enum op_kind)op->kind) {
        case OP_NODE:
            apply_node(e, op->node, &batch->node[op->index]);
            break;
        case OP_BIND:
            bind(e, op->node, op->port);
            break;
        case OP_UNBIND:
            unbind(e, op->node);
            break;
        case OP_LINK:
            apply_link(e, op->link, &batch->link[op->index], at_ns);
            break;
        case OP_SET:
            link_change(&e->transit, engine_link(e, op->link), &batch->link[op->index].config,
                        at_ns);
            break;
        case OP_PATH:
            apply_path(e, op, &batch->link[op->index], at_ns);
            break;
        case OP_ROUTES:
            fib_set(&e->fib, op->node, op->dests.first, op->dests.last, op->link);
            break;
        case OP_GROUP:
            spread_set(&e->spread, op->link, batch->group[op->index].link,
                       batch->group[op->index].count);
            break;
        }
    }
    counter_add(&e->count.commits, 1);
}
