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

#define ASKS 32u /* beyond this many a dump is cheaper */

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
    struct nl_attr stats = nl_find(body + sizeof *tc, length - sizeof *tc, TCA_STATS2);
    if (!stats.bytes) {
        return false;
    }
    struct gnet_stats_basic basic;
    struct nl_attr attr = nl_find(stats.bytes, stats.length, TCA_STATS_BASIC);
    /* Its padding at the end is not always sent. */
    nl_get(&attr, &basic, sizeof basic);
    f->bytes = basic.bytes;
    f->packets = basic.packets;
    attr = nl_find(stats.bytes, stats.length, TCA_STATS_PKT64);
    if (attr.bytes) {
        f->packets = nl_get_u64(&attr);
    }
    attr = nl_find(stats.bytes, stats.length, TCA_STATS_QUEUE);
    nl_get(&attr, &f->queue, sizeof f->queue);
    return true;
}

static struct tcal_peer *peer_of_slot(struct tcal_tree *tree, uint32_t slot) {
    return slot < tree->slots ? &tree->peer[tree->slot[slot]] : NULL;
}

/* A queue that a burst could fill without the class being held up. */
static bool is_short(const struct tcal_peer *peer) {
    uint64_t burst_ns = (uint64_t)peer->now.burst_ticks * TCAL_TICK_NS;
    return peer->now.queue_bytes / (peer->now.rate_bytes_ps / 1000000 + 1) <= burst_ns / 1000;
}

static void hear_class(void *context, uint16_t type, const char *body, size_t length) {
    struct tcal_tree *tree = context;
    struct tcmsg tc;
    struct figures f;
    if (type != RTM_NEWTCLASS || !read_figures(body, length, &tc, &f)) {
        return;
    }
    uint32_t slot = TC_H_MIN(tc.tcm_handle) - 0x10u;
    struct tcal_peer *peer = TC_H_MAJ(tc.tcm_handle) == TCAL_HTB ? peer_of_slot(tree, slot) : NULL;
    if (!peer || (uint32_t)tc.tcm_ifindex != tree->ifindex) {
        return;
    }
    struct tcal_raw *raw = &peer->raw;
    bool held = f.queue.overlimits != raw->overlimits || f.queue.drops != raw->drop_class;
    bool sent = f.packets != raw->sent_packets || f.bytes != raw->sent_bytes;
    peer->stale = held || f.queue.qlen || peer->backlog_bytes ||
                  (sent && (peer->lossy || is_short(peer) || peer->leaf == TCAL_LEAF_HOLE));
    peer->count.sent_packets += f.packets - raw->sent_packets;
    peer->count.sent_bytes += f.bytes - raw->sent_bytes;
    peer->stirred = peer->stirred || sent;
    raw->sent_packets = f.packets;
    raw->sent_bytes = f.bytes;
    raw->drop_class = f.queue.drops;
    raw->overlimits = f.queue.overlimits;
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
    uint32_t part = number % 4;
    bool more = false;
    if (part == TCAL_FIFO) {
        more = add_drops(&peer->count.drop_queue, &peer->raw.drop_queue, f.queue.drops) ||
               peer->backlog_bytes != f.queue.backlog;
        peer->backlog_bytes = f.queue.backlog;
    } else if (part == TCAL_NETEM) {
        more = add_drops(&peer->count.drop_netem, &peer->raw.drop_netem, f.queue.drops);
    } else if (part == TCAL_HOLE) {
        more = add_drops(&peer->count.drop_hole, &peer->raw.drop_hole, f.queue.drops);
    }
    peer->stirred = peer->stirred || more;
}

static void hear_nothing(void *context, uint32_t sequence, int error, const char *text) {
    (void)sequence;
    (void)text;
    int *first = &((struct tcal_tree *)context)->error;
    *first = *first ? *first : error;
}

/* What may have changed about a path besides what it sent: the qdiscs that tell. */
static uint32_t tellers(const struct tcal_peer *peer, uint32_t handle[2]) {
    uint32_t count = 0;
    if (!peer->stale) {
        return 0;
    }
    if (peer->leaf == TCAL_LEAF_HOLE) {
        handle[count++] = tcal_handle_of(peer->slot, TCAL_HOLE);
    }
    if (peer->has_fifo) {
        handle[count++] = tcal_handle_of(peer->slot, TCAL_FIFO);
    }
    if (peer->has_netem && peer->lossy) {
        handle[count++] = tcal_handle_of(peer->slot, TCAL_NETEM);
    }
    return count;
}

/* At most `room` questions; their number, or room + 1 when there are more. */
static uint32_t build_asks(struct tcal_tree *tree, struct nl_buffer *b, uint32_t room) {
    uint32_t asks = 0;
    for (uint32_t i = 0; i < tree->slots; i++) {
        uint32_t handle[2];
        uint32_t count = tellers(peer_of_slot(tree, i), handle);
        if (asks + count > room) {
            return room + 1;
        }
        for (uint32_t k = 0; k < count; k++) {
            struct tcal_mail m = {b, tree->sequence + asks++, tree->ifindex};
            tcal_mail_ask(&m, handle[k]);
        }
    }
    return asks;
}

static int read_qdiscs(struct tcal_tree *tree) {
    struct nl_buffer b = {0};
    struct nl_listener listener = {tree, hear_nothing, hear_qdisc};
    uint32_t asks = build_asks(tree, &b, ASKS);
    int error = 0;
    if (asks > ASKS) {
        error = tcal_tree_dump(tree, RTM_GETQDISC, 0, &listener);
    } else if (asks) {
        tree->sequence += asks;
        tree->totals->messages += asks;
        tree->totals->sends++;
        error = nl_talk(&tree->channel, &b, tree->sequence - 1, &listener);
    }
    nl_buffer_free(&b);
    return error;
}

/* A dump during which the state changes is not complete; nobody but us changes it often. */
int tcal_tree_read(struct tcal_tree *tree) {
    struct nl_listener listener = {tree, hear_nothing, hear_class};
    int error = -EINTR;
    for (int attempt = 0; attempt < 3 && error == -EINTR; attempt++) {
        error = tcal_tree_dump(tree, RTM_GETTCLASS, TCAL_HTB, &listener);
        error = error ? error : read_qdiscs(tree);
    }
    for (uint32_t i = 0; i < tree->slots; i++) {
        peer_of_slot(tree, i)->stale = false;
    }
    int heard = tree->error;
    tree->error = 0;
    return error ? error : heard;
}
