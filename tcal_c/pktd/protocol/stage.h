/* What the client has declared so far, and the batch it is putting together. Control thread only.
 */
#ifndef PKTD_STAGE_H
#define PKTD_STAGE_H

#include "common/session.h"
#include "pktd/core/batch.h"
#include "pktd/core/engine.h"

struct staged_node {
    bool declared;
    uint8_t kind; /* enum node_kind */
    struct addr addr4;
    struct addr addr6;
};

struct staged_link {
    bool declared;
    uint16_t source;
    uint16_t dest;
    uint32_t neck;            /* that it shares the queue of; 0: none */
    struct flows *flows;      /* counted there; NULL: it never had a table of flows */
    struct flow_share *share; /* its part of them */
};

/* A class of packets that was declared, each once: kept as long as links may have it. */
struct staged_class {
    struct staged_class *next;
    struct only only;
};

/* A table of flows that was declared: kept as long as links may have it. */
struct staged_table {
    struct staged_table *next;
    struct flow_rates rates;
};

#define DELAYS_NAME_LIMIT 64
#define DELAYS_LIMIT 1024

/* Measured delays that were declared: kept as long as links may have them. */
struct staged_delays {
    struct staged_delays *next;
    char name[DELAYS_NAME_LIMIT];
    uint32_t count; /* points */
    bool whole;
    struct measured measured;
};

/* Links that share a queue, by the name that the client gives it. */
struct staged_neck {
    char name[NECK_NAME_LIMIT + 1];
    struct flows *flows; /* NULL: no link has been declared with it */
};

struct staged_group {
    bool declared;
    uint16_t node;
};

/* A declaration that abort takes back. */
struct stage_undo {
    enum undo_of { UNDO_NODE, UNDO_LINK, UNDO_GROUP } of;
    uint32_t number;
    struct staged_node node;
};

/* What the client uses pktd for. */
enum stage_mode { MODE_ANY, MODE_LINKS, MODE_PATHS };

struct stage {
    enum stage_mode mode;
    struct engine *engine; /* only its inert memory is touched from here */
    struct staged_node *node;
    struct staged_link *link;
    struct staged_group *group;
    uint32_t node_end; /* one more than the highest number ever declared */
    uint32_t link_end;
    uint32_t port_end;
    uint32_t link_room;
    uint32_t group_room;
    uint8_t port_open[(PORT_LIMIT + 7) / 8];
    uint32_t port_node[PORT_LIMIT]; /* node + 1, as of the batches applied; 0 = none */
    uint32_t node_port[NODE_LIMIT]; /* port + 1 */
    struct trace **trace;           /* by number, from 1 on */
    uint32_t trace_room;
    size_t trace_steps; /* of all together */
    struct staged_delays *delays;
    uint32_t delays_count;
    struct staged_neck *neck; /* by number, from 1 on */
    uint32_t neck_room;
    uint32_t neck_count;
    struct fib *path; /* the link of a pair of nodes; NULL before the first */
    struct addr_table addrs;
    uint32_t addr_count;
    struct batch *batch;
    struct stage_undo *undo;
    size_t undo_count;
    size_t undo_room;
    uint32_t heap_given; /* capacities the data thread has been given */
    uint32_t slots_given;
    uint64_t commits;
    struct staged_table *tables;
    struct staged_class *classes;
};

bool stage_init(struct stage *s, struct engine *engine);
void stage_destroy(struct stage *s);

/* Each stages one change, or refuses and stages nothing. False: refused, see `r`. */
bool stage_node(struct stage *s, uint32_t node, const struct op_node *op, struct refusal *r);
bool stage_bind(struct stage *s, uint32_t node, uint32_t port, struct refusal *r);
bool stage_unbind(struct stage *s, uint32_t node, struct refusal *r);
bool stage_link(struct stage *s, uint32_t link, const struct op_link *op, struct refusal *r);
bool stage_set(struct stage *s, uint32_t link, const struct link_config *config, struct refusal *r);

/* stage_flows.c: reads `2:6000000:844000;4:8000000:900000`, or `0` for none; false where it is not
 * written so. The other one keeps it for a link. */
bool flow_rates_parse(const char *text, struct flow_rates *rates);
bool stage_flow_rates(struct stage *s, const char *text, struct link_config *config,
                      struct refusal *r);

/* only_text.c: reads `tcp:80;from:3;loss:100000000`; false where it is not written so. The other
 * one keeps it for a link, and takes `0` for none. */
bool only_parse(const char *text, struct only *only);
bool stage_class(struct stage *s, const char *text, struct link_config *config, struct refusal *r);

struct dest_range {
    uint32_t first;
    uint32_t last;
};
/* `link`: or SPREAD_FIRST + a group. */
bool stage_routes(struct stage *s, uint32_t node, uint32_t link, const struct dest_range *range,
                  size_t count, struct refusal *r);

/* stage_groups.c: links of a node, ascending, at most SPREAD_MOST. */
bool stage_group(struct stage *s, uint32_t group, uint32_t node, const uint32_t *links,
                 uint32_t count, struct refusal *r);
bool stage_check_group(const struct stage *s, uint32_t node, uint32_t group, struct refusal *r);

/* stage_paths.c: declares the path from op->source to op->dest or changes it. */
bool stage_path(struct stage *s, const struct op_link *op, struct refusal *r);

/* The link of a path, LINK_NONE when it was never declared. */
uint32_t stage_path_link(const struct stage *s, uint32_t source, uint32_t dest);

/* Memory the data thread needs before the next batch; all zero when it has enough. */
bool stage_room(struct stage *s, struct engine_room *room, struct refusal *r);

/* Hands the staged batch over, numbered; the next change starts a new one. NULL: refused. */
struct batch *stage_commit(struct stage *s, uint64_t at_ns, struct refusal *r);

/* The batch is in force. */
void stage_applied(struct stage *s, const struct batch *batch);

/* Forgets what was staged since the last commit. */
void stage_abort(struct stage *s);

/* The trace of that number if it is whole; NULL: it is not. */
const struct trace *stage_trace(const struct stage *s, uint64_t number);

/* The measured delays of that name if they are whole; NULL: they are not. */
const struct measured *stage_measured(const struct stage *s, const char *name);

void stage_port(struct stage *s, uint32_t port, bool open);
bool stage_port_is_open(const struct stage *s, uint32_t port);

/* The node bound to the port in the batches that have been applied; NODE_NONE: none. */
uint32_t stage_port_node(const struct stage *s, uint32_t port);

/* Where the link counts its flows: made for its first table, or with the first link of its neck.
 * False without memory. */
bool stage_room_for_flows(struct stage *s, uint32_t link, struct link_config *config);

/* Takes the neck of this name, `0` for none, which may be new. */
bool stage_name_neck(struct stage *s, const char *name, struct link_config *config,
                     struct refusal *r);

/* Whether a link of a neck, as it is declared or changed, has what necks take. */
bool stage_check_neck(const struct stage *s, uint32_t link, const struct link_config *config,
                      bool declares, struct refusal *r);

/* The neck of the link; NULL: none. */
const struct flows *stage_neck(const struct stage *s, uint32_t link);

/* The link's part of its neck. */
const struct flow_share *stage_share(const struct stage *s, uint32_t link);

void stage_free_flows(struct stage *s);
void stage_free_classes(struct stage *s);

/* For stage_groups.c: one more change of a group; a link that leaves this node. */
bool stage_push_group(struct stage *s, uint32_t group, const uint32_t *links, uint32_t count);
bool stage_check_out(const struct stage *s, uint32_t node, uint32_t link, struct refusal *r);

/* Room for an element of this number in an array that begins with zeroes; false without memory. */
bool stage_room_for_number(void **array, uint32_t *room, uint32_t number, size_t element);

/* For stage_paths.c: one more change of a link, and room for its declaration. */
bool stage_push_link(struct stage *s, enum op_kind kind, uint32_t link, const struct op_link *op);
bool stage_room_for_link(struct stage *s, uint32_t link);
bool stage_remember(struct stage *s, enum undo_of of, uint32_t number);
bool stage_check_node(const struct stage *s, uint32_t node, struct refusal *r);
bool stage_no_memory(struct refusal *r);

#endif
