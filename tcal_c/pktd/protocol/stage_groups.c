/* Groups of links: declared as links are, and named by routes. */
#include "stage.h"

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
    return stage_room_for_number((void **)&s->group, &s->group_room, group, sizeof *s->group) &&
           spread_prepare(&s->engine->spread, group);
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
    if ((!known->declared && !stage_remember(s, UNDO_GROUP, group)) ||
        !stage_push_group(s, group, links, count)) {
        return stage_no_memory(r);
    }
    *known = (struct staged_group){true, (uint16_t)node};
    return true;
}
