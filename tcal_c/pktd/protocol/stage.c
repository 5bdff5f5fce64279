/* Staged changes: checked in full here, so that applying them in the data thread cannot fail.
 *
 * The tables below hold what the client has declared, staged changes included. Every check is
 * against them; the data thread's own state is never read. Memory a change will need (link pages,
 * routing pages) is made at once: unused it means nothing. A refused command changes nothing:
 * checks and allocations come first, the change itself last.
 */
#include "stage.h"

#include "pktd/core/structures/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 256u

bool stage_no_memory(struct refusal *r) {
    return refuse(r, "limit", "out of memory");
}

bool stage_room_for_number(void **array, uint32_t *room, uint32_t number, size_t element) {
    if (number < *room) {
        return true;
    }
    uint32_t bigger = *room ? *room : 64;
    while (bigger <= number) {
        bigger *= 2;
    }
    char *memory = realloc(*array, bigger * element);
    if (!memory) {
        return false;
    }
    memset(memory + *room * element, 0, (bigger - *room) * element);
    *array = memory;
    *room = bigger;
    return true;
}

bool stage_init(struct stage *s, struct engine *engine) {
    *s = (struct stage){.engine = engine};
    s->node = calloc(NODE_LIMIT, sizeof *s->node);
    s->addrs.slot = calloc(FIRST_SLOTS, sizeof *s->addrs.slot);
    s->addrs.capacity = FIRST_SLOTS;
    s->batch = calloc(1, sizeof *s->batch);
    return s->node && s->addrs.slot && s->batch;
}

void stage_destroy(struct stage *s) {
    stage_free_flows(s);
    stage_free_classes(s);
    free(s->node);
    free(s->link);
    free(s->group);
    free(s->addrs.slot);
    free(s->undo);
    for (uint32_t i = 0; i < s->trace_room; i++) {
        if (s->trace[i]) {
            trace_free(s->trace[i]);
        }
        free(s->trace[i]);
    }
    free(s->trace);
    while (s->delays) {
        struct staged_delays *next = s->delays->next;
        free(s->delays);
        s->delays = next;
    }
    if (s->path) {
        fib_destroy(s->path);
        free(s->path);
    }
    batch_free(s->batch);
}

const struct trace *stage_trace(const struct stage *s, uint64_t number) {
    const struct trace *trace = number < s->trace_room ? s->trace[number] : NULL;
    return trace && trace->whole ? trace : NULL;
}

const struct measured *stage_measured(const struct stage *s, const char *name) {
    const struct staged_delays *one = s->delays;
    while (one && strcmp(one->name, name) != 0) {
        one = one->next;
    }
    return one && one->whole ? &one->measured : NULL;
}

void stage_port(struct stage *s, uint32_t port, bool open) {
    uint8_t bit = (uint8_t)(1u << port % 8);
    s->port_open[port / 8] =
        (uint8_t)(open ? s->port_open[port / 8] | bit : s->port_open[port / 8] & ~bit);
    if (!open && s->port_node[port]) {
        s->node_port[s->port_node[port] - 1] = 0;
        s->port_node[port] = 0;
    }
    s->port_end = port + 1 > s->port_end ? port + 1 : s->port_end;
}

uint32_t stage_port_node(const struct stage *s, uint32_t port) {
    return s->port_node[port] - 1;
}

bool stage_port_is_open(const struct stage *s, uint32_t port) {
    return s->port_open[port / 8] >> port % 8 & 1;
}

static bool room_for_op(struct stage *s) {
    struct batch *b = s->batch;
    return array_room((void **)&b->op, &b->op_room, b->op_count, sizeof *b->op);
}

bool stage_check_node(const struct stage *s, uint32_t node, struct refusal *r) {
    return s->node[node].declared || refuse(r, "unknown", "node %u is not declared", node);
}

static bool check_link(const struct stage *s, uint32_t link, struct refusal *r) {
    return (link < s->link_end && s->link[link].declared) ||
           refuse(r, "unknown", "link %u is not declared", link);
}

bool stage_remember(struct stage *s, enum undo_of of, uint32_t number) {
    if (!array_room((void **)&s->undo, &s->undo_room, s->undo_count, sizeof *s->undo)) {
        return false;
    }
    struct stage_undo *undo = &s->undo[s->undo_count++];
    *undo = (struct stage_undo){.of = of, .number = number};
    if (of == UNDO_NODE) {
        undo->node = s->node[number];
    }
    return true;
}

static bool check_addr(const struct stage *s, uint32_t node, const struct addr *addr,
                       struct refusal *r) {
    if (addr->version == 0) {
        return true;
    }
    uint32_t owner = addr_find(&s->addrs, addr);
    return owner == NODE_NONE || owner == node ||
           refuse(r, "conflict", "node %u: its IPv%u address belongs to node %u already", node,
                  addr->version, owner);
}

static bool room_for_addrs(struct stage *s) {
    if ((s->addr_count + 2) * 2 <= s->addrs.capacity) {
        return true;
    }
    uint32_t capacity = s->addrs.capacity * 2;
    struct addr_slot *memory = calloc(capacity, sizeof *memory);
    if (!memory) {
        return false;
    }
    free(addr_reserve(&s->addrs, memory, capacity));
    return true;
}

/* Changes the declared addresses of a node. There is room. */
static void set_node(struct stage *s, uint32_t node, const struct staged_node *to) {
    struct staged_node *n = &s->node[node];
    const struct addr *const old[] = {&n->addr4, &n->addr6};
    const struct addr *const new[] = {&to->addr4, &to->addr6};
    for (int i = 0; i < 2; i++) {
        if (old[i]->version) {
            addr_drop(&s->addrs, old[i], node);
            s->addr_count--;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (new[i]->version) {
            addr_put(&s->addrs, new[i], node);
            s->addr_count++;
        }
    }
    *n = *to;
}

bool stage_node(struct stage *s, uint32_t node, const struct op_node *op, struct refusal *r) {
    if (!check_addr(s, node, &op->addr4, r) || !check_addr(s, node, &op->addr6, r)) {
        return false;
    }
    if (s->node[node].declared && s->node[node].kind != op->kind) {
        return refuse(r, "conflict", "node %u: whether it is a node of frames cannot change", node);
    }
    struct batch *b = s->batch;
    if (!room_for_op(s) || !room_for_addrs(s) ||
        !array_room((void **)&b->node, &b->node_room, b->node_count, sizeof *b->node) ||
        !stage_remember(s, UNDO_NODE, node)) {
        return stage_no_memory(r);
    }
    set_node(s, node, &(struct staged_node){true, op->kind, op->addr4, op->addr6});
    s->node_end = node + 1 > s->node_end ? node + 1 : s->node_end;
    b->node[b->node_count] = *op;
    b->op[b->op_count++] =
        (struct op){.kind = OP_NODE, .node = (uint16_t)node, .index = (uint32_t)b->node_count++};
    return true;
}

bool stage_bind(struct stage *s, uint32_t node, uint32_t port, struct refusal *r) {
    if (!stage_check_node(s, node, r)) {
        return false;
    }
    if (!stage_port_is_open(s, port)) {
        return refuse(r, "unknown", "port %u is not open", port);
    }
    if (!room_for_op(s)) {
        return stage_no_memory(r);
    }
    s->batch->op[s->batch->op_count++] =
        (struct op){.kind = OP_BIND, .node = (uint16_t)node, .port = port};
    return true;
}

bool stage_unbind(struct stage *s, uint32_t node, struct refusal *r) {
    if (!stage_check_node(s, node, r)) {
        return false;
    }
    if (!room_for_op(s)) {
        return stage_no_memory(r);
    }
    s->batch->op[s->batch->op_count++] = (struct op){.kind = OP_UNBIND, .node = (uint16_t)node};
    return true;
}

bool stage_room_for_link(struct stage *s, uint32_t link) {
    if (!stage_room_for_number((void **)&s->link, &s->link_room, link, sizeof *s->link)) {
        return false;
    }
    s->link_end = link + 1 > s->link_end ? link + 1 : s->link_end;
    return engine_prepare_link(s->engine, link);
}

bool stage_push_link(struct stage *s, enum op_kind kind, uint32_t link, const struct op_link *op) {
    struct batch *b = s->batch;
    if (!room_for_op(s) ||
        !array_room((void **)&b->link, &b->link_room, b->link_count, sizeof *b->link)) {
        return false;
    }
    b->link[b->link_count] = *op;
    b->op[b->op_count++] =
        (struct op){.kind = (uint8_t)kind, .link = link, .index = (uint32_t)b->link_count++};
    return true;
}

bool stage_link(struct stage *s, uint32_t link, const struct op_link *op, struct refusal *r) {
    if (!stage_check_node(s, op->source, r) || !stage_check_node(s, op->dest, r)) {
        return false;
    }
    if (op->source == op->dest) {
        return refuse(r, "conflict", "link %u: from node %u to itself", link, op->source);
    }
    if (!stage_check_neck(s, link, &op->config, true, r)) {
        return false;
    }
    if (!stage_room_for_link(s, link)) {
        return stage_no_memory(r);
    }
    struct staged_link *known = &s->link[link];
    if (known->declared && (known->source != op->source || known->dest != op->dest)) {
        return refuse(r, "conflict", "link %u goes from node %u to node %u; its ends cannot change",
                      link, known->source, known->dest);
    }
    struct op_link whole = *op;
    if (!stage_room_for_flows(s, link, &whole.config) ||
        (!known->declared && !stage_remember(s, UNDO_LINK, link)) ||
        !stage_push_link(s, OP_LINK, link, &whole)) {
        return stage_no_memory(r);
    }
    known->declared = true;
    known->source = op->source;
    known->dest = op->dest;
    return true;
}

bool stage_set(struct stage *s, uint32_t link, const struct link_config *config,
               struct refusal *r) {
    if (!check_link(s, link, r) || !stage_check_neck(s, link, config, false, r)) {
        return false;
    }
    struct op_link op = {.config = *config};
    return (stage_room_for_flows(s, link, &op.config) && stage_push_link(s, OP_SET, link, &op)) ||
           stage_no_memory(r);
}

bool stage_push_group(struct stage *s, uint32_t group, const uint32_t *links, uint32_t count) {
    struct batch *b = s->batch;
    if (!room_for_op(s) ||
        !array_room((void **)&b->group, &b->group_room, b->group_count, sizeof *b->group)) {
        return false;
    }
    b->group[b->group_count].count = count;
    memcpy(b->group[b->group_count].link, links, count * sizeof *links);
    b->op[b->op_count++] =
        (struct op){.kind = OP_GROUP, .link = group, .index = (uint32_t)b->group_count++};
    return true;
}

bool stage_check_out(const struct stage *s, uint32_t node, uint32_t link, struct refusal *r) {
    return check_link(s, link, r) && (s->link[link].source == node ||
                                      refuse(r, "conflict", "link %u leaves node %u, not node %u",
                                             link, s->link[link].source, node));
}

static bool check_next(const struct stage *s, uint32_t node, uint32_t link, struct refusal *r) {
    if (link == LINK_NONE) {
        return true;
    }
    return link < SPREAD_FIRST ? stage_check_out(s, node, link, r)
                               : stage_check_group(s, node, link - SPREAD_FIRST, r);
}

static bool check_routes(struct stage *s, uint32_t node, uint32_t link,
                         const struct dest_range *range, size_t count, struct refusal *r) {
    if (!stage_check_node(s, node, r) || !check_next(s, node, link, r)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (range[i].first > range[i].last) {
            return refuse(r, "range", "destinations %u-%u: the first is above the last",
                          range[i].first, range[i].last);
        }
        for (uint32_t dest = range[i].first; dest <= range[i].last; dest++) {
            if (!stage_check_node(s, dest, r)) {
                return false;
            }
        }
    }
    return true;
}

bool stage_routes(struct stage *s, uint32_t node, uint32_t link, const struct dest_range *range,
                  size_t count, struct refusal *r) {
    struct batch *b = s->batch;
    if (!check_routes(s, node, link, range, count, r)) {
        return false;
    }
    size_t before = b->op_count;
    for (size_t i = 0; i < count; i++) {
        if (!fib_prepare(&s->engine->fib, node, range[i].first, range[i].last) || !room_for_op(s)) {
            b->op_count = before;
            return stage_no_memory(r);
        }
        b->op[b->op_count++] =
            (struct op){.kind = OP_ROUTES,
                        .node = (uint16_t)node,
                        .link = link,
                        .dests = {(uint16_t)range[i].first, (uint16_t)range[i].last}};
    }
    return true;
}

static uint32_t power_above(uint32_t n) {
    uint32_t power = FIRST_SLOTS;
    while (power < n) {
        power *= 2;
    }
    return power;
}

bool stage_room(struct stage *s, struct engine_room *room, struct refusal *r) {
    *room = (struct engine_room){0};
    /* Two addresses a node, at most half full. Batches may be applied in another order than they
     * were staged in, so that the number of addresses now is no bound; the number of nodes is. */
    if (s->node_end * 4 > s->slots_given) {
        room->slot_capacity = power_above(s->node_end * 4);
        room->slots = calloc(room->slot_capacity, sizeof *room->slots);
    }
    if (s->link_end > s->heap_given) {
        room->heap_capacity = power_above(s->link_end);
        room->heap = malloc(room->heap_capacity * sizeof *room->heap);
    }
    if ((room->slot_capacity && !room->slots) || (room->heap_capacity && !room->heap)) {
        free(room->slots);
        free(room->heap);
        *room = (struct engine_room){0};
        return stage_no_memory(r);
    }
    s->slots_given = room->slots ? room->slot_capacity : s->slots_given;
    s->heap_given = room->heap ? room->heap_capacity : s->heap_given;
    return true;
}

struct batch *stage_commit(struct stage *s, uint64_t at_ns, struct refusal *r) {
    struct batch *fresh = calloc(1, sizeof *fresh);
    if (!fresh) {
        stage_no_memory(r);
        return NULL;
    }
    struct batch *batch = s->batch;
    batch->at_ns = at_ns;
    batch->number = ++s->commits;
    s->batch = fresh;
    s->undo_count = 0;
    return batch;
}

void stage_abort(struct stage *s) {
    while (s->undo_count) {
        const struct stage_undo *undo = &s->undo[--s->undo_count];
        switch (undo->of) {
        case UNDO_NODE:
            set_node(s, undo->number, &undo->node);
            break;
        case UNDO_LINK:
            s->link[undo->number].declared = false; /* what it counts in may be needed again */
            break;
        case UNDO_GROUP:
            s->group[undo->number] = (struct staged_group){0};
            break;
        }
    }
    struct batch *b = s->batch;
    b->op_count = b->node_count = b->link_count = b->group_count = 0;
}
