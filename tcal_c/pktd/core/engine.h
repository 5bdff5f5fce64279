/* The packet engine without clocks and file descriptors. Time is an argument everywhere. */
#ifndef PKTD_ENGINE_H
#define PKTD_ENGINE_H

#include "common/addr.h"
#include "pktd/core/structures/counter.h"
#include "pktd/core/structures/fib.h"
#include "pktd/core/structures/groups.h"
#include "pktd/core/structures/spread.h"
#include "link.h"
#include "pairs.h"

#include <sys/uio.h>

#define LINK_FAN 1024u
#define HOP_LIMIT 255u

/* NODE_PLAIN looks up where packets go; of the others see switching.c. */
enum node_kind { NODE_PLAIN, NODE_END, NODE_LAN, NODE_AIR };

struct node {
    uint32_t port;      /* port + 1; 0 = none */
    uint32_t first_out; /* link + 1, of those that carry its frames; 0 = none */
    uint8_t kind;       /* enum node_kind */
    struct addr addr4;
    struct addr addr6;
    struct prefix behind; /* what it leads to besides: version 0: nothing */
    uint32_t next_behind; /* node + 1, of those that lead to something; 0 = the last */
    bool hop;             /* takes from the TTL of what passes, and answers where nothing is left */
    bool has_mac;         /* of its device: what is for it has this as its destination */
    uint8_t mac[6];
};

#define STATION_LIMIT 65536u

/* Where an address of Ethernet was last seen at a lan. */
struct station {
    uint64_t mac;
    uint32_t link; /* link + 1, towards it; 0 = nothing stands here */
    uint16_t lan;
};

struct link_page {
    struct link link[LINK_FAN];
};

struct engine_counters {
    counter rx; /* segments */
    counter tx;
    counter rx_frames;
    counter tx_frames;
    counter drop_unknown;
    counter drop_malformed;
    counter drop_write;
    counter drop_spoofed;
    counter expired;         /* segments whose TTL had no more for a hop */
    counter withheld;        /* answers to them, of which there were too many */
    counter group_sent;      /* segments that somebody hears, of those to groups and to all */
    counter group_delivered; /* copies of them */
    counter group_unwanted;  /* segments that nobody hears; they are unknown, too */
    counter group_filtered;  /* copies that were not made: who listens has not joined the source */
    counter group_refused;   /* joins for which there was no room */
    counter passed;          /* segments to addresses that no node has */
    counter commits;
};

/* What there is to tell of a port, beside the packets of its node. */
struct port_counters {
    counter spoofed;       /* segments from an address that its node does not have, all in all */
    counter group;         /* to a group or to all, dropped as unknown (packet_is_for_many) */
    uint64_t told_spoofed; /* control thread: what was last told */
    uint64_t told_group;
    bool told_gone;
};

/* How packets leave, due at `at_ns`: io[0] is the virtio header. 0 or -errno. */
typedef int engine_deliver(void *context, uint32_t port, uint64_t at_ns, const struct iovec *io,
                           int count);

/* What of a frame leaves by a port. */
struct leaving {
    struct frame *frame;
    uint32_t count; /* segments */
    uint64_t bytes; /* at layer 3 */
    bool passes;    /* out again as it came */
};

/* Takes a frame over that somebody else will write, who says so with engine_left: true. Otherwise
 * it is delivered at once. */
typedef bool engine_hand_over(void *context, uint32_t port, uint64_t at_ns,
                              const struct leaving *leaving, const struct iovec *io, int count);

struct engine {
    struct transit transit;
    struct addr_table addrs;
    struct pairs pairs;
    struct fib fib;
    struct groups groups;
    struct spread spread;
    struct pair_page to_many; /* its first pair is that of packets for many, the next that of frames
                               at lans; they are not told */
    bool readdresses;         /* some node has a MAC of its own */
    bool has_hops;            /* some node takes from the TTL of what passes */
    bool paths;               /* what has passed its link leaves by the port of its source */
    bool closed;              /* no path lets anything through */
    bool any_source; /* hop by hop: packets may come from addresses that their node does not have */
    struct engine_counters count;
    engine_deliver *deliver;
    engine_hand_over *hand_over; /* NULL: nobody else writes */
    void *deliver_context;
    struct node node[NODE_LIMIT];
    uint32_t port_node[PORT_LIMIT]; /* node + 1; 0 = none */
    uint32_t first_behind;          /* node + 1, of those that lead to other addresses; 0 = none */
    uint32_t port_end;              /* one more than the highest that was ever bound */
    struct port_counters port[PORT_LIMIT];
    struct station station[STATION_LIMIT];
    _Atomic(struct link_page *) link_page[LINK_LIMIT / LINK_FAN + 1];
};

/* Memory that the control thread makes for the data thread, and what it gets back. */
struct engine_room {
    struct heap_entry *heap;
    uint32_t heap_capacity;
    struct addr_slot *slots;
    uint32_t slot_capacity;
};

struct batch;

/* NULL when there is no memory. Deliver must not be NULL. */
struct engine *engine_new(uint64_t pool_limit_bytes, engine_deliver *deliver, void *context);
void engine_free(struct engine *e);

/* Control thread: makes sure that the link's memory exists (an undeclared link is down). */
bool engine_prepare_link(struct engine *e, uint32_t link);

/* Data thread: takes over larger tables; the old ones are left in `room`. */
void engine_reserve(struct engine *e, struct engine_room *room);

/* A frame with `bytes` bytes after its virtio header entered at `port` at `at_ns`. Takes it over.
 */
void engine_input(struct engine *e, uint32_t port, struct frame *frame, size_t bytes,
                  uint64_t at_ns);

/* There was no memory for a frame of which `bytes` bytes after its virtio header stand at `data`,
 * that header first. */
void engine_lost(struct engine *e, const uint8_t *data, size_t bytes);

/* What was handed over has been written (0) or not (-errno). */
void engine_left(struct engine *e, const struct leaving *leaving, int error);

/* When there is something to do next; TIME_NEVER when nothing waits. */
static inline uint64_t engine_next(const struct engine *e) {
    const struct heap_entry *top = heap_top(&e->transit.heap);
    return top ? top->due : TIME_NEVER;
}

/* The piece stands at `node` at `at_ns`: delivered, sent on, or dropped. Takes it over. */
void engine_arrive(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns);

/* The piece stands where this link, or group, leads from, and leaves by it; without one it is
 * dropped. Takes it over. */
void engine_forward(struct engine *e, uint32_t link, struct piece *piece, uint64_t at_ns);

/* A frame for one node, which nobody else looks at yet, gets the MAC of that node's device. */
void engine_readdress(const struct engine *e, struct frame *frame);

/* The piece leaves by the port of `node`, or is dropped there. */
void engine_deliver_at(struct engine *e, uint32_t node, const struct piece *piece, uint64_t at_ns);

/* Whether the packet is from the node's own address. */
bool engine_is_own_source(const struct node *node, const struct packet_info *info);

/* Moves the piece that is due next one hop. There must be one. */
void engine_step(struct engine *e);

/* Does everything due up to and including `until_ns`. */
void engine_run(struct engine *e, uint64_t until_ns);

/* Applies a batch as of `at_ns`. */
void engine_apply(struct engine *e, const struct batch *batch, uint64_t at_ns);

/* From now on links are paths: a frame enters and leaves at the same port, and one to an address
 * that no node has passes. */
void engine_use_paths(struct engine *e);

/* Drops what paths are offered and what would leave them, or no longer. */
void engine_close_paths(struct engine *e, bool closed);

/* From now on source addresses are not looked at. */
void engine_take_any_source(struct engine *e);

void engine_close_port(struct engine *e, uint32_t port);

/* Any link by which packets leave a node whose table says `next`; NULL: there is none. Those of a
 * group lead equally far. */
const struct link *engine_any_link(const struct engine *e, uint32_t next);

static inline struct link *engine_link(const struct engine *e, uint32_t link) {
    struct link_page *page =
        atomic_load_explicit(&e->link_page[link / LINK_FAN], memory_order_acquire);
    return page ? &page->link[link % LINK_FAN] : NULL;
}

/* --- many.c: packets for a group or for all --- */

/* A frame whose destination no node has entered at `port` at `at_ns`: reads what it says of groups,
 * and sends it to those that it is for. False: it is for nobody. Takes nothing over. */
bool many_take(struct engine *e, uint32_t port, struct frame *frame, uint64_t at_ns);

/* A piece of a frame with an audience stands at `node`. Takes it over. */
void many_arrive(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns);

/* The piece, which is for many, has come over a link to `node`, a hop: as engine_expire(). */
bool many_expire(struct engine *e, uint32_t node, struct piece *piece);

/* --- obstruct.c: what a link refuses, what is too large for it, or whose TTL is used up --- */

/* The piece stands before a link that obstructs: it is offered to the link, or it is refused or too
 * large, and cut into fragments, or dropped and answered. Takes it over. */
void obstruct(struct engine *e, struct link *link, struct piece *piece, uint64_t at_ns);

/* The piece has come over a link to `node`, a hop that it passes, which takes one from its TTL.
 * True: it had no more, and was dropped and answered; it is taken over. */
bool engine_expire(struct engine *e, uint32_t node, struct piece *piece, uint64_t at_ns);

/* --- switching.c: frames --- */

/* A frame of `bytes` bytes entered at the port of a node of frames; `error` is what reading a
 * packet from it gave. The caller keeps its reference. */
void switching_take(struct engine *e, uint32_t port, struct frame *frame, size_t bytes,
                    enum packet_error error, uint64_t at_ns);

/* The piece has passed `link`. Takes it over. */
void switching_arrive(struct engine *e, const struct link *link, struct piece *piece,
                      uint64_t at_ns);

/* The link is among those of its source, if that is a node of frames. */
void switching_add_link(struct engine *e, uint32_t link);

#endif
