/* Messages under way: when there are enough they are sent, and what the kernel took is noted. */
#include "steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SEND_BYTES (96u << 10) /* as TCAL_SEND_MESSAGES */

/* The first failure of a round is the one that is told. */
static void fail(struct tcal_tree *tree, const struct tcal_step *step, int error,
                 const char *text) {
    if (tree->error == 0) {
        tree->error = error;
        tree->failed = *step;
        snprintf(tree->text, sizeof tree->text, "%s", text);
    }
}

static void hear_failure(void *context, uint32_t sequence, int error, const char *text) {
    struct tcal_tree *tree = context;
    uint32_t step = sequence - tree->sequence;
    if (step >= tree->steps) {
        return;
    }
    if (tree->step[step].kind == TCAL_STEP_UNFILTER && error == -ENOENT) {
        return; /* gone is gone */
    }
    tree->step[step].failed = true;
    fail(tree, &tree->step[step], error, text);
}

static void note_netem(struct tcal_peer *peer, const struct tcal_step *step) {
    const struct tcal_params *p = &step->params;
    peer->has_table = peer->has_table || step->table;
    peer->lossy = peer->lossy || p->netem.loss;
    peer->now.netem = p->netem;
    if (step->table) {
        peer->now.dist = p->dist;
    }
}

/* The inner qdiscs went with the leaf they were in. */
void tcal_note_leaf(struct tcal_peer *peer, enum tcal_leaf leaf) {
    peer->leaf = leaf;
    peer->has_netem = peer->has_fifo = peer->has_table = peer->lossy = false;
    peer->now.netem.limit = 0;
    /* Counters of new qdiscs begin at nothing; without loss netem's were not read. */
    peer->raw.drop_queue = peer->raw.drop_netem = peer->raw.drop_hole = 0;
    peer->queue_ahead = 0;
    peer->backlog_bytes = 0;
}

static void note_unfilter(struct tcal_filter *filter, const struct tcal_step *step) {
    if (filter->handle == step->filter.handle) {
        *filter = (struct tcal_filter){0};
    }
}

static void note(struct tcal_tree *tree, const struct tcal_step *step) {
    struct tcal_peer *peer = step->peer < tree->peers ? &tree->peer[step->peer] : NULL;
    switch (step->kind) {
    case TCAL_STEP_CLASS:
        peer->has_class = true;
        peer->now.rate_bytes_ps = step->params.rate_bytes_ps;
        peer->now.burst_ticks = step->params.burst_ticks;
        break;
    case TCAL_STEP_SPLIT:
        tcal_note_leaf(peer, TCAL_LEAF_OPEN);
        break;
    case TCAL_STEP_HOLE:
        tcal_note_leaf(peer, TCAL_LEAF_HOLE);
        break;
    case TCAL_STEP_NETEM:
        if (peer->leaf != TCAL_LEAF_OPEN) {
            tcal_note_leaf(peer, TCAL_LEAF_OPEN);
        }
        peer->has_netem = true;
        note_netem(peer, step);
        break;
    case TCAL_STEP_FIFO:
        peer->has_fifo = true;
        peer->now.queue_bytes = step->params.queue_bytes;
        break;
    case TCAL_STEP_FILTER:
        if (peer->filter[step->family].addr.version) {
            peer->stray[step->family] = peer->filter[step->family];
        }
        peer->filter[step->family] = step->filter;
        break;
    case TCAL_STEP_UNFILTER:
        note_unfilter(&peer->filter[step->family], step);
        note_unfilter(&peer->stray[step->family], step);
        break;
    default:
        break;
    }
}

/* A table that could not be made is to be made the next time. */
static void note_failure(struct tcal_tree *tree, const struct tcal_step *step) {
    if (step->kind == TCAL_STEP_TABLE) {
        tree->has_table[step->family][step->octet] = false;
    } else if (step->kind == TCAL_STEP_LINK) {
        tree->has_link[step->family][step->octet] = false;
    }
}

/* After a failure, and to an interface that is gone, nothing is sent. */
static void flush(struct tcal_tree *tree) {
    struct nl_listener listener = {.context = tree, .failed = hear_failure};
    bool sent = tree->steps && !tree->error && !tree->gone;
    int error = 0;
    if (sent) {
        tree->totals->messages += tree->steps;
        tree->totals->sends++;
        error = nl_talk(&tree->channel, &tree->out, tree->sequence + tree->steps - 1, &listener);
    }
    if (error) {
        tree->lost = true;
        fail(tree, &tree->step[0], error, "no answer from the kernel");
    }
    for (uint32_t i = 0; i < tree->steps; i++) {
        if (!sent || error || tree->step[i].failed) {
            note_failure(tree, &tree->step[i]);
        } else {
            note(tree, &tree->step[i]);
        }
    }
    tree->sequence += tree->steps;
    tree->steps = 0;
    tree->out.used = 0;
}

static uint32_t index_of(const struct tcal_tree *tree, const struct tcal_peer *peer) {
    return peer ? (uint32_t)(peer - tree->peer) : TCAL_NONE;
}

void tcal_give_up(struct tcal_tree *tree, enum tcal_step_kind kind, const struct tcal_peer *peer,
                  int error, const char *text) {
    fail(tree, &(struct tcal_step){.kind = kind, .peer = index_of(tree, peer)}, error, text);
}

struct tcal_step *tcal_step(struct tcal_tree *tree, enum tcal_step_kind kind,
                            const struct tcal_peer *peer) {
    if (tree->steps == TCAL_SEND_MESSAGES || tree->out.used >= SEND_BYTES) {
        flush(tree);
    }
    struct tcal_mail mail = {&tree->out, tree->sequence + tree->steps, tree->ifindex};
    struct tcal_step *s = &tree->step[tree->steps++];
    *s = (struct tcal_step){.kind = kind, .peer = index_of(tree, peer), .mail = mail};
    return s;
}

int tcal_tree_settle(struct tcal_tree *tree) {
    flush(tree);
    int error = tree->error;
    tree->error = 0;
    tree->failure = error;
    if (tree->out.failed) {
        nl_buffer_free(&tree->out);
        error = error ? error : -ENOMEM;
    }
    return error;
}

int tcal_tree_dump(struct tcal_tree *tree, uint16_t type, uint32_t parent,
                   const struct nl_listener *listener) {
    struct nl_buffer b = {0};
    struct tcal_mail m = {&b, tree->sequence++, tree->ifindex};
    tcal_mail_dump(&m, type, parent);
    int error = nl_dump(&tree->channel, &b, m.sequence, listener);
    nl_buffer_free(&b);
    tree->totals->dumps++;
    return error;
}
