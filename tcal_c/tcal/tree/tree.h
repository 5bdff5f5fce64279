/* What one interface's kernel has, object by object, and how to get from there to what it shall
 * have with the fewest messages.
 *
 * Messages are built as differences and sent when there are enough of them; what the kernel has
 * accepted is noted only when it has answered. So after a failure the notes still say what is, and
 * putting an old state back is one more difference.
 */
#ifndef TCAL_TREE_H
#define TCAL_TREE_H

#include "objects.h"

enum tcal_leaf { TCAL_LEAF_NONE, TCAL_LEAF_OPEN, TCAL_LEAF_HOLE };

struct tcal_filter {
    struct addr addr; /* version 0: there is none */
    uint32_t handle;
};

/* What has been counted since the counters were last taken away. */
struct tcal_count {
    uint64_t sent_packets;
    uint64_t sent_bytes;
    uint64_t drop_queue;
    uint64_t drop_netem; /* by the queue behind it or by loss */
    uint64_t drop_hole;
};

/* What the kernel's objects said last; they count from when they were made. */
struct tcal_raw {
    uint64_t sent_packets;
    uint64_t sent_bytes;
    uint32_t drop_class; /* whatever its leaf refused */
    uint32_t overlimits; /* times the class was held up */
    uint32_t drop_queue;
    uint32_t drop_netem;
    uint32_t drop_hole;
};

/* One destination. */
struct tcal_peer {
    uint32_t node;
    uint32_t slot; /* TCAL_NONE: none yet */
    bool dirty;
    bool has_class;
    bool has_netem;
    bool has_fifo;
    bool has_table; /* netem has a delay table, of params.dist */
    bool lossy;     /* packets may have been lost by draw */
    enum tcal_leaf leaf;
    struct tcal_params now;
    uint64_t generation; /* of netem's seed */
    struct tcal_filter filter[TCAL_FAMILIES];
    struct tcal_filter stray[TCAL_FAMILIES]; /* replaced, but could not be removed */
    struct tcal_count count;
    struct tcal_raw raw;
    uint64_t queue_ahead; /* drops of the queue that netem has not been heard to count */
    uint64_t backlog_bytes;
    bool stirred; /* since the counters were last taken away */
    bool stale;   /* its qdiscs are to be asked */
};

/* What a peer shall be. */
struct tcal_wish {
    struct tcal_path path; /* not up: dropped */
    struct addr addr[TCAL_FAMILIES];
};

enum tcal_step_kind {
    TCAL_STEP_BASE,
    TCAL_STEP_CLASS,
    TCAL_STEP_SPLIT,
    TCAL_STEP_NETEM,
    TCAL_STEP_FIFO,
    TCAL_STEP_HOLE,
    TCAL_STEP_FILTER,
    TCAL_STEP_UNFILTER,
    TCAL_STEP_TABLE,
    TCAL_STEP_LINK
};

/* As many messages in one send: their answers must fit in the socket's buffer even if all fail. */
#define TCAL_SEND_MESSAGES 256u

/* A message under way, and what it means when the kernel takes it. */
struct tcal_step {
    struct tcal_mail mail;
    enum tcal_step_kind kind;
    bool failed;
    bool table; /* NETEM: with a delay table */
    uint32_t peer;
    uint32_t family;
    uint32_t octet;
    struct tcal_params params;
    struct tcal_filter filter;
};

struct tcal_tree {
    struct nl_channel channel;
    uint32_t ifindex;
    uint32_t mtu;
    uint32_t segments; /* in one packet, before it was ours */
    struct tcal_options options;
    struct tcal_totals *totals; /* of all trees */
    struct prefix prefix[TCAL_PREFIX_LIMIT];
    uint32_t prefixes;
    uint32_t self; /* the node that it was last bound to, or TCAL_NONE */
    bool gone;     /* the interface has disappeared */
    bool lost;     /* nobody knows what the kernel has: it is to be rebuilt */

    struct tcal_peer *peer;
    uint32_t peers;
    uint32_t peer_room;
    uint32_t *peer_of; /* node -> peer + 1 */
    uint32_t nodes;
    uint32_t *slot; /* -> peer */
    uint32_t slots;
    uint32_t *dirty; /* peers whose wish may have changed */
    uint32_t dirties;
    bool has_table[TCAL_FAMILIES][256];
    bool has_link[TCAL_FAMILIES][256];
    uint16_t next_id[TCAL_FAMILIES][256][256];

    struct nl_buffer out;
    struct tcal_step step[TCAL_SEND_MESSAGES];
    uint32_t steps;
    uint32_t sequence; /* of the first step under way */
    int error;         /* the first failure of this round, and what it was about */
    struct tcal_step failed;
    char text[200];
    int failure; /* the error of the last round */
};

/* Builds the tree's base, replacing one that an earlier process left behind. */
bool tcal_tree_build(struct tcal_tree *tree);
/* Removes the tree from the interface: 0 or the first error. */
int tcal_tree_remove(struct tcal_tree *tree);
/* Everything again, after a failure that leaves nobody knowing what is. Peers are forgotten by the
 * kernel's side only: mark them dirty. */
bool tcal_tree_rebuild(struct tcal_tree *tree);
void tcal_tree_free(struct tcal_tree *tree);

/* The wish for a node may have changed; false: out of memory. */
bool tcal_tree_mark(struct tcal_tree *tree, uint32_t node);

/* Messages for the difference. Failures are kept until tcal_tree_settle. */
void tcal_tree_wish(struct tcal_tree *tree, struct tcal_peer *peer, const struct tcal_wish *wish);

/* Sends what is left and starts a new round: 0, or the first error of this one; then tree->failed
 * is the step and tree->text the kernel's words. */
int tcal_tree_settle(struct tcal_tree *tree);

/* Whether an address lies in the tree's prefixes. */
bool tcal_tree_covers(const struct tcal_tree *tree, const struct addr *addr);

/* A dump with its own sequence number. 0 or -errno. */
int tcal_tree_dump(struct tcal_tree *tree, uint16_t type, uint32_t parent,
                   const struct nl_listener *listener);

/* read.c: brings the counters of all peers up to date. 0 or -errno. */
int tcal_tree_read(struct tcal_tree *tree);

#endif
