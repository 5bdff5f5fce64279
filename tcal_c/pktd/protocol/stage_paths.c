/* Paths: links of which there is one at most for each pair of nodes, numbered here, each with the
 * route that leads over it; and who is bound where.
 */
#include "stage.h"

#include <stdlib.h>

static bool room_for_path(struct stage *s, const struct op_link *op) {
    if (!s->path) {
        s->path = calloc(1, sizeof *s->path);
    }
    return s->path && fib_prepare(s->path, op->source, op->dest, op->dest) &&
           fib_prepare(&s->engine->fib, op->source, op->dest, op->dest);
}

uint32_t stage_path_link(const struct stage *s, uint32_t source, uint32_t dest) {
    return s->path ? fib_get(s->path, source, dest) : LINK_NONE;
}

static bool check_path(const struct stage *s, const struct op_link *op, uint32_t link,
                       struct refusal *r) {
    const uint32_t needed = LINK_ALL & ~(uint32_t)LINK_DIST;
    if (!stage_check_node(s, op->source, r) || !stage_check_node(s, op->dest, r)) {
        return false;
    }
    if (op->source == op->dest) {
        return refuse(r, "conflict", "path from node %u to itself", op->source);
    }
    if ((link == LINK_NONE || !s->link[link].declared) && (op->config.fields & needed) != needed) {
        return refuse(r, "unknown",
                      "path from node %u to node %u is not declared: first it needs rate, delay, "
                      "jitter, loss, queue and up",
                      op->source, op->dest);
    }
    if (link == LINK_NONE && s->link_end == LINK_LIMIT) {
        return refuse(r, "limit", "more than %u paths", LINK_LIMIT);
    }
    return true;
}

bool stage_path(struct stage *s, const struct op_link *op, struct refusal *r) {
    uint32_t link = stage_path_link(s, op->source, op->dest);
    if (!check_path(s, op, link, r)) {
        return false;
    }
    bool known = link != LINK_NONE && s->link[link].declared;
    if (link == LINK_NONE) {
        link = s->link_end;
        if (!room_for_path(s, op) || !stage_room_for_link(s, link)) {
            return stage_no_memory(r);
        }
        fib_set(s->path, op->source, op->dest, op->dest, link);
    }
    /* Remembered first: taking back what was not done does no harm. */
    if ((!known && !stage_remember(s, UNDO_LINK, link)) || !stage_push_link(s, OP_PATH, link, op)) {
        return stage_no_memory(r);
    }
    s->link[link] = (struct staged_link){.declared = true, .source = op->source, .dest = op->dest};
    return true;
}

static void unbind(struct stage *s, uint32_t node) {
    if (s->node_port[node]) {
        s->port_node[s->node_port[node] - 1] = 0;
        s->node_port[node] = 0;
    }
}

static void bind(struct stage *s, uint32_t node, uint32_t port) {
    unbind(s, node);
    if (s->port_node[port]) {
        unbind(s, s->port_node[port] - 1);
    }
    s->port_node[port] = node + 1;
    s->node_port[node] = port + 1;
}

void stage_applied(struct stage *s, const struct batch *batch) {
    for (size_t i = 0; i < batch->op_count; i++) {
        const struct op *op = &batch->op[i];
        if (op->kind == OP_BIND) {
            bind(s, op->node, op->port);
        } else if (op->kind == OP_UNBIND) {
            unbind(s, op->node);
        }
    }
}
