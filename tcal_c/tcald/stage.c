/* Staged changes, checked in full against what is declared, so that a batch that fails later does
 * so only because the kernel refuses.
 *
 * Taking declarations back (abort, a batch that failed) is rare: then everything declared is put
 * together again from what is in force and what waits.
 */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 1024u

static bool no_memory(struct refusal *r) {
    return refuse(r, "limit", "out of memory");
}

void batch_free(struct batch *batch) {
    if (batch) {
        free(batch->change);
        free(batch);
    }
}

bool stage_init(struct stage *s, struct tcal *tcal) {
    *s = (struct stage){.tcal = tcal, .path_room = FIRST_ROOM};
    s->node = calloc(NODE_LIMIT, sizeof *s->node);
    s->path = calloc(s->path_room, sizeof *s->path);
    s->batch = calloc(1, sizeof *s->batch);
    s->addrs.slot = calloc(FIRST_ROOM, sizeof *s->addrs.slot);
    s->addrs.capacity = FIRST_ROOM;
    return s->node && s->path && s->batch && s->addrs.slot;
}

void stage_destroy(struct stage *s) {
    for (struct batch *batch = s->waiting, *next; batch; batch = next) {
        next = batch->next;
        batch_free(batch);
    }
    batch_free(s->batch);
    free(s->node);
    free(s->path);
    free(s->addrs.slot);
}

/* -- paths that are declared ------------------------------------------------------------------- */

static size_t seek(const uint64_t *set, size_t room, uint64_t key) {
    size_t at = (size_t)((key * 0x9E3779B97F4A7C15ull) >> 32) & (room - 1);
    while (set[at] && set[at] != key) {
        at = (at + 1) & (room - 1);
    }
    return at;
}

static bool has_path(const struct stage *s, const struct tcal_change *c) {
    uint64_t key = ((uint64_t)c->node << 16 | c->dest) + 1;
    return s->path[seek(s->path, s->path_room, key)];
}

static bool room_for_path(struct stage *s) {
    if ((s->paths + 1) * 2 <= s->path_room) {
        return true;
    }
    size_t room = s->path_room * 2;
    uint64_t *memory = calloc(room, sizeof *memory);
    if (!memory) {
        return false;
    }
    for (size_t i = 0; i < s->path_room; i++) {
        if (s->path[i]) {
            memory[seek(memory, room, s->path[i])] = s->path[i];
        }
    }
    free(s->path);
    s->path = memory;
    s->path_room = room;
    return true;
}

static bool room_for_addrs(struct stage *s) {
    if ((s->addr_count + 2) * 2 <= s->addrs.capacity) {
        return true;
    }
    struct addr_slot *memory = calloc((size_t)s->addrs.capacity * 2, sizeof *memory);
    if (!memory) {
        return false;
    }
    free(addr_reserve(&s->addrs, memory, s->addrs.capacity * 2));
    return true;
}

/* There is room. */
static void declare_node(struct stage *s, uint32_t number, const struct addr addr[2]) {
    struct declared *node = &s->node[number];
    for (int i = 0; i < 2; i++) {
        if (node->addr[i].version) {
            addr_drop(&s->addrs, &node->addr[i], number);
            s->addr_count--;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (addr[i].version) {
            addr_put(&s->addrs, &addr[i], number);
            s->addr_count++;
        }
    }
    node->known = true;
    memcpy(node->addr, addr, sizeof node->addr);
}

/* There is room. */
static void declare_path(struct stage *s, uint32_t source, uint32_t dest) {
    uint64_t key = ((uint64_t)source << 16 | dest) + 1;
    size_t at = seek(s->path, s->path_room, key);
    s->paths += s->path[at] == 0;
    s->path[at] = key;
}

static bool declare(struct stage *s, const struct tcal_change *c) {
    if (!room_for_path(s) || !room_for_addrs(s)) {
        return false;
    }
    if (c->kind == TCAL_CHANGE_NODE) {
        declare_node(s, c->node, c->addr);
    } else if (c->kind == TCAL_CHANGE_PATH) {
        declare_path(s, c->node, c->dest);
    }
    return true;
}

/* -- checks ------------------------------------------------------------------------------------ */

static bool check_node(const struct stage *s, uint32_t node, struct refusal *r) {
    return s->node[node].known || refuse(r, "unknown", "node %u is not declared", node);
}

static bool check_addr(const struct stage *s, uint32_t node, const struct addr *addr,
                       struct refusal *r) {
    uint32_t owner = addr->version ? addr_find(&s->addrs, addr) : NODE_NONE;
    return owner == NODE_NONE || owner == node ||
           refuse(r, "conflict", "node %u: its IPv%u address belongs to node %u already", node,
                  addr->version, owner);
}

static bool check_path(const struct stage *s, const struct tcal_change *c, struct refusal *r) {
    if (!check_node(s, c->node, r) || !check_node(s, c->dest, r)) {
        return false;
    }
    if (c->node == c->dest) {
        return refuse(r, "conflict", "path from node %u to itself", c->node);
    }
    const char *unfit = tcal_unfit(&c->path); /* of what this line says */
    if (unfit) {
        return refuse(r, "range", "path %u %u: %s", c->node, c->dest, unfit);
    }
    if (has_path(s, c)) {
        return true;
    }
    if (s->paths == TCAL_PATH_LIMIT) {
        return refuse(r, "limit", "more than %u paths", TCAL_PATH_LIMIT);
    }
    return (c->fields & TCAL_ALL) == TCAL_ALL ||
           refuse(r, "unknown",
                  "path from node %u to node %u is not declared: first it needs rate, delay, "
                  "jitter, loss, queue and up",
                  c->node, c->dest);
}

static bool check(const struct stage *s, const struct tcal_change *c, struct refusal *r) {
    switch (c->kind) {
    case TCAL_CHANGE_NODE:
        return check_addr(s, c->node, &c->addr[0], r) && check_addr(s, c->node, &c->addr[1], r);
    case TCAL_CHANGE_PATH:
        return check_path(s, c, r);
    case TCAL_CHANGE_BIND:
        return check_node(s, c->node, r) &&
               (tcal_is_attached(s->tcal, c->port) ||
                refuse(r, "unknown", "port %u is not attached", c->port));
    default:
        return check_node(s, c->node, r);
    }
}

/* -- batches ----------------------------------------------------------------------------------- */

bool stage_change(struct stage *s, const struct tcal_change *change, struct refusal *r) {
    struct batch *b = s->batch;
    if (!check(s, change, r)) {
        return false;
    }
    if (b->changes == b->room) {
        size_t room = b->room ? b->room * 2 : 64;
        struct tcal_change *memory = realloc(b->change, room * sizeof *memory);
        if (!memory) {
            return no_memory(r);
        }
        b->change = memory;
        b->room = room;
    }
    if (!declare(s, change)) {
        return no_memory(r);
    }
    b->change[b->changes++] = *change;
    return true;
}

const struct batch *stage_commit(struct stage *s, uint64_t at_ns, struct refusal *r) {
    struct batch *fresh = calloc(1, sizeof *fresh);
    if (!fresh) {
        no_memory(r);
        return NULL;
    }
    struct batch *batch = s->batch;
    batch->number = ++s->commits;
    batch->at_ns = at_ns;
    s->batch = fresh;
    struct batch **at = &s->waiting;
    while (*at && (*at)->at_ns <= at_ns) {
        at = &(*at)->next;
    }
    batch->next = *at;
    *at = batch;
    return batch;
}

struct batch *stage_due(struct stage *s, uint64_t now_ns) {
    struct batch *batch = s->waiting;
    if (!batch || batch->at_ns > now_ns) {
        return NULL;
    }
    s->waiting = batch->next;
    return batch;
}

static void declare_again(struct stage *s, const struct batch *batch) {
    for (size_t i = 0; i < batch->changes; i++) {
        declare(s, &batch->change[i]);
    }
}

static void declare_in_force(void *context, uint32_t source, uint32_t dest) {
    struct stage *s = context;
    if (room_for_path(s)) {
        declare_path(s, source, dest);
    }
}

void stage_failed(struct stage *s) {
    struct addr addr[2];
    memset(s->path, 0, s->path_room * sizeof *s->path);
    memset(s->addrs.slot, 0, s->addrs.capacity * sizeof *s->addrs.slot);
    s->paths = s->addr_count = 0;
    for (uint32_t node = 0; node < NODE_LIMIT; node++) {
        s->node[node] = (struct declared){0};
        if (tcal_node_of(s->tcal, node, addr) && room_for_addrs(s)) {
            declare_node(s, node, addr);
        }
    }
    tcal_declared(s->tcal, declare_in_force, s);
    for (const struct batch *batch = s->waiting; batch; batch = batch->next) {
        declare_again(s, batch);
    }
    declare_again(s, s->batch);
}

void stage_abort(struct stage *s) {
    if (s->batch->changes) {
        s->batch->changes = 0;
        stage_failed(s);
    }
}
