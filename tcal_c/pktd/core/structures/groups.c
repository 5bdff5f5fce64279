/* Groups in an open-addressing table, listeners in lists by node: the order in which they joined is
 * not seen. All of it is of a fixed size, since the data thread must not enter malloc. */
#include "groups.h"

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

static bool add(struct groups *g, struct group *group, uint32_t node) {
    uint32_t *at = place(g, group, node);
    if (stands(g, *at, node)) {
        return true;
    }
    uint32_t number = g->free_listener;
    if (number) {
        g->free_listener = g->listener[number - 1].next;
    } else if (g->listeners < LISTENER_LIMIT) {
        number = ++g->listeners;
    } else {
        return false;
    }
    g->listener[number - 1] = (struct listener){.next = *at, .node = (uint16_t)node};
    *at = number;
    group->count++;
    return true;
}

static void leave(struct groups *g, struct group *group, uint32_t node) {
    uint32_t *at = place(g, group, node), number = *at;
    if (!stands(g, number, node)) {
        return;
    }
    *at = g->listener[number - 1].next;
    g->listener[number - 1].next = g->free_listener;
    g->free_listener = number;
    if (--group->count == 0) {
        drop_group(g, group);
    }
}

bool groups_set(struct groups *g, const struct addr *addr, uint32_t node, bool listens) {
    g->table = (struct addr_table){.slot = g->slot, .capacity = 2 * GROUP_LIMIT};
    uint32_t number = addr_find(&g->table, addr);
    struct group *group = number == NODE_NONE ? NULL : &g->group[number];
    if (!listens) {
        if (group) {
            leave(g, group, node);
        }
        return true;
    }
    group = group ? group : make(g, addr);
    if (!group || !add(g, group, node)) {
        if (group && group->count == 0) {
            drop_group(g, group);
        }
        return false;
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
