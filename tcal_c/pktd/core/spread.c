/* Which link of a group a packet takes.
 *
 * In: a group of links, each with its seed, and a packet. Out: the link whose draw, by its seed and
 * the flow's number, is the highest: rendezvous hashing (Thaler and Ravishankar, "Using name-based
 * mappings to increase hit rates", 1998). Nothing is remembered, so packets of a flow keep their
 * link and their order, and a link that leaves a group moves its own flows only. Each link has a
 * seed of its own, so the choices of nodes one behind the other are independent.
 *
 * A flow is addresses, protocol, ports (TCP, UDP, SCTP) and the flow label of IPv6 (RFC 6437); of
 * fragments and of other protocols it has no ports. A super-packet is one packet of it.
 * compiler/plan/paths/flows.py computes the same from docs/plan.md.
 */
#include "spread.h"

#include "pktd/core/draws/draw.h"
#include "pktd/core/structures/octets.h"

#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#define KEY_FLOW 0x666C6F77ull /* "flow" */
#define PROTOCOL_OF_IPV4 9
#define LABEL 0xFFFFFu

struct spread_group {
    uint32_t count;
    uint32_t link[SPREAD_MOST];
};

struct spread_page {
    struct spread_group group[SPREAD_FAN];
};

bool spread_prepare(struct spread *spread, uint32_t group) {
    _Atomic(struct spread_page *) *slot = &spread->page[group / SPREAD_FAN];
    if (atomic_load_explicit(slot, memory_order_relaxed)) {
        return true;
    }
    struct spread_page *page = calloc(1, sizeof *page);
    atomic_store_explicit(slot, page, memory_order_release);
    return page != NULL;
}

static struct spread_group *find(const struct spread *spread, uint32_t group) {
    struct spread_page *page =
        atomic_load_explicit(&spread->page[group / SPREAD_FAN], memory_order_acquire);
    return page ? &page->group[group % SPREAD_FAN] : NULL;
}

void spread_set(struct spread *spread, uint32_t group, const uint32_t *links, uint32_t count) {
    struct spread_group *to = find(spread, group);
    to->count = count;
    memcpy(to->link, links, count * sizeof *links);
}

void spread_destroy(struct spread *spread) {
    for (size_t i = 0; i < sizeof spread->page / sizeof *spread->page; i++) {
        free(atomic_load_explicit(&spread->page[i], memory_order_relaxed));
    }
}

static uint64_t get64(const uint8_t *p) {
    return (uint64_t)get32(p) << 32 | get32(p + 4);
}

uint64_t spread_flow(const struct packet_info *info, const uint8_t *frame) {
    const uint8_t *ip = frame + ETH_BYTES;
    /* The protocol of fragments of IPv4 stands in their header; behind it are no ports. */
    uint64_t protocol = info->version == 4 ? ip[PROTOCOL_OF_IPV4] : info->protocol;
    uint64_t label = info->version == 6 ? get32(ip) & LABEL : 0;
    bool with_ports = info->protocol == IPPROTO_TCP || info->protocol == IPPROTO_UDP ||
                      info->protocol == IPPROTO_SCTP;
    uint64_t ports = with_ports && info->l4 + 4u <= info->length ? get32(frame + info->l4) : 0;
    uint64_t flow = draw_bits(0, get64(info->source));
    flow = draw_bits(flow, get64(info->source + 8));
    flow = draw_bits(flow, get64(info->dest));
    flow = draw_bits(flow, get64(info->dest + 8));
    return draw_bits(flow, (uint64_t)info->version << 60 | protocol << 52 | label << 32 | ports);
}

struct link *spread_link(struct engine *e, uint32_t next, struct frame *frame) {
    const struct spread_group *group =
        next == LINK_NONE ? NULL : find(&e->spread, next - SPREAD_FIRST);
    struct link *best = NULL;
    uint64_t highest = 0;
    if (!group) {
        return NULL;
    }
    if (!frame->info.flow) {
        frame->info.flow = spread_flow(&frame->info, frame_content(frame));
    }
    for (uint32_t i = 0; i < group->count; i++) {
        struct link *link = engine_link(e, group->link[i]);
        uint64_t drawn = draw_bits(link->seed ^ KEY_FLOW, frame->info.flow);
        if (!best || drawn > highest) {
            best = link;
            highest = drawn;
        }
    }
    return best;
}

const struct link *spread_first(const struct engine *e, uint32_t next) {
    const struct spread_group *group =
        next == LINK_NONE ? NULL : find(&e->spread, next - SPREAD_FIRST);
    return group && group->count ? engine_link(e, group->link[0]) : NULL;
}
