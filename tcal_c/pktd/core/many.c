/* Multicast and broadcast, along the tree of the routes in force.
 *
 * A packet goes to those that listen to its group (structures/groups.h), or to all, and what it is
 * for decides how far: groups of the link and broadcast to instances at the same bridge, other
 * groups everywhere. A frame has its audience, a list of nodes. At each node the list is split by
 * the link that the route to each leads over, and one copy goes over each: so a link carries a
 * packet once. Copies are frames of their own, since each has another audience; where nothing
 * branches there is none. A copy for one node alone is a packet for that node. Who has joined a
 * group for some sources is in the audience of these alone.
 *
 * Bridges take from the TTL as from any packet's, but between instances at one bridge: for them it
 * is a switch. So groups with a TTL of 1 reach the bridge's own, as behind real routers.
 *
 * Sources: RFC 1112, RFC 4291 section 2.7 (scopes), RFC 2365 (what 224.0.0.0/24 is for).
 */
#include "engine.h"

#include "pktd/core/packets/membership.h"

#include <string.h>

#define AUDIENCE_LIMIT 30000u

/* In the bytes of a frame of the pool. */
struct audience {
    uint32_t count;
    uint16_t node[];
};

static struct audience *audience_of(struct frame *list) {
    return (struct audience *)(void *)list->data;
}

static struct frame *new_list(struct engine *e, uint32_t room) {
    struct frame *list = pool_frame(&e->transit.pool, sizeof(struct audience) + 2 * room);
    if (list) {
        audience_of(list)->count = 0;
    }
    return list;
}

/* --- who hears it --- */

enum reach { NOWHERE, NEAR, FAR };

struct scope {
    enum reach reach;
    bool everybody; /* there is nothing to join */
};

static struct scope scope_of(const struct packet_info *info) {
    static const uint8_t all6[16] = {[0] = 0xff, [1] = 2, [15] = 1};
    const uint8_t *to = info->dest;
    if (info->version == 6) {
        uint8_t scope = to[1] & 15;
        return (struct scope){scope < 2    ? NOWHERE
                              : scope == 2 ? NEAR
                                           : FAR,
                              memcmp(to, all6, sizeof all6) == 0};
    }
    if (to[0] >> 4 != 14) {
        return (struct scope){NEAR, true}; /* broadcast */
    }
    bool local = to[0] == 224 && to[1] == 0 && to[2] == 0;
    return (struct scope){local ? NEAR : FAR, local && to[3] == 1};
}

static const struct link *next_link(const struct engine *e, uint32_t node, uint32_t dest) {
    return engine_any_link(e, fib_get(&e->fib, node, dest));
}

/* Over one bridge at most. */
static bool is_neighbour(const struct engine *e, const struct link *first, uint32_t dest) {
    const struct link *second = first->dest == dest ? NULL : next_link(e, first->dest, dest);
    return first->dest == dest || (second && second->dest == dest);
}

static void invite(struct engine *e, struct frame *list, uint32_t source, enum reach reach,
                   uint32_t node) {
    struct audience *audience = audience_of(list);
    const struct link *first = node == source ? NULL : next_link(e, source, node);
    if (!first || !e->node[node].port || (reach == NEAR && !is_neighbour(e, first, node))) {
        return;
    }
    if (audience->count == AUDIENCE_LIMIT) {
        counter_add(&e->transit.drop_nobuf, 1);
        return;
    }
    audience->node[audience->count++] = (uint16_t)node;
}

/* Those of the group that hear this source. */
static void invite_listeners(struct engine *e, struct frame *list, const struct group *group,
                             uint32_t source, const struct packet_info *info, enum reach reach) {
    for (uint32_t at = group ? group->first : 0; at;) {
        const struct listener *one = &e->groups.listener[at - 1];
        at = one->next;
        if (groups_hears(&e->groups, one, info->source)) {
            invite(e, list, source, reach, one->node);
        } else if (one->node != source) {
            counter_add(&e->count.group_filtered, info->segments);
        }
    }
}

/* NULL without memory. */
static struct frame *invited(struct engine *e, uint32_t source, const struct packet_info *info) {
    struct addr to = {.version = info->version};
    memcpy(to.bytes, info->dest, sizeof to.bytes);
    struct scope scope = scope_of(info);
    const struct group *group = scope.everybody ? NULL : groups_find(&e->groups, &to);
    uint32_t most = scope.everybody ? e->port_end : group ? group->count : 0;
    struct frame *list = new_list(e, most < AUDIENCE_LIMIT ? most : AUDIENCE_LIMIT);
    if (!list || scope.reach == NOWHERE) {
        return list;
    }
    for (uint32_t port = 0; scope.everybody && port < e->port_end; port++) {
        if (e->port_node[port]) {
            invite(e, list, source, scope.reach, e->port_node[port] - 1);
        }
    }
    invite_listeners(e, list, group, source, info, scope.reach);
    return list;
}

/* --- on the way --- */

/* A list of one becomes the frame's destination. Takes `list` over. */
static void address(struct engine *e, struct frame *frame, struct frame *list) {
    frame->pair = &e->to_many.pair[0];
    if (audience_of(list)->count == 1) {
        frame->dest = audience_of(list)->node[0];
        engine_readdress(e, frame);
        pool_release(&e->transit.pool, list);
        return;
    }
    frame->dest = frame->source;
    frame->audience = list;
}

/* A copy for these nodes, as a piece like `piece`; NULL without memory. */
static struct piece *copied(struct engine *e, const struct piece *piece, const uint16_t *node,
                            uint32_t count) {
    struct pool *pool = &e->transit.pool;
    const struct frame *from = piece->frame;
    struct frame *list = new_list(e, count), *copy = pool_frame(pool, from->info.length);
    struct piece *made = list && copy ? pool_piece(pool, copy) : NULL;
    if (made) {
        memcpy(copy->data, from->data, VNET_BYTES + from->info.length);
        copy->info = from->info;
        copy->contents = from->contents;
        copy->source = from->source;
        memcpy(audience_of(list)->node, node, count * sizeof *node);
        audience_of(list)->count = count;
        address(e, copy, list);
        made->first = piece->first;
        made->count = piece->count;
        made->span_ns = piece->span_ns;
        piece_come_as(made, piece);
    } else {
        counter_add(&e->transit.drop_nobuf, piece->count);
        if (list) {
            pool_release(pool, list);
        }
    }
    if (copy) {
        pool_release(pool, copy); /* the piece has it */
    }
    return made;
}

/* Whether the bridge passes it on to a neighbour of its sender, both of which are its own: as a
 * switch then, which takes nothing from a TTL. */
static bool is_near(const struct engine *e, uint32_t node, const struct piece *piece) {
    const struct frame *frame = piece->frame;
    if (frame->pair != &e->to_many.pair[0] || frame->audience || piece->hops != 1) {
        return false;
    }
    const struct link *link = next_link(e, node, frame->dest);
    return link && link->dest == frame->dest;
}

/* Whether it ends with this bridge, which takes one from its TTL. */
static bool age(struct engine *e, struct piece *piece) {
    if (++piece->aged < piece->frame->info.ttl) {
        return false;
    }
    counter_add(&e->count.expired, piece->count);
    pool_piece_release(&e->transit.pool, piece);
    return true;
}

bool many_expire(struct engine *e, uint32_t node, struct piece *piece) {
    return !piece->frame->audience && !is_near(e, node, piece) && age(e, piece);
}

/* The same for a piece with an audience, all of which is behind one link. */
static void go_on(struct engine *e, uint32_t node, uint32_t link, struct piece *piece,
                  uint64_t at_ns) {
    bool hop = e->node[node].hop && piece->hops > 0;
    if (!hop || !age(e, piece)) {
        engine_forward(e, link, piece, at_ns);
    }
}

/* A copy for one node goes on as a packet for it. */
static void go_on_alone(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns) {
    bool hop = e->node[node].hop && piece->hops > 0 && piece->frame->dest != node;
    if (!hop || !many_expire(e, node, piece)) {
        engine_arrive(e, node, piece, at_ns);
    }
}

/* By link, then by node. */
static bool comes_before(const struct engine *e, uint32_t node, uint16_t a, uint16_t b) {
    uint32_t by_a = fib_get(&e->fib, node, a), by_b = fib_get(&e->fib, node, b);
    return by_a != by_b ? by_a < by_b : a < b;
}

/* Shell's sort: in place, without memory, with the same result anywhere. */
static void sort(const struct engine *e, uint32_t at, struct audience *audience) {
    uint32_t gap = 1;
    while (gap < audience->count / 3) {
        gap = 3 * gap + 1;
    }
    for (; gap; gap /= 3) {
        for (uint32_t i = gap; i < audience->count; i++) {
            uint16_t node = audience->node[i];
            uint32_t k = i;
            for (; k >= gap && comes_before(e, at, node, audience->node[k - gap]); k -= gap) {
                audience->node[k] = audience->node[k - gap];
            }
            audience->node[k] = node;
        }
    }
}

static uint32_t run_end(const struct engine *e, uint32_t at, const struct audience *a,
                        uint32_t begin) {
    uint32_t end = begin + 1, link = fib_get(&e->fib, at, a->node[begin]);
    while (end < a->count && fib_get(&e->fib, at, a->node[end]) == link) {
        end++;
    }
    return end;
}

/* Each of those that no link leads to is this node, or unreachable by now. */
static void end_here(struct engine *e, uint32_t node, const struct piece *piece,
                     const struct audience *a, uint32_t begin, uint32_t end, uint64_t at_ns) {
    for (uint32_t i = begin; i < end; i++) {
        struct piece *copy = a->node[i] == node ? copied(e, piece, &a->node[i], 1) : NULL;
        if (copy) {
            engine_arrive(e, node, copy, at_ns);
        } else {
            pair_drop(piece->frame->pair, DROP_ROUTE, piece->count);
        }
    }
}

static void split(struct engine *e, uint32_t node, const struct piece *piece, struct audience *a,
                  uint64_t at_ns) {
    sort(e, node, a);
    for (uint32_t begin = 0, end; begin < a->count; begin = end) {
        end = run_end(e, node, a, begin);
        uint32_t link = fib_get(&e->fib, node, a->node[begin]);
        if (link == LINK_NONE) {
            end_here(e, node, piece, a, begin, end, at_ns);
            continue;
        }
        struct piece *copy = copied(e, piece, &a->node[begin], end - begin);
        if (copy && copy->frame->audience) {
            go_on(e, node, link, copy, at_ns);
        } else if (copy) {
            go_on_alone(e, node, copy, at_ns);
        }
    }
}

void many_arrive(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns) {
    const struct audience *all = audience_of(piece->frame->audience);
    uint32_t link = fib_get(&e->fib, node, all->node[0]);
    if (link != LINK_NONE && run_end(e, node, all, 0) == all->count) {
        go_on(e, node, link, piece, at_ns);
        return;
    }
    struct frame *list = new_list(e, all->count);
    if (list) {
        memcpy(list->data, all, sizeof *all + all->count * sizeof all->node[0]);
        split(e, node, piece, audience_of(list), at_ns);
        pool_release(&e->transit.pool, list);
    } else {
        counter_add(&e->transit.drop_nobuf, piece->count);
    }
    pool_piece_release(&e->transit.pool, piece);
}

/* --- in --- */

struct listening {
    struct engine *engine;
    uint32_t node;
};

static void take_note(void *context, const struct membership *said) {
    const struct listening *l = context;
    if (!groups_tell(&l->engine->groups, l->node, said)) {
        counter_add(&l->engine->count.group_refused, 1);
    }
}

static bool is_own(const struct engine *e, uint32_t node, const struct frame *frame) {
    return e->any_source || engine_is_own_source(&e->node[node], &frame->info);
}

bool many_take(struct engine *e, uint32_t port, struct frame *frame, uint64_t at_ns) {
    uint32_t source = e->port_node[port] - 1, segments = frame->info.segments;
    if (e->paths || e->port_node[port] == 0) {
        return false;
    }
    if (!packet_is_for_many(&frame->info, frame_bytes(frame))) {
        membership_read(&frame->info, frame_bytes(frame), take_note,
                        &(struct listening){.engine = e, .node = source});
        return false;
    }
    if (!is_own(e, source, frame)) {
        return false;
    }
    struct frame *list = invited(e, source, &frame->info);
    if (!list) {
        counter_add(&e->transit.drop_nobuf, segments);
        return true;
    }
    if (audience_of(list)->count == 0) {
        counter_add(&e->count.group_unwanted, segments);
        pool_release(&e->transit.pool, list);
        return false;
    }
    frame->source = (uint16_t)source;
    transit_hash(&e->transit, frame);
    address(e, frame, list);
    struct piece *piece = pool_piece(&e->transit.pool, frame);
    if (!piece) {
        counter_add(&e->transit.drop_nobuf, segments);
        return true;
    }
    piece->count = (uint16_t)segments;
    counter_add(&e->count.group_sent, segments);
    engine_arrive(e, source, piece, at_ns);
    return true;
}
