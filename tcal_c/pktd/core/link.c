/* The life of a packet on a link.
 *
 * Pieces stand in one list in order of leaving, so only its head needs a place in the heap. Where
 * nothing leaves the order, it is that of coming: first those that travel, then those that wait in
 * the queue; what leaves the order is put in its place from the end. When a piece is accepted, the
 * time at which it will have been served and the time at which it will leave are computed at once;
 * a change of the rate or the delay walks over what waits and computes them again.
 *
 * Segments of a super-packet are drawn, queued and dropped one by one; those that stay neighbours
 * go on as one piece, up to PIECE_SERVICE_NS of service. A piece moves on when its last segment is
 * through. `span_ns` tells how long before that the first was through, so that the next link can
 * serve the segments from the time they would have arrived there: a piece waits for its own last
 * segment once, not once a hop.
 *
 * Most links have a rate, a delay, a loss, a jitter and a queue at most, and are `bare`: that one
 * look spares their packets the looks for all the rest. What can be told when a link changes is
 * told then (link_change), not with each packet.
 */
#include "link.h"

#include "pairs.h"

#include <limits.h>

/* What the link's trace has at that time; NULL: nothing of its own. */
static const struct trace_row *row_at(const struct transit *t, const struct link *link,
                                      uint64_t at_ns) {
    const struct trace *trace = link->trace;
    if (!trace || !trace->row) {
        return NULL;
    }
    return trace_row_at(trace, trace_since(trace, counter_get(&t->epoch_ns), at_ns));
}

/* The class beside the usual one if the frame is of it, else NULL. */
static const struct only *class_of(const struct link *link, const struct frame *frame) {
    return link->only && only_has(link->only, frame) ? link->only : NULL;
}

/* Where it is while it is on the link. */
struct lane *link_lane(struct link *link, const struct frame *frame) {
    return class_of(link, frame) ? &link->apart : &link->usual;
}

struct travel {
    uint64_t delay_ns;
    uint64_t jitter_ns;
};

/* What a packet meets that leaves the queue then: what its class has, else the trace, else the
 * link. */
static inline struct travel travel_at(const struct transit *t, const struct link *link,
                                      const struct only *only, uint64_t at_ns) {
    struct travel travel = {link->delay_ns, link->jitter_ns};
    const struct trace_row *row = row_at(t, link, at_ns);
    if (row) {
        travel.delay_ns = link->trace->fields & TRACE_DELAY ? row->delay_ns : travel.delay_ns;
        travel.jitter_ns = link->trace->fields & TRACE_JITTER ? row->jitter_ns : travel.jitter_ns;
    }
    if (only) {
        travel.delay_ns = only->stated & ONLY_DELAY ? only->delay_ns : travel.delay_ns;
        travel.jitter_ns = only->stated & ONLY_JITTER ? only->jitter_ns : travel.jitter_ns;
    }
    return travel;
}

static uint64_t delayed(uint64_t at_ns, uint64_t delay_ns, int64_t deviation_ns) {
    int64_t delay = (int64_t)delay_ns + deviation_ns;
    return at_ns + (delay > 0 ? (uint64_t)delay : 0);
}

/* From the delay, of what leaves the queue then. */
static int64_t deviation(const struct transit *t, const struct link *link, uint64_t leaves,
                         uint64_t jitter) {
    if (jitter == 0) {
        return 0;
    }
    uint64_t since = leaves - counter_get(&t->epoch_ns);
    uint64_t seed = link_seed(t, link, leaves);
    return link->measured ? measured_jitter(link->measured, seed, since, jitter)
                          : draw_jitter(seed, since, link->dist, jitter);
}

static int32_t deviation_alone(const struct link *link, uint64_t seed, bool probe, uint64_t nth) {
    return link->measured ? measured_alone(link->measured, seed, probe, nth)
                          : draw_alone(seed, probe, nth, link->dist);
}

void link_set_due(const struct transit *t, struct link *link, struct piece *piece,
                  uint64_t after_ns) {
    uint64_t leaves = max_u64(piece->served_ns, after_ns);
    const struct only *only = class_of(link, piece->frame);
    const struct travel is = travel_at(t, link, only, leaves);
    piece->apart = only != NULL;
    if (piece->order == PIECE_ALONE) {
        int64_t alone = draw_scaled(piece->deviation, is.jitter_ns);
        piece->due_ns = delayed(leaves, is.delay_ns, alone);
        return;
    }
    uint64_t due_ns = delayed(leaves, is.delay_ns, deviation(t, link, leaves, is.jitter_ns));
    if (piece->order == PIECE_LATER) {
        piece->due_ns = due_ns + link->impair.is.reorder_ns;
        return;
    }
    /* What came before a change may still be on its way. */
    struct lane *lane = only ? &link->apart : &link->usual;
    piece->due_ns = max_u64(due_ns, lane->last_due_ns);
    lane->last_due_ns = piece->due_ns;
}

/* The same of a piece in order, where only the delay counts. */
static inline void set_plain_due(struct link *link, struct piece *piece, uint64_t after_ns) {
    uint64_t due_ns = max_u64(piece->served_ns, after_ns) + link->delay_ns;
    piece->apart = false;
    piece->due_ns = link->usual.last_due_ns = max_u64(due_ns, link->usual.last_due_ns);
}

static inline struct lane *lane_of(struct link *link, const struct piece *piece) {
    return piece->apart ? &link->apart : &link->usual;
}

/* Puts it behind all in its lane that leave no later. */
static inline void insert(struct lane *lane, struct piece *piece) {
    struct piece *before = lane->tail;
    while (before && before->due_ns > piece->due_ns) {
        before = before->prev;
    }
    piece->prev = before;
    piece->next = before ? before->next : lane->head;
    *(before ? &before->next : &lane->head) = piece;
    *(piece->next ? &piece->next->prev : &lane->tail) = piece;
}

/* Of both lanes, where something is in that of the class. */
static struct piece *earlier(const struct link *link) {
    struct piece *usual = link->usual.head, *apart = link->apart.head;
    if (!usual) {
        return apart;
    }
    bool tie = apart->due_ns == usual->due_ns;
    return (tie ? apart->seq < usual->seq : apart->due_ns < usual->due_ns) ? apart : usual;
}

/* What leaves next; NULL: nothing is on its way. */
static inline struct piece *first(const struct link *link) {
    return link->apart.head ? earlier(link) : link->usual.head;
}

/* Whether the next that it does is to send what its queue holds, and when. */
static inline bool sends_next(const struct link *link, uint64_t *sends_ns) {
    if (!link->aqm) {
        return false;
    }
    *sends_ns = holding_next(link);
    const struct piece *head = first(link);
    return *sends_ns != TIME_NEVER && (!head || *sends_ns <= head->due_ns);
}

/* Where the link stands among the others, by its head or what it is to send. */
static inline void schedule(struct transit *t, struct link *link) {
    uint64_t sends_ns;
    const struct piece *head = first(link);
    if (sends_next(link, &sends_ns)) {
        heap_put(&t->heap, &link->waiting, sends_ns, t->seq++);
    } else if (head) {
        heap_put(&t->heap, &link->waiting, head->due_ns, head->seq);
    } else {
        heap_remove(&t->heap, &link->waiting);
    }
}

void link_append(struct transit *t, struct link *link, struct piece *piece, uint64_t at_ns) {
    struct lane *lane = &link->usual;
    if (link->bare && link->jitter_ns == 0 && piece->order == PIECE_IN_ORDER) {
        set_plain_due(link, piece, at_ns);
    } else {
        link_set_due(t, link, piece, at_ns);
        lane = lane_of(link, piece);
    }
    piece->seq = t->seq++;
    insert(lane, piece);
    if (first(link) == piece) {
        heap_put(&t->heap, &link->waiting, piece->due_ns, piece->seq);
    }
    counter_add(&t->in_flight, 1);
}

static void add_to_digest(const struct transit *t, struct link *link, const struct piece *part,
                          enum fate fate, uint64_t at_ns) {
    uint64_t time = t->digests == DIGESTS_TIMES ? at_ns - counter_get(&t->epoch_ns) : 0;
    uint64_t before = counter_get(&link->digest);
    counter_set(&link->digest,
                digest_add(before, time, fate, part->first, part->count, part->frame->contents));
}

static void capture(const struct transit *t, struct captured *to, const struct piece *part,
                    enum fate fate, uint64_t at_ns) {
    struct packet_piece cut;
    uint8_t *bytes = frame_bytes(part->frame);
    packet_cut(&part->frame->info, bytes, part->first, part->count, &cut);
    piece_age(part, &cut);
    const struct ring_entry entry = {.to = to,
                                     .at_ns = at_ns,
                                     .span_ns = part->span_ns,
                                     .segments = (uint16_t)part->count,
                                     .fate = (uint8_t)fate,
                                     .vnet = cut.vnet};
    const struct iovec io[2] = {{cut.header, cut.header_bytes},
                                {bytes + cut.payload_offset, cut.payload_bytes}};
    ring_put(t->ring, &entry, io, 2);
}

static inline void capture_at(const struct transit *t, _Atomic(struct captured *) *place,
                              const struct piece *part, enum fate fate, uint64_t at_ns) {
    struct captured *to = atomic_load_explicit(place, memory_order_acquire);
    if (to && !(to->programs && part->frame->info.probe)) {
        capture(t, to, part, fate, at_ns);
    }
}

/* The part of a frame had this fate at `at_ns`. */
static inline void record(const struct transit *t, struct link *link, const struct piece *part,
                          enum fate fate, uint64_t at_ns) {
    if (t->digests != DIGESTS_OFF) {
        add_to_digest(t, link, part, fate, at_ns);
    }
    capture_at(t, &link->captured, part, fate, at_ns);
}

void link_lose(const struct transit *t, struct link *link, const struct piece *origin,
               uint32_t segment, enum fate fate, uint64_t at_ns) {
    const struct piece part = {
        .frame = origin->frame, .first = (uint16_t)segment, .count = 1, .aged = origin->aged};
    struct frame *frame = origin->frame;
    bool drawn = fate == FATE_LOSS;
    record(t, link, &part, fate, at_ns);
    counter_add(drawn ? &link->count.drop_loss : &link->count.drop_queue, 1);
    pair_drop(frame->pair, drawn ? DROP_LOSS : DROP_QUEUE, 1);
}

static void drop_piece(struct transit *t, struct link *link, struct piece *piece, uint64_t at_ns) {
    record(t, link, piece, FATE_DOWN, at_ns);
    counter_add(&link->count.drop_down, piece->count);
    pair_drop(piece->frame->pair, DROP_DOWN, piece->count);
    pool_piece_release(&t->pool, piece);
}

/* Consecutive accepted segments that become one piece. */
struct run {
    uint32_t first;
    uint32_t count;
    uint64_t start_ns; /* service of the first begins */
    uint64_t first_ns; /* first is through */
    uint64_t last_ns;  /* last is through */
};

/* The run goes on as this piece, of the same frame. */
static void launch_run(struct transit *t, struct link *link, struct piece *piece,
                       const struct run *run, uint64_t at_ns) {
    piece->first = (uint16_t)run->first;
    piece->count = (uint16_t)run->count;
    piece->order = PIECE_IN_ORDER;
    piece->served_ns = run->last_ns;
    uint64_t through = max_u64(run->last_ns, at_ns);
    piece->span_ns = (uint32_t)min_u64(through - min_u64(run->first_ns, through), UINT32_MAX);
    link_append(t, link, piece, at_ns);
}

static void close_run(struct transit *t, struct link *link, struct piece *origin, struct run *run,
                      uint64_t at_ns) {
    if (run->count == 0) {
        return;
    }
    struct piece *piece = pool_piece(&t->pool, origin->frame);
    if (piece) {
        piece_come_as(piece, origin);
        launch_run(t, link, piece, run, at_ns);
    } else {
        counter_add(&t->drop_nobuf, run->count);
    }
    run->count = 0;
}

/* Bytes that a trace has not served. */
static uint64_t unserved(const struct link_counters *c, const struct trace *trace, uint64_t at_ns) {
    uint64_t until = counter_get(&c->busy_until_ns), zero = counter_get(&c->zero_ns);
    u128 end = until > at_ns ? queue_served(trace, zero, until) : 0;
    u128 not_now = queue_served(trace, zero, at_ns) + counter_get(&c->spare);
    return end > not_now ? trace_bytes(trace, end - not_now) : 0;
}

uint64_t link_backlog(const struct link_counters *c, uint64_t at_ns, uint64_t *packets) {
    const struct trace *trace = atomic_load_explicit(&c->trace, memory_order_acquire);
    uint64_t backlog =
        trace ? unserved(c, trace, at_ns)
              : queue_backlog(counter_get(&c->rate_bps), counter_get(&c->busy_until_ns), at_ns);
    uint64_t bytes = counter_get(&c->burst_bytes);
    uint64_t count = counter_get(&c->burst_pkts);
    *packets = backlog && bytes ? (uint64_t)(((u128)backlog * count + bytes - 1) / bytes) : 0;
    *packets += counter_get(&c->held_pkts);
    return backlog + counter_get(&c->held_bytes);
}

/* Until when what serves the queue is busy. */
static inline void tell_busy(struct link *link) {
    const struct queue *q = &link->queue;
    counter_set(&link->count.busy_until_ns, q->free_ns);
    if (q->trace) {
        counter_set(&link->count.zero_ns, q->zero_ns);
        counter_set(&link->count.spare, queue_spare(q));
    }
}

/* And what serves it. */
static void tell_queue(struct link *link) {
    const struct queue *q = &link->queue;
    counter_set(&link->count.rate_bps, q->rate_bps);
    tell_busy(link);
    atomic_store_explicit(&link->count.trace, q->trace, memory_order_release);
}

void link_count_accepted(struct link *link, uint64_t packets, uint64_t bytes) {
    counter_add(&link->count.accepted_pkts, packets);
    counter_add(&link->count.accepted_bytes, bytes);
}

/* Whether it shares its queue with others. */
static bool is_of_neck(const struct link *link) {
    return link->flows && link->flows->is_neck;
}

/* Whether there is room for it. Inlined by demand, as offer_segment() is: calls with that many
 * arguments are a tenth of what a segment costs. */
__attribute__((always_inline)) static inline bool
queue_segment(struct transit *t, struct link *link, const struct piece *origin, uint32_t segment,
              uint64_t at_ns, struct service *service) {
    uint32_t bytes = packet_segment_bytes(&origin->frame->info, segment);
    bool idle = link->queue.free_ns <= at_ns;
    if (!queue_offer(&link->queue, at_ns, bytes, service)) {
        link_lose(t, link, origin, segment, FATE_QUEUE, at_ns);
        return false;
    }
    if (link->queue.rate_bps) {
        uint64_t keep = idle ? 0 : 1;
        counter_set(&link->count.burst_pkts, counter_get(&link->count.burst_pkts) * keep + 1);
        counter_set(&link->count.burst_bytes, counter_get(&link->count.burst_bytes) * keep + bytes);
        tell_busy(link);
    }
    if (is_of_neck(link)) {
        flows_own_enters(link->share, &link->queue, bytes, service->end_ns);
    }
    link_count_accepted(link, 1, bytes);
    return true;
}

static uint32_t loss_at(const struct transit *t, const struct link *link, uint64_t at_ns) {
    const struct trace_row *row = row_at(t, link, at_ns);
    return row && link->trace->fields & TRACE_LOSS ? (uint32_t)row->loss_ppb : link->loss_ppb;
}

/* A class with a loss of its own has no part in the link's bursts. */
static bool draws_loss(const struct transit *t, struct link *link, const struct frame *frame,
                       uint64_t nth, uint64_t at_ns) {
    bool probe = frame->info.probe;
    uint64_t seed = link_seed(t, link, at_ns);
    const struct only *only = class_of(link, frame);
    if (only && only->stated & ONLY_LOSS) {
        return draw_lost(seed, probe, nth, (uint32_t)only->loss_ppb);
    }
    uint32_t loss_ppb = loss_at(t, link, at_ns);
    return link->impairs ? impair_lost(&link->impair, seed, probe, nth, loss_ppb)
                         : draw_lost(seed, probe, nth, loss_ppb);
}

bool link_draws_loss(const struct transit *t, struct link *link, const struct piece *origin,
                     uint32_t segment, uint64_t nth, uint64_t at_ns) {
    if (draws_loss(t, link, origin->frame, nth, at_ns)) {
        link_lose(t, link, origin, segment, FATE_LOSS, at_ns);
        return true;
    }
    return false;
}

/* Draws and queues one segment, the nth of its kind; true when it goes on. */
__attribute__((always_inline)) static inline bool
offer_segment(struct transit *t, struct link *link, const struct piece *origin, uint32_t segment,
              uint64_t nth, uint64_t at_ns, struct service *service) {
    const struct frame *frame = origin->frame;
    if (!link->bare) {
        if (link_draws_loss(t, link, origin, segment, nth, at_ns)) {
            return false;
        }
    } else if (link->loss_ppb &&
               draw_lost(link_seed(t, link, at_ns), frame->info.probe, nth, link->loss_ppb)) {
        link_lose(t, link, origin, segment, FATE_LOSS, at_ns);
        return false;
    }
    return queue_segment(t, link, origin, segment, at_ns, service);
}

uint64_t link_arrival(const struct piece *piece, uint32_t i, uint64_t at_ns) {
    if (piece->count == 1) {
        return at_ns;
    }
    uint64_t span = min_u64(piece->span_ns, at_ns);
    return at_ns - span + span * i / (piece->count - 1);
}

static inline void add_to_run(struct transit *t, struct link *link, struct piece *origin,
                              struct run *run, uint32_t segment, const struct service *service,
                              uint64_t at_ns) {
    /* Each packet leaves a trace when the trace says so. */
    if (run->count && (link->queue.trace || service->end_ns - run->start_ns > PIECE_SERVICE_NS)) {
        close_run(t, link, origin, run, at_ns);
    }
    if (run->count == 0) {
        *run = (struct run){
            .first = segment, .start_ns = service->start_ns, .first_ns = service->end_ns};
    }
    run->count++;
    run->last_ns = service->end_ns;
}

/* The segment as a frame of its own, with one bit behind the IP header flipped: whoever checks its
 * checksum sees it. NULL without memory. */
static struct frame *damaged(struct transit *t, const struct link *link, struct frame *frame,
                             uint32_t segment, uint64_t nth, uint64_t at_ns) {
    struct frame *copy = pool_segment(&t->pool, frame, segment);
    if (!copy) {
        return NULL;
    }
    uint8_t *data = frame_bytes(copy);
    uint32_t begin = packet_behind_ip(&copy->info, data);
    uint32_t bits = 8 * (copy->info.length - begin);
    if (bits) {
        uint32_t bit = impair_bit(link_seed(t, link, at_ns), frame->info.probe, nth, bits);
        data[begin + bit / 8] ^= (uint8_t)(1u << bit % 8);
        counter_add(&t->corrupted, 1);
    }
    transit_hash(t, copy);
    return copy;
}

struct piece *link_single(struct transit *t, struct link *link, const struct piece *origin,
                          uint32_t segment, uint64_t nth, unsigned fate, uint64_t at_ns) {
    struct frame *frame = origin->frame;
    bool damages = fate & IMPAIR_CORRUPT;
    struct frame *copy = damages ? damaged(t, link, frame, segment, nth, at_ns) : frame;
    struct piece *piece = copy ? pool_piece(&t->pool, copy) : NULL;
    if (damages && copy) {
        pool_release(&t->pool, copy); /* the piece has it */
    }
    if (!piece) {
        counter_add(&t->drop_nobuf, 1);
        return NULL;
    }
    piece->first = (uint16_t)(damages ? 0 : segment);
    piece->count = 1;
    piece_come_as(piece, origin);
    if (fate & IMPAIR_STRAY) {
        bool alone = link->impair.is.reorder_ns == 0;
        piece->order = alone ? PIECE_ALONE : PIECE_LATER;
        uint64_t seed = link_seed(t, link, at_ns);
        piece->deviation = alone ? deviation_alone(link, seed, frame->info.probe, nth) : 0;
        counter_add(&t->reordered, 1);
    }
    return piece;
}

/* What goes on of a segment that was served, and its copy behind it. */
static void impair_segment(struct transit *t, struct link *link, struct piece *origin,
                           struct run *run, uint32_t segment, uint64_t nth, struct service *service,
                           uint64_t at_ns) {
    struct frame *frame = origin->frame;
    uint64_t seed = link_seed(t, link, at_ns);
    unsigned fate = impair_draw(&link->impair, seed, frame->info.probe, nth);
    if (fate & (IMPAIR_CORRUPT | IMPAIR_STRAY)) {
        close_run(t, link, origin, run, at_ns);
        struct piece *piece = link_single(t, link, origin, segment, nth, fate, at_ns);
        if (piece) {
            piece->served_ns = service->end_ns;
            link_append(t, link, piece, at_ns);
        }
    } else {
        add_to_run(t, link, origin, run, segment, service, at_ns);
    }
    if (fate & IMPAIR_DUPLICATE) {
        close_run(t, link, origin, run, at_ns);
        counter_add(&t->duplicated, 1);
        if (queue_segment(t, link, origin, segment, at_ns, service)) {
            add_to_run(t, link, origin, run, segment, service, at_ns);
        }
    }
}

/* A trace counts from the experiment's start, which may have been told meanwhile. */
static void look_at_epoch(const struct transit *t, struct link *link, uint64_t at_ns) {
    uint64_t zero_ns = counter_get(&t->epoch_ns);
    if (link->queue.trace && link->queue.zero_ns != zero_ns) {
        queue_count_from(&link->queue, zero_ns, at_ns);
    }
}

static void offer_segments(struct transit *t, struct link *link, struct piece *piece, uint64_t nth,
                           uint64_t at_ns) {
    struct run run = {0};
    look_at_epoch(t, link, at_ns);
    for (uint32_t i = 0; i < piece->count; i++) {
        struct service service;
        uint32_t segment = piece->first + i;
        uint64_t came_ns = link_arrival(piece, i, at_ns);
        if (!offer_segment(t, link, piece, segment, nth + i, came_ns, &service)) {
            close_run(t, link, piece, &run, at_ns);
        } else if (link->impairs) {
            impair_segment(t, link, piece, &run, segment, nth + i, &service, at_ns);
        } else {
            add_to_run(t, link, piece, &run, segment, &service, at_ns);
        }
    }
    if (run.count) { /* nobody else needs the piece */
        launch_run(t, link, piece, &run, at_ns);
    } else {
        pool_piece_release(&t->pool, piece);
    }
}

/* A piece of one segment, on a bare link. */
static void offer_packet(struct transit *t, struct link *link, struct piece *piece, uint64_t nth,
                         uint64_t at_ns) {
    struct service service;
    if (!offer_segment(t, link, piece, piece->first, nth, at_ns, &service)) {
        pool_piece_release(&t->pool, piece);
        return;
    }
    piece->order = PIECE_IN_ORDER;
    piece->served_ns = service.end_ns;
    piece->span_ns = 0;
    link_append(t, link, piece, at_ns);
}

/* Of the next that is offered: probes have numbers of their own, so that those of programs are the
 * same with and without them. */
static uint64_t next_number(const struct link *link, bool probe) {
    uint64_t probes = counter_get(&link->count.probes);
    return probe ? probes : counter_get(&link->count.pkts) - probes;
}

static inline void count_offered(const struct transit *t, struct link *link,
                                 const struct piece *piece, uint64_t bytes, uint64_t at_ns) {
    capture_at(t, &link->offered, piece, FATE_LEFT, at_ns);
    if (piece->frame->info.probe) {
        counter_add(&link->count.probes, piece->count);
    }
    counter_add(&link->count.pkts, piece->count);
    counter_add(&link->count.bytes, bytes);
}

bool link_refuses(const struct transit *t, const struct link *link, const struct piece *piece,
                  uint64_t at_ns) {
    bool probe = piece->frame->info.probe;
    const struct only *only = class_of(link, piece->frame);
    uint64_t own = link->impair.is.reject;
    uint64_t share = only && only->stated & ONLY_REJECT ? only->reject_ppb : own;
    return share && link->up &&
           impair_rejects(link_seed(t, link, at_ns), probe, next_number(link, probe), share);
}

bool link_exceeded(const struct link *link, const struct piece *piece) {
    return link->mtu && link->up &&
           packet_segment_bytes(&piece->frame->info, piece->first) > link->mtu;
}

void link_refuse(struct transit *t, struct link *link, struct piece *piece, uint64_t at_ns) {
    uint64_t bytes = packet_bytes(&piece->frame->info, piece->first, piece->count);
    count_offered(t, link, piece, bytes, at_ns);
    drop_piece(t, link, piece, at_ns);
}

void link_offer(struct transit *t, struct link *link, struct piece *piece, uint64_t at_ns) {
    uint64_t nth = next_number(link, piece->frame->info.probe);
    uint64_t bytes = packet_bytes(&piece->frame->info, piece->first, piece->count);
    count_offered(t, link, piece, bytes, at_ns);
    if (!link->up) {
        drop_piece(t, link, piece, at_ns);
    } else if (link->bare && link->queue.rate_bps == 0 && link->loss_ppb == 0) {
        link_count_accepted(link, piece->count, bytes);
        piece->served_ns = at_ns;
        piece->order = PIECE_IN_ORDER;
        link_append(t, link, piece, at_ns);
    } else if (link->holds) {
        holding_offer(t, link, piece, nth, at_ns);
        schedule(t, link);
    } else if (link->flows) {
        flows_take_queue(link->flows, &link->queue);
        flows_see(link->flows, link->share, &link->queue, piece->frame, at_ns);
        tell_queue(link);
        offer_segments(t, link, piece, nth, at_ns);
        flows_give_queue(link->flows, &link->queue);
    } else if (link->bare && piece->count == 1) {
        offer_packet(t, link, piece, nth, at_ns);
    } else {
        offer_segments(t, link, piece, nth, at_ns);
    }
}

static inline struct piece *detach_head(struct transit *t, struct link *link) {
    struct piece *piece = first(link);
    struct lane *lane = lane_of(link, piece);
    lane->head = piece->next;
    *(lane->head ? &lane->head->prev : &lane->tail) = NULL;
    schedule(t, link);
    counter_set(&t->in_flight, counter_get(&t->in_flight) - 1);
    return piece;
}

struct piece *link_take(struct transit *t, struct link *link) {
    uint64_t sends_ns;
    if (sends_next(link, &sends_ns)) {
        holding_send(t, link, sends_ns, sends_ns);
        schedule(t, link);
        return NULL;
    }
    struct piece *piece = detach_head(t, link);
    record(t, link, piece, FATE_LEFT, piece->due_ns);
    counter_add(&link->count.out_pkts, piece->count);
    counter_add(&link->count.out_bytes,
                packet_bytes(&piece->frame->info, piece->first, piece->count));
    return piece;
}

static void add_waiting(const struct lane *lane, uint64_t at_ns, uint64_t *packets,
                        uint64_t *bytes) {
    for (const struct piece *piece = lane->head; piece; piece = piece->next) {
        if (piece->served_ns > at_ns) {
            *packets += piece->count;
            *bytes += packet_bytes(&piece->frame->info, piece->first, piece->count);
        }
    }
}

/* What waits in its queue: of a neck's link its own part. */
static void waiting(const struct link *link, uint64_t at_ns, uint64_t *packets, uint64_t *bytes) {
    if (!is_of_neck(link)) {
        *bytes = link_backlog(&link->count, at_ns, packets);
        return;
    }
    *packets = *bytes = 0;
    add_waiting(&link->usual, at_ns, packets, bytes);
    add_waiting(&link->apart, at_ns, packets, bytes);
}

/* Everything in the link is lost. A neck goes on as if it had been sent. */
static void flush(struct transit *t, struct link *link, uint64_t at_ns) {
    uint64_t packets, bytes;
    waiting(link, at_ns, &packets, &bytes);
    /* What waited never got through the queue. */
    link_count_accepted(link, -packets, -bytes);
    for (struct piece *piece; (piece = holding_remove(t, link));) {
        drop_piece(t, link, piece, at_ns);
    }
    if (link->aqm) {
        aqm_reset(link->aqm, at_ns);
    }
    while (first(link)) {
        drop_piece(t, link, detach_head(t, link), at_ns);
    }
    if (is_of_neck(link)) {
        flows_own_gone(link->share, at_ns);
    }
    link->usual.last_due_ns = link->apart.last_due_ns = 0;
    link->queue.free_ns = min_u64(link->queue.free_ns, at_ns);
    link->queue.left = 0;
    link->queue.position = 0;
}

/* Takes everything out of the lanes: in the order of being served, as far as each lane is. */
static struct piece *take_all(struct link *link) {
    struct piece *usual = link->usual.head, *apart = link->apart.head;
    struct piece *all = NULL, **end = &all;
    while (usual && apart) {
        bool tie = apart->served_ns == usual->served_ns;
        bool next = tie ? apart->seq < usual->seq : apart->served_ns < usual->served_ns;
        struct piece **from = next ? &apart : &usual;
        *end = *from;
        end = &(*end)->next;
        *from = *end;
    }
    *end = usual ? usual : apart;
    link->usual.head = link->usual.tail = link->apart.head = link->apart.tail = NULL;
    return all;
}

static void put_all(struct link *link, struct piece *piece) {
    while (piece) {
        struct piece *next = piece->next;
        insert(lane_of(link, piece), piece);
        piece = next;
    }
}

/* The segments of a piece that waits, without those `sent` bytes of it that have left. */
static void requeue_piece(struct link *link, struct piece *piece, uint64_t *sent, uint64_t at_ns) {
    struct service service = {at_ns, at_ns};
    for (uint32_t i = piece->first; i < (uint32_t)piece->first + piece->count; i++) {
        uint64_t bytes = packet_segment_bytes(&piece->frame->info, i);
        uint64_t gone = min_u64(*sent, bytes - 1);
        *sent -= gone;
        queue_offer(&link->queue, at_ns, (uint32_t)(bytes - gone), &service);
    }
    piece->served_ns = service.end_ns;
    piece->span_ns = 0;
}

/* What waited behind another trace, or a rate, waits behind this one: of the first packet the rest
 * that has not left. */
static void follow(struct transit *t, struct link *link, const struct trace *trace,
                   uint64_t at_ns) {
    uint64_t packets, waiting = 0;
    uint64_t left = link_backlog(&link->count, at_ns, &packets);
    const uint64_t limit = link->queue.limit_bytes;
    uint64_t extra = link->queue.trace ? (uint64_t)trace_work(link->queue.trace, 0, 1) : 0;
    queue_follow(&link->queue, trace && trace_serves(trace) ? trace : NULL);
    look_at_epoch(t, link, at_ns);
    link->queue.limit_bytes = UINT32_MAX; /* what is in it stays */
    struct piece *all = take_all(link);
    for (const struct piece *piece = all; piece; piece = piece->next) {
        if (piece->served_ns > at_ns) {
            waiting += packet_bytes(&piece->frame->info, piece->first, piece->count);
            left -= min_u64(left, extra * piece->count);
        }
    }
    uint64_t sent = waiting > left ? waiting - left : 0;
    for (struct piece *piece = all; piece; piece = piece->next) {
        if (piece->served_ns > at_ns) {
            requeue_piece(link, piece, &sent, at_ns);
        }
    }
    put_all(link, all);
    link->queue.limit_bytes = limit;
}

/* A piece that travels already keeps its time. Those of its class that come later come behind it,
 * but what came as of a class that has ended holds nobody up. */
static void keep_order(struct link *link, const struct piece *piece) {
    if (piece->order != PIECE_IN_ORDER) {
        return;
    }
    struct lane *lane = link_lane(link, piece->frame);
    if (lane == &link->apart || !piece->apart) {
        lane->last_due_ns = max_u64(lane->last_due_ns, piece->due_ns);
    }
}

/* Gives what waits at `at_ns` its new times; what travels already keeps its own. */
static void retime(struct transit *t, struct link *link, uint64_t old_bps, uint64_t at_ns) {
    uint64_t new_bps = queue_pace(&link->queue);
    if (is_of_neck(link)) {
        flows_own_retimed(link->share, at_ns, old_bps, new_bps);
    }
    link->usual.last_due_ns = link->apart.last_due_ns = 0;
    struct piece *all = take_all(link);
    for (struct piece *piece = all; piece; piece = piece->next) {
        if (piece->served_ns <= at_ns) {
            keep_order(link, piece);
            continue;
        }
        uint64_t served = queue_retimed(piece->served_ns, at_ns, old_bps, new_bps);
        uint64_t wait = piece->served_ns - at_ns;
        /* The segments are spread over a time that stretches as their service does. */
        piece->span_ns = (uint32_t)min_u64(
            (uint64_t)((u128)piece->span_ns * (served - at_ns) / wait), UINT32_MAX);
        piece->served_ns = served;
        link_set_due(t, link, piece, at_ns);
    }
    put_all(link, all);
    const struct piece *head = first(link);
    if (head) {
        heap_put(&t->heap, &link->waiting, head->due_ns, head->seq);
    }
}

static void change_impairments(struct link *link, const struct link_config *config) {
    const struct impairments *from = &config->impairments;
    struct impairments *to = &link->impair.is;
    const struct {
        uint32_t field;
        uint64_t *to;
        uint64_t value;
    } values[] = {{LINK_BURST, &to->burst_milli, from->burst_milli},
                  {LINK_BURST_PASS, &to->burst_pass, from->burst_pass},
                  {LINK_GAP_LOSS, &to->gap_loss, from->gap_loss},
                  {LINK_DUPLICATE, &to->duplicate, from->duplicate},
                  {LINK_CORRUPT, &to->corrupt, from->corrupt},
                  {LINK_REORDER, &to->reorder, from->reorder},
                  {LINK_BY, &to->reorder_ns, from->reorder_ns},
                  {LINK_REJECT, &to->reject, from->reject}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        *values[i].to = config->fields & values[i].field ? values[i].value : *values[i].to;
    }
    const uint32_t losses = LINK_LOSS | LINK_BURST | LINK_BURST_PASS | LINK_GAP_LOSS;
    impair_prepare(&link->impair, link->loss_ppb, config->fields & losses);
    bool refuses = link->only && link->only->stated & ONLY_REJECT;
    link->obstructs = link->mtu || link->impair.is.reject || refuses;
    link->impairs = link->impair.any;
}

/* Where the link counts its flows from now on, and which its queue is. */
static void join(struct link *link, const struct link_config *config) {
    if (!config->flows || link->flows) {
        return;
    }
    link->flows = config->flows;
    link->share = config->share;
    link->share->one = (struct flow_rate){1, link->queue.rate_bps, link->queue.limit_bytes};
    link->share->salt = link->flows->is_neck ? link->seed : 0;
    flows_join(link->flows, link->share);
}

static void change_queue(struct link *link, const struct link_config *config, uint64_t at_ns) {
    uint32_t fields = config->fields;
    struct queue *q = &link->queue;
    struct flow_share *share = link->share;
    struct flow_rate one = {1, q->rate_bps, q->limit_bytes};
    one = share ? share->one : one;
    one.rate_bps = fields & LINK_RATE ? config->rate_bps : one.rate_bps;
    one.queue_bytes = fields & LINK_QUEUE ? config->queue_bytes : one.queue_bytes;
    if (share) {
        static const struct flow_rates none;
        share->one = one;
        share->rtt_ns = fields & LINK_RTT ? config->rtt_ns : share->rtt_ns;
        if (fields & LINK_FLOWS) {
            share->more = config->flow_rates ? *config->flow_rates : none;
        }
        flows_apply(link->flows, q, at_ns);
        return;
    }
    if (fields & LINK_RATE) {
        queue_set_rate(q, at_ns, one.rate_bps);
    }
    queue_set_limit(q, at_ns, one.queue_bytes);
}

/* Of these packets' times are made. */
enum {
    TIMES = LINK_RATE | LINK_CAP | LINK_DELAY | LINK_JITTER | LINK_DIST | LINK_TRACE | LINK_ONLY
};

void link_change(struct transit *t, struct link *link, const struct link_config *config,
                 uint64_t at_ns) {
    uint64_t old_bps = queue_pace(&link->queue);
    uint32_t fields = config->fields;
    if (fields & LINK_LOSS) {
        link->loss_ppb = (uint32_t)config->loss_ppb;
    }
    link->delay_ns = fields & LINK_DELAY ? config->delay_ns : link->delay_ns;
    link->jitter_ns = fields & LINK_JITTER ? config->jitter_ns : link->jitter_ns;
    if (fields & LINK_DIST) {
        link->dist = config->dist;
        link->measured = config->measured;
    }
    link->mtu = fields & LINK_MTU ? (uint32_t)config->mtu : link->mtu;
    link->up = fields & LINK_UP ? config->up : link->up;
    link->only = fields & LINK_ONLY ? config->only : link->only;
    if (fields & (LINK_LOSS | LINK_OPTIONAL)) {
        change_impairments(link, config);
    }
    if (!link->up) {
        flush(t, link, at_ns);
    }
    join(link, config);
    flows_take_queue(link->flows, &link->queue);
    if (fields & LINK_CAP) {
        link->queue.capacity_bps = config->capacity_bps;
    }
    change_queue(link, config, at_ns);
    flows_give_queue(link->flows, &link->queue);
    if (fields & LINK_TRACE && link->trace != config->trace) {
        link->trace = config->trace;
        follow(t, link, config->trace, at_ns);
        old_bps = queue_pace(&link->queue);
    }
    link->bare = !link->impairs && !link->trace && !link->only;
    if (fields & TIMES) {
        retime(t, link, old_bps, at_ns);
    }
    holding_change(t, link, config, at_ns);
    tell_queue(link);
    if (link->aqm) {
        schedule(t, link);
    }
}
