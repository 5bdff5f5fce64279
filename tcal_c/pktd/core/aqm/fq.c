/* Flow queues with CoDel (RFC 8290).
 *
 * A packet belongs to the flow that its addresses, protocol and ports hash to. Flows are served in
 * turn, each until it has sent a quantum of bytes (deficit round robin; Shreedhar and Varghese,
 * 1995). One that was empty is new, and new ones come before the others until they have sent a
 * quantum, so a flow that never has more than that waiting hardly waits itself. When there is no
 * room the longest flow, in bytes, loses packets from its head: half of it, 64 at most, as in
 * Linux.
 */
#include "fq.h"

#include "aqm.h"
#include "pktd/core/draws/draw.h"

#include <netinet/in.h>
#include <string.h>

#define KEY_FLOW 0x666C6F77ull /* "flow" */
#define BATCH 64u

static uint64_t mixed(uint64_t hash, const uint8_t *bytes, size_t count) {
    uint64_t word = 0;
    memcpy(&word, bytes, count);
    return draw_bits(hash ^ word, 0);
}

static bool has_ports(const struct packet_info *info) {
    return (info->protocol == IPPROTO_TCP || info->protocol == IPPROTO_UDP ||
            info->protocol == IPPROTO_SCTP || info->protocol == IPPROTO_DCCP ||
            info->protocol == IPPROTO_UDPLITE) &&
           info->l4 + 4u <= info->length;
}

static struct fq_flow *flow_of(struct aqm *aqm, const struct piece *piece) {
    const struct packet_info *info = &piece->frame->info;
    uint64_t hash = mixed(aqm->salt ^ KEY_FLOW, &info->protocol, 1);
    for (size_t i = 0; i < sizeof info->source; i += 8) {
        hash = mixed(mixed(hash, info->source + i, 8), info->dest + i, 8);
    }
    if (has_ports(info)) {
        hash = mixed(hash, frame_content(piece->frame) + info->l4, 4);
    }
    return &aqm->flow[(u128)hash * aqm->is.flows >> 64];
}

static void append(struct fq_list *list, struct fq_flow *flow) {
    flow->next = NULL;
    *(list->tail ? &list->tail->next : &list->head) = flow;
    list->tail = flow;
}

static struct fq_flow *first(struct fq_list *list) {
    struct fq_flow *flow = list->head;
    if (flow) {
        list->head = flow->next;
        list->tail = list->head ? list->tail : NULL;
    }
    return flow;
}

/* Looks at every flow, as Linux does: this is rare. */
void fq_shorten(struct aqm *aqm) {
    struct fq_flow *longest = aqm->flow;
    for (uint64_t i = 1; i < aqm->is.flows; i++) {
        struct fq_flow *flow = &aqm->flow[i];
        longest = flow->fifo.bytes > longest->fifo.bytes ? flow : longest;
    }
    uint64_t keep = longest->fifo.bytes - longest->fifo.bytes / 2;
    uint32_t lost = 0;
    do {
        aqm_lose(aqm, aqm_take_of(aqm, &longest->fifo));
    } while (++lost < BATCH && longest->fifo.bytes > keep);
    longest->codel.count += lost;
}

void fq_put(struct aqm *aqm, struct piece *piece) {
    struct fq_flow *flow = flow_of(aqm, piece);
    aqm_put_in(aqm, &flow->fifo, piece);
    if (!flow->listed) {
        flow->listed = true;
        flow->deficit = (int64_t)aqm->is.quantum;
        append(&aqm->fresh, flow);
    }
}

/* The flow whose turn it is, taken out of its list; NULL when all are empty. `fresh`: it is new. */
static struct fq_flow *next_flow(struct aqm *aqm, bool *fresh) {
    for (;;) {
        *fresh = aqm->fresh.head;
        struct fq_flow *flow = first(*fresh ? &aqm->fresh : &aqm->old);
        if (!flow || flow->deficit > 0) {
            return flow;
        }
        flow->deficit += (int64_t)aqm->is.quantum;
        append(&aqm->old, flow);
    }
}

/* It has sent the packet, and stays first. */
static struct piece *sent(struct fq_list *list, struct fq_flow *flow, struct piece *piece) {
    flow->deficit -= piece_bytes(piece);
    flow->next = list->head;
    list->head = flow;
    list->tail = list->tail ? list->tail : flow;
    return piece;
}

/* `managed`: by the flow's CoDel. */
static struct piece *next_piece(struct aqm *aqm, bool managed, uint64_t at_ns) {
    bool fresh;
    for (struct fq_flow *flow; (flow = next_flow(aqm, &fresh));) {
        struct piece *piece = managed ? codel_take(aqm, &flow->codel, &flow->fifo, at_ns)
                                      : aqm_take_of(aqm, &flow->fifo);
        if (piece) {
            return sent(fresh ? &aqm->fresh : &aqm->old, flow, piece);
        }
        /* A new flow that is empty waits a round, so that it cannot be new again at once and starve
         * the others. */
        flow->listed = managed && fresh && aqm->old.head;
        if (flow->listed) {
            append(&aqm->old, flow);
        }
    }
    return NULL;
}

struct piece *fq_take(struct aqm *aqm, uint64_t at_ns) {
    return next_piece(aqm, true, at_ns);
}

struct piece *fq_remove(struct aqm *aqm) {
    return next_piece(aqm, false, 0);
}
