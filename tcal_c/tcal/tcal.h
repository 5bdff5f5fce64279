/* libtcal: shapes what leaves interfaces by destination, with Linux traffic control.
 *
 * A struct tcal serves many ports. A port is one interface in one network namespace, with one
 * netlink socket that is opened once. Nodes have addresses; a port is bound to the node whose
 * packets leave there; a path from a node to a node has the properties its packets get. Changes are
 * applied together: all of them, or the state before is put back.
 *
 * Functions return true, or false with the reason in `error`, which names the attempt, the object
 * and the kernel's own words. Nothing here prints, exits, or reads a clock. Not thread safe.
 * docs/tcal.md says what is built in the kernel and why.
 */
#ifndef TCAL_TCAL_H
#define TCAL_TCAL_H

#include "common/addr.h"

/* Nodes and ports are numbered densely from 0, below NODE_LIMIT and PORT_LIMIT. */
#define TCAL_PATH_LIMIT LINK_LIMIT
#define TCAL_PREFIX_LIMIT 32
#define TCAL_NONE UINT32_MAX

enum tcal_dist {
    TCAL_DIST_NORMAL,
    TCAL_DIST_UNIFORM,
    TCAL_DIST_PARETO,
    TCAL_DIST_PARETONORMAL,
    TCAL_DIST_COUNT
};

struct tcal_options {
    bool deep;         /* a splitter in each class, for kernels that lose count in netem */
    uint64_t burst_ns; /* how late a timer may be without a loss of rate */
};

#define TCAL_BURST_NS 1000000u /* what to take when there is no reason for another */

struct tcal_error {
    char text[400];
};

/* Properties of a path. Rate and queue count bytes at layer 3. */
struct tcal_path {
    uint64_t rate_bps; /* 0: unlimited */
    uint64_t delay_ns;
    uint64_t jitter_ns;
    uint64_t loss_ppb;
    uint64_t queue_bytes;
    uint64_t seed;
    enum tcal_dist dist;
    bool up;
};

enum tcal_field {
    TCAL_RATE = 1,
    TCAL_DELAY = 2,
    TCAL_JITTER = 4,
    TCAL_LOSS = 8,
    TCAL_QUEUE = 16,
    TCAL_UP = 32,
    TCAL_ALL = 63, /* what a first declaration needs */
    TCAL_DIST = 64,
    TCAL_SEED = 128
};

enum tcal_change_kind { TCAL_CHANGE_NODE, TCAL_CHANGE_BIND, TCAL_CHANGE_UNBIND, TCAL_CHANGE_PATH };

struct tcal_change {
    enum tcal_change_kind kind;
    uint32_t node; /* PATH: the source */
    uint32_t dest;
    uint32_t port;
    uint32_t fields;       /* PATH: which of `path` count */
    struct tcal_path path; /* PATH */
    struct addr addr[2];   /* NODE: its IPv4 and its IPv6 address */
};

struct tcal_target {
    const char *netns; /* path of a network namespace */
    const char *name;  /* of the interface */
    struct prefix prefix[TCAL_PREFIX_LIMIT];
    uint32_t prefixes;
    bool leave; /* the end of the namespace removes what was made, tcal_detach does not */
};

/* What a port is, for a list of them. */
struct tcal_port_info {
    uint32_t port;
    uint32_t node; /* TCAL_NONE: not bound */
    const char *name;
    uint64_t netns_inode;
    uint8_t mac[6];
    bool gone; /* the interface has disappeared */
};

struct tcal_usage {
    uint32_t source;
    uint32_t dest;
    uint64_t sent_packets;
    uint64_t sent_bytes;
    uint64_t drop_queue;
    uint64_t drop_loss;
    uint64_t drop_down;
    uint64_t drop_route; /* while no path was declared */
    uint64_t backlog_bytes;
};

enum tcal_reading {
    TCAL_READ_MOVED, /* declared paths whose numbers have changed since last asked */
    TCAL_READ_ALL,   /* every declared path that was ever offered a packet */
    TCAL_READ_PAIRS  /* pairs, declared or not, that have changed since last asked for this way */
};

struct tcal_totals {
    uint64_t messages; /* sent to the kernel */
    uint64_t sends;
    uint64_t applied; /* lists of changes */
    uint64_t failed;
    uint64_t dumps;
};

struct tcal;

/* Whatever uses delays needs tcal_dist_init (dist.h) once before. NULL: out of memory. */
struct tcal *tcal_new(const struct tcal_options *options);
/* Leaves the kernel as it is: what was last enforced stays. tcal_detach each port to undo it. */
void tcal_free(struct tcal *t);

/* At once. Until a node is bound, packets for any node are dropped. */
bool tcal_attach(struct tcal *t, uint32_t port, const struct tcal_target *target,
                 struct tcal_error *error);
/* At once: the interface has its default queueing discipline again, and the port's node none. False
 * when that could not be restored; the port is gone all the same. */
bool tcal_detach(struct tcal *t, uint32_t port, struct tcal_error *error);
bool tcal_is_attached(const struct tcal *t, uint32_t port);

/* Calls `each` for every attached port in the order of their numbers. */
void tcal_ports(const struct tcal *t,
                void (*each)(void *context, const struct tcal_port_info *info), void *context);
bool tcal_port(const struct tcal *t, uint32_t port, struct tcal_port_info *info);

/* Applies the changes in their order, as one: when the kernel refuses any, those before are taken
 * back, and the error says what is in force then. */
bool tcal_apply(struct tcal *t, const struct tcal_change *change, size_t count,
                struct tcal_error *error);

/* What is in force: the addresses of a node, false when it is not declared; and every declared
 * path. */
bool tcal_node_of(const struct tcal *t, uint32_t node, struct addr addr[2]);
void tcal_declared(const struct tcal *t,
                   void (*each)(void *context, uint32_t source, uint32_t dest), void *context);

/* Closed: all paths drop what waits and what comes, whatever was declared. */
bool tcal_close(struct tcal *t, bool closed, struct tcal_error *error);

/* Reads the counters of all ports and calls `each` in the order of source, then destination. */
bool tcal_read(struct tcal *t, enum tcal_reading reading,
               void (*each)(void *context, const struct tcal_usage *usage), void *context,
               struct tcal_error *error);

void tcal_totals(const struct tcal *t, struct tcal_totals *totals);

/* NULL when the kernel can carry the path out, otherwise what it cannot. */
const char *tcal_unfit(const struct tcal_path *path);

/* What this kernel has, found by building one of each in a network namespace of its own. */
struct tcal_ability {
    const char *name;
    bool needed; /* nothing works without it */
    bool found;
    char why[120]; /* when it is not found */
};

#define TCAL_ABILITIES 7
#define TCAL_COUNTS 6 /* the one that tells whether trees need not be deep */

/* False with the reason when even the attempt is impossible. */
bool tcal_probe(struct tcal_ability ability[TCAL_ABILITIES], struct tcal_error *error);

#endif
