/* Groups of links: declared as links are, and named by routes. */
#include "stage.h"

#include <stdlib.h>

bool stage_check_group(const struct stage *s, uint32_t node, uint32_t group, struct refusal *r) {
    if (group >= s->group_room || !s->group[group].declared) {
        return refuse(r, "unknown", "group %u is not declared", group);
    }
    return s->group[group].node == node ||
           refuse(r, "conflict", "group %u leaves node %u, not node %u", group,
                  s->group[group].node, node);
}

static bool check(const struct stage *s, uint32_t node, const uint32_t *links, uint32_t count,
                  struct refusal *r) {
    for (uint32_t i = 0; i < count; i++) {
        if (!stage_check_out(s, node, links[i], r)) {
            return false;
        }
        if (i && links[i] <= links[i - 1]) {
            return refuse(r, "range", "link %u: a group's links ascend", links[i]);
        }
    }
    return true;
}

static bool room_for_group(struct stage *s, uint32_t group) {
    if (group >= s->group_room) {
        uint32_t room = s->group_room ? s->group_room : 64;
        while (room <= group) {
            room *= 2;
        }
        struct staged_group *memory = realloc(s->group, room * sizeof *memory);
        if (!memory) {
            return false;
        }
        s->group = memory;
        for (; s->group_room < room; s->group_room++) {
            s->group[s->group_room] = (struct staged_group){0};
        }
    }
    return spread_prepare(&s->engine->spread, group);
}

bool stage_group(struct stage *s, uint32_t group, uint32_t node, const uint32_t *links,
                 uint32_t count, struct refusal *r) {
    if (!stage_check_node(s, node, r) || !check(s, node, links, count, r)) {
        return false;
    }
    if (!room_for_group(s, group)) {
        return stage_no_memory(r);
    }
    struct staged_group *known = &s->group[group];
    if (known->declared && known->node != node) {
        return refuse(r, "conflict", "group %u leaves node %u; that cannot change", group,
                      known->node);
    }
    /* Remembered first: taking back what was not done does no harm. */
    if ((!known->declared && !stage_remember_group(s, group)) ||
        !stage_push_group(s, group, links, count)) {
        return stage_no_memory(r);
    }
    *known = (struct staged_group){true, (uint16_t)node};
    return true;
}
