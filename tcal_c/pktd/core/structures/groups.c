/* Groups in an open-addressing table, listeners in lists by node: the order in which they joined is
 * not seen. All of it is of a fixed size, since the data thread must not enter malloc.
 *
 * What a listener says of sources is carried out as a router does (RFC 3376 section 6.4), that asks
 * nobody: "only these" beside what it hears already is "these as well", since a long list comes in
 * several records. Who names more sources than there is room for hears all of them, and its kernel
 * leaves out what its programs did not join.
 */
#include "groups.h"

#include <string.h>

/* Where the listener's place in the list is, or would be. */
static uint32_t *place(struct groups *g, struct group *group, uint32_t node) {
    uint32_t *at = &group->first;
    while (*at && g->listener[*at - 1].node < node) {
        at = &g->listener[*at - 1].next;
    }
    return at;
}

static bool stands(const struct groups *g, uint32_t at, uint32_t node) {
    return at && g->listener[at - 1].node == node;
}

static struct group *make(struct groups *g, const struct addr *addr) {
    uint32_t number = g->free_group;
    if (number) {
        g->free_group = g->group[number - 1].first;
    } else if (g->groups < GROUP_LIMIT) {
        number = ++g->groups;
    } else {
        return NULL;
    }
    g->group[number - 1] = (struct group){.addr = *addr};
    addr_put(&g->table, addr, number - 1);
    return &g->group[number - 1];
}

static void drop_group(struct groups *g, struct group *group) {
    uint32_t number = (uint32_t)(group - g->group);
    addr_drop(&g->table, &group->addr, number);
    group->first = g->free_group;
    g->free_group = number + 1;
}

/* NULL: there is no room. */
static struct listener *add(struct groups *g, struct group *group, uint32_t node) {
    uint32_t *at = place(g, group, node);
    if (stands(g, *at, node)) {
        return &g->listener[*at - 1];
    }
    uint32_t number = g->free_listener;
    if (number) {
        g->free_listener = g->listener[number - 1].next;
    } else if (g->listeners < LISTENER_LIMIT) {
        number = ++g->listeners;
    } else {
        return NULL;
    }
    g->listener[number - 1] = (struct listener){.next = *at, .node = (uint16_t)node};
    *at = number;
    group->count++;
    return &g->listener[number - 1];
}

/* --- sources --- */

/* Where it stands in the listener's list, or the list ends. */
static uint32_t *source_place(struct groups *g, struct listener *l, const uint8_t *source) {
    uint32_t *at = &l->sources;
    while (*at && memcmp(g->source[*at - 1].bytes, source, 16) != 0) {
        at = &g->source[*at - 1].next;
    }
    return at;
}

static void remove_source(struct groups *g, struct listener *l, uint32_t *at) {
    uint32_t number = *at;
    if (number) {
        *at = g->source[number - 1].next;
        g->source[number - 1].next = g->free_source;
        g->free_source = number;
        l->count--;
    }
}

/* False: there is no room. */
static bool add_source(struct groups *g, struct listener *l, const uint8_t *source) {
    uint32_t *at = source_place(g, l, source), number = g->free_source;
    if (*at) {
        return true;
    }
    if (l->count == SOURCES_MOST || (!number && g->sources == SOURCE_LIMIT)) {
        return false;
    }
    if (number) {
        g->free_source = g->source[number - 1].next;
    } else {
        number = ++g->sources;
    }
    memcpy(g->source[number - 1].bytes, source, 16);
    g->source[number - 1].next = 0;
    *at = number;
    l->count++;
    return true;
}

static void hear(struct groups *g, struct listener *l, bool excludes) {
    while (l->sources) {
        remove_source(g, l, &l->sources);
    }
    l->excludes = excludes;
    l->named_many = false;
}

/* It hears this source from now on, or no longer. */
static void hear_source(struct groups *g, struct listener *l, const uint8_t *source, bool hears) {
    if (hears == l->excludes) {
        remove_source(g, l, source_place(g, l, source));
    } else if (!add_source(g, l, source) && hears) {
        hear(g, l, true);
        l->named_many = true;
    }
}

static void hear_sources(struct groups *g, struct listener *l, const struct membership *said) {
    bool hears = said->kind == HEARS_ONLY || said->kind == HEARS_MORE;
    uint32_t bytes = said->group.version == 4 ? 4 : 16;
    if (said->kind == HEARS_ALL_BUT ||
        (said->kind == HEARS_ONLY && l->excludes && !l->named_many)) {
        hear(g, l, said->kind == HEARS_ALL_BUT);
    }
    for (uint32_t i = 0; i < said->count; i++) {
        uint8_t source[16] = {0};
        memcpy(source, said->sources + i * bytes, bytes);
        hear_source(g, l, source, hears);
    }
}

bool groups_hears(const struct groups *g, const struct listener *l, const uint8_t *source) {
    uint32_t at = l->sources;
    while (at && memcmp(g->source[at - 1].bytes, source, 16) != 0) {
        at = g->source[at - 1].next;
    }
    return (at != 0) != l->excludes;
}

/* --- */

static void leave(struct groups *g, struct group *group, uint32_t node) {
    uint32_t *at = place(g, group, node), number = *at;
    if (!stands(g, number, node)) {
        return;
    }
    hear(g, &g->listener[number - 1], false);
    *at = g->listener[number - 1].next;
    g->listener[number - 1].next = g->free_listener;
    g->free_listener = number;
    if (--group->count == 0) {
        drop_group(g, group);
    }
}

/* What ends a membership, whatever it was, and what begins none. */
static bool is_leave(const struct membership *said) {
    return said->kind == HEARS_ONLY && said->count == 0;
}

static bool begins(const struct membership *said) {
    return said->kind == HEARS_ALL_BUT || (said->kind != HEARS_LESS && said->count);
}

bool groups_tell(struct groups *g, uint32_t node, const struct membership *said) {
    g->table = (struct addr_table){.slot = g->slot, .capacity = 2 * GROUP_LIMIT};
    uint32_t number = addr_find(&g->table, &said->group);
    struct group *group = number == NODE_NONE ? NULL : &g->group[number];
    bool is_there = group && stands(g, *place(g, group, node), node);
    if (is_leave(said)) {
        if (group) {
            leave(g, group, node);
        }
        return true;
    }
    if (!is_there && !begins(said)) {
        return true;
    }
    group = group ? group : make(g, &said->group);
    struct listener *l = group ? add(g, group, node) : NULL;
    if (!l) {
        if (group && group->count == 0) {
            drop_group(g, group);
        }
        return false;
    }
    hear_sources(g, l, said);
    if (!l->excludes && l->count == 0) {
        leave(g, group, node);
    }
    return true;
}

void groups_forget(struct groups *g, uint32_t node) {
    for (uint32_t i = 0; i < g->groups; i++) {
        if (g->group[i].count) {
            leave(g, &g->group[i], node);
        }
    }
}

const struct group *groups_find(const struct groups *g, const struct addr *addr) {
    uint32_t number = addr_find(&g->table, addr);
    return number == NODE_NONE ? NULL : &g->group[number];
}
