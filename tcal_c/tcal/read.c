/* Counters, read with as little as possible.
 *
 * One dump of the classes says what each path has sent, and whether anything else about it can have
 * changed: something was sent or refused, or packets wait. Only those paths' inner qdiscs are
 * asked, many in one send.
 */
#include "tree.h"

#include <errno.h>
#include <string.h>

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define ASKS 64u /* answers to one send that the socket has room for in any case */

struct figures {
    uint64_t bytes;
    uint64_t packets;
    struct gnet_stats_queue queue;
};

static bool read_figures(const char *body, size_t length, struct tcmsg *tc, struct figures *f) {
    *f = (struct figures){0};
    if (length < sizeof *tc) {
        return false;
    }
    memcpy(tc, body, sizeof *tc);
    struct tcal_attr stats = tcal_find(body + sizeof *tc, length - sizeof *tc, TCA_STATS2);
    if (!stats.bytes) {
        return false;
    }
    struct gnet_stats_basic basic;
    struct tcal_attr attr = tcal_find(stats.bytes, stats.length, TCA_STATS_BASIC);
    /* Its padding at the end is not always sent. */
    tcal_get(&attr, &basic, sizeof basic);
    f->bytes = basic.bytes;
    f->packets = basic.packets;
    attr = tcal_find(stats.bytes, stats.length, TCA_STATS_PKT64);
    if (attr.bytes) {
        f->packets = tcal_get_u64(&attr);
    }
    attr = tcal_find(stats.bytes, stats.length, TCA_STATS_QUEUE);
    tcal_get(&attr, &f->queue, sizeof f->queue);
    return true;
}

static struct tcal_peer *peer_of_slot(struct tcal_tree *tree, uint32_t slot) {
    return slot < tree->slots ? &tree->peer[tree->slot[slot]] : NULL;
}

static void hear_class(void *context, uint16_t type, const char *body, size_t length) {
    struct tcal_tree *tree = context;
    struct tcmsg tc;
    struct figures f;
    if (type != RTM_NEWTCLASS || !read_figures(body, length, &tc, &f)) {
        return;
    }
    uint32_t slot = TC_H_MIN(tc.tcm_handle) - 0x10u;
    struct tcal_peer *peer = TC_H_MAJ(tc.tcm_handle) == TCAL_ROOT ? peer_of_slot(tree, slot) : NULL;
    if (!peer || (uint32_t)tc.tcm_ifindex != tree->ifindex) {
        return;
    }
    struct tcal_raw *raw = &peer->raw;
    bool sent = f.packets != raw->sent_packets || f.bytes != raw->sent_bytes;
    peer->stale = sent || f.queue.drops != raw->drop_class || f.queue.qlen || peer->backlog_bytes;
    peer->count.sent_packets += f.packets - raw->sent_packets;
    peer->count.sent_bytes += f.bytes - raw->sent_bytes;
    peer->stirred = peer->stirred || sent;
    raw->sent_packets = f.packets;
    raw->sent_bytes = f.bytes;
    raw->drop_class = f.queue.drops;
}

/* The kernel counts drops in 32 bits. */
static bool add_drops(uint64_t *total, uint32_t *raw, uint32_t now) {
    uint32_t more = now - *raw;
    *total += more;
    *raw = now;
    return more;
}

static void hear_qdisc(void *context, uint16_t type, const char *body, size_t length) {
    struct tcal_tree *tree = context;
    struct tcmsg tc;
    struct figures f;
    if (type != RTM_NEWQDISC || !read_figures(body, length, &tc, &f)) {
        return;
    }
    uint32_t number = (tc.tcm_handle >> 16) - 0x10u;
    struct tcal_peer *peer = peer_of_slot(tree, number / 4);
    if (!peer || (uint32_t)tc.tcm_ifindex != tree->ifindex) {
        return;
    }
    bool inner = tree->queue == TCAL_QUEUE_INNER;
    uint32_t part = number % 4;
    bool more = false;
    if (part == TCAL_FIFO) {
        more = add_drops(&peer->count.drop_queue, &peer->raw.drop_queue, f.queue.drops);
    } else if (part == TCAL_NETEM) {
        more = add_drops(&peer->count.drop_netem, &peer->raw.drop_netem, f.queue.drops);
    } else if (part == TCAL_HOLE) {
        more = add_drops(&peer->count.drop_hole, &peer->raw.drop_hole, f.queue.drops);
    }
    if (part == (inner ? TCAL_FIFO : TCAL_NETEM)) {
        more = more || peer->backlog_bytes != f.queue.backlog;
        peer->backlog_bytes = f.queue.backlog;
    }
    peer->stirred = peer->stirred || more;
}

static void hear_nothing(void *context, uint32_t sequence, int error, const char *text) {
    (void)sequence;
    (void)text;
    int *first = &((struct tcal_tree *)context)->error;
    *first = *first ? *first : error;
}

static const struct tcal_listener class_listener = {.failed = hear_nothing, .message = hear_class};
static const struct tcal_listener qdisc_listener = {.failed = hear_nothing, .message = hear_qdisc};

static int send_asks(struct tcal_tree *tree, struct tcal_buffer *b, uint32_t *asks) {
    if (*asks == 0) {
        return 0;
    }
    struct tcal_listener listener = qdisc_listener;
    listener.context = tree;
    int error = tcal_talk(&tree->channel, b, tree->sequence - 1, &listener);
    tree->messages += *asks;
    tree->sends++;
    *asks = 0;
    b->used = 0;
    return error;
}

static int ask(struct tcal_tree *tree, struct tcal_buffer *b, uint32_t *asks, uint32_t handle) {
    struct tcal_mail m = {b, tree->sequence++, tree->ifindex};
    tcal_mail_ask(&m, handle);
    return ++*asks == ASKS ? send_asks(tree, b, asks) : 0;
}

/* What may have changed about a path besides what it sent. */
static int ask_peer(struct tcal_tree *tree, struct tcal_buffer *b, uint32_t *asks,
                    const struct tcal_peer *peer) {
    int error = 0;
    if (peer->leaf == TCAL_LEAF_HOLE) {
        return ask(tree, b, asks, tcal_handle_of(peer->slot, TCAL_HOLE));
    }
    if (peer->has_fifo) {
        error = ask(tree, b, asks, tcal_handle_of(peer->slot, TCAL_FIFO));
    }
    if (!error && peer->has_netem && (peer->lossy || tree->queue == TCAL_QUEUE_HTB)) {
        error = ask(tree, b, asks, tcal_handle_of(peer->slot, TCAL_NETEM));
    }
    return error;
}

int tcal_tree_read(struct tcal_tree *tree) {
    struct tcal_listener listener = class_listener;
    listener.context = tree;
    int error = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        error = tcal_tree_dump(tree, RTM_GETTCLASS, TCAL_ROOT, &listener);
        if (error != -EINTR) {
            break;
        }
    }
    struct tcal_buffer b = {0};
    uint32_t asks = 0;
    for (uint32_t i = 0; i < tree->slots && !error; i++) {
        struct tcal_peer *peer = peer_of_slot(tree, i);
        if (peer->stale) {
            peer->stale = false;
            error = ask_peer(tree, &b, &asks, peer);
        }
    }
    if (!error) {
        error = send_asks(tree, &b, &asks);
    }
    tcal_buffer_free(&b);
    int heard = tree->error;
    tree->error = 0;
    return error ? error : heard;
}
