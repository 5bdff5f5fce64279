/* A set of changes that take effect together: made by stage.c, applied by engine.c. */
#ifndef PKTD_BATCH_H
#define PKTD_BATCH_H

#include "common/addr.h"
#include "link.h"

#include <stdlib.h>

enum op_kind { OP_NODE, OP_BIND, OP_UNBIND, OP_LINK, OP_SET, OP_ROUTES, OP_PATH, OP_GROUP };

/* One change. `index` finds the details of a node, link, path or group in the batch's own arrays.
 */
struct op {
    uint8_t kind; /* enum op_kind */
    uint16_t node;
    uint32_t link; /* LINK_NONE: unreachable; SPREAD_FIRST + a group; of OP_GROUP its number */
    union {
        uint32_t index;
        uint32_t port;
        struct {
            uint16_t first;
            uint16_t last;
        } dests;
    };
};

struct op_node {
    struct addr addr4;
    struct addr addr6;
    struct prefix behind;
    uint8_t mac[6];
    bool has_mac;
    bool hop;
    uint8_t kind; /* enum node_kind */
};

struct op_link {
    struct link_config config;
    uint64_t seed;
    uint16_t source;
    uint16_t dest;
};

struct op_group {
    uint32_t count;
    uint32_t link[SPREAD_MOST];
};

struct batch {
    struct batch *next;
    uint64_t at_ns;      /* as asked for; 0 = now */
    uint64_t due_ns;     /* when it takes effect, known to the data thread */
    uint64_t applied_ns; /* when it was done */
    uint64_t number;
    struct op *op;
    size_t op_count;
    size_t op_room;
    struct op_node *node;
    size_t node_count;
    size_t node_room;
    struct op_link *link;
    size_t link_count;
    size_t link_room;
    struct op_group *group;
    size_t group_count;
    size_t group_room;
};

static inline void batch_free(struct batch *batch) {
    if (batch) {
        free(batch->op);
        free(batch->node);
        free(batch->link);
        free(batch->group);
        free(batch);
    }
}

#endif
