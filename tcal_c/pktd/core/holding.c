/* The life of a packet in a queue that holds it.
 *
 * On other links the times of a packet are computed when it comes (link.c). Here segments wait one
 * by one, and the next is chosen when the one before has been sent. From then on it is as on other
 * links: it has been served at a known time, and takes its delay. Neighbours of one frame that
 * leave one behind the other are one piece again, up to PIECE_SERVICE_NS.
 *
 * Segments of a piece come before it is there (link_arrival), so what is sent until then is sent in
 * the past of the engine: only times before `at_ns` come of that, and a packet is due at `at_ns` at
 * the earliest.
 */
#include "link.h"

#include "pktd/core/packets/ecn.h"

static void count_held(struct link *link) {
    counter_set(&link->count.held_pkts, link->aqm->packets);
    counter_set(&link->count.held_bytes, link->aqm->bytes);
}

/* What the queue did not accept, or does not send after all. */
static void drop_lost(struct transit *t, struct link *link, uint64_t at_ns) {
    for (struct piece *piece; (piece = aqm_lost(link->aqm));) {
        link_lose(t, link, piece, piece->first, FATE_QUEUE, at_ns);
        link_count_accepted(link, -1ull, -(uint64_t)piece_bytes(piece));
        counter_set(&t->in_flight, counter_get(&t->in_flight) - 1);
        pool_piece_release(&t->pool, piece);
    }
}

/* Gives a piece that is marked a frame that says so; false without memory. */
static bool write_mark(struct transit *t, struct piece *piece) {
    struct frame *frame = piece->frame;
    piece->marked = false;
    counter_add(&t->marked, 1);
    if (ecn_marked(&frame->info, frame_content(frame))) {
        return true;
    }
    struct frame *copy = pool_segment(&t->pool, frame, piece->first);
    if (!copy) {
        return false;
    }
    ecn_mark(&copy->info, frame_bytes(copy));
    transit_hash(t, copy);
    pool_release(&t->pool, frame);
    piece->frame = copy;
    piece->first = 0;
    return true;
}

/* Whether the packet becomes part of the piece that left the queue just before it. */
static bool joins(struct link *link, const struct piece *piece, uint64_t begin_ns,
                  uint64_t served_ns) {
    const struct piece *last = link_lane(link, piece->frame)->tail;
    if (!last || last->frame != piece->frame || last->first + last->count != piece->first ||
        last->aged != piece->aged || last->order != PIECE_IN_ORDER ||
        piece->order != PIECE_IN_ORDER) {
        return false;
    }
    uint64_t first_ns = last->served_ns - last->span_ns;
    return served_ns - first_ns + (served_ns - begin_ns) <= PIECE_SERVICE_NS;
}

/* The packet has been sent at `through_ns`, and begins to travel. */
static void launch(struct transit *t, struct link *link, struct piece *piece, uint64_t begin_ns,
                   uint64_t through_ns, uint64_t at_ns) {
    uint64_t served_ns = max_u64(through_ns, at_ns);
    if (joins(link, piece, begin_ns, served_ns)) {
        struct piece *last = link_lane(link, piece->frame)->tail;
        last->count++;
        last->span_ns += (uint32_t)(served_ns - last->served_ns);
        last->served_ns = served_ns;
        link_set_due(t, link, last, at_ns);
        pool_piece_release(&t->pool, piece);
        return;
    }
    piece->served_ns = served_ns;
    piece->span_ns = (uint32_t)min_u64(served_ns - through_ns, UINT32_MAX);
    link_append(t, link, piece, at_ns);
}

static void send(struct transit *t, struct link *link, struct piece *piece, uint64_t begin_ns,
                 uint64_t at_ns) {
    uint32_t bytes = piece_bytes(piece);
    counter_set(&t->in_flight, counter_get(&t->in_flight) - 1);
    uint64_t through_ns = queue_send(&link->queue, begin_ns, bytes);
    counter_set(&link->count.busy_until_ns, link->queue.free_ns);
    counter_set(&link->count.burst_pkts, 1);
    counter_set(&link->count.burst_bytes, bytes);
    if (piece->marked && !write_mark(t, piece)) {
        counter_add(&t->drop_nobuf, 1);
        pool_piece_release(&t->pool, piece);
        return;
    }
    launch(t, link, piece, begin_ns, through_ns, at_ns);
}

void holding_send(struct transit *t, struct link *link, uint64_t until_ns, uint64_t at_ns) {
    for (uint64_t begin_ns; (begin_ns = holding_next(link)) <= until_ns;) {
        if (begin_ns == TIME_NEVER) {
            return;
        }
        struct piece *piece = aqm_take(link->aqm, begin_ns);
        drop_lost(t, link, begin_ns);
        count_held(link);
        if (piece) {
            send(t, link, piece, begin_ns, at_ns);
        }
    }
}

/* The segment, or a copy of it, comes at `came_ns`. */
static void hold(struct transit *t, struct link *link, struct piece *piece, uint64_t nth,
                 uint64_t came_ns, uint64_t at_ns) {
    if (!piece) {
        return;
    }
    const struct queue *queue = &link->queue;
    uint64_t sending = queue_backlog(queue->rate_bps, queue->free_ns, came_ns);
    const struct aqm_sending now = {queue->rate_bps, sending, queue->free_ns};
    counter_add(&t->in_flight, 1);
    link_count_accepted(link, 1, piece_bytes(piece));
    link->aqm->seed = link_seed(t, link, came_ns);
    aqm_put(link->aqm, piece, nth, &now, came_ns);
    drop_lost(t, link, came_ns);
    count_held(link);
    holding_send(t, link, came_ns, at_ns);
}

void holding_offer(struct transit *t, struct link *link, struct piece *piece, uint64_t nth,
                   uint64_t at_ns) {
    struct frame *frame = piece->frame;
    for (uint32_t i = 0; i < piece->count; i++) {
        uint64_t came_ns = link_arrival(piece, i, at_ns);
        uint32_t segment = piece->first + i;
        bool probe = frame->info.probe;
        if (!link->aqm) {
            counter_add(&t->drop_nobuf, 1);
            continue;
        }
        holding_send(t, link, came_ns, at_ns);
        if (link_draws_loss(t, link, piece, segment, nth + i, came_ns)) {
            continue;
        }
        uint64_t seed = link_seed(t, link, came_ns);
        unsigned fate = link->impairs ? impair_draw(&link->impair, seed, probe, nth + i) : 0;
        hold(t, link, link_single(t, link, piece, segment, nth + i, fate, came_ns), nth + i,
             came_ns, at_ns);
        if (fate & IMPAIR_DUPLICATE) {
            counter_add(&t->duplicated, 1);
            hold(t, link, link_single(t, link, piece, segment, nth + i, 0, came_ns), nth + i,
                 came_ns, at_ns);
        }
    }
    if (link->aqm) {
        holding_send(t, link, at_ns, at_ns);
    }
    pool_piece_release(&t->pool, piece);
}

struct piece *holding_remove(struct transit *t, struct link *link) {
    struct piece *piece = link->aqm ? aqm_remove(link->aqm) : NULL;
    if (piece) {
        counter_set(&t->in_flight, counter_get(&t->in_flight) - 1);
        count_held(link);
    }
    return piece;
}

/* What it holds is lost, since there is no memory, and so is all that comes. */
static void give_up(struct transit *t, struct link *link) {
    for (struct piece *piece; (piece = holding_remove(t, link));) {
        counter_add(&t->drop_nobuf, 1);
        pool_piece_release(&t->pool, piece);
    }
    link->aqm = NULL;
}

/* Takes another discipline or other parameters. Memory for them is kept while pktd runs. */
static void change_aqm(struct transit *t, struct link *link, const struct aqm_config *config,
                       uint64_t at_ns) {
    struct aqm *aqm = link->aqm;
    if (!aqm && (aqm = pool_room(&t->pool, sizeof *aqm))) {
        *aqm = (struct aqm){.salt = link->seed};
        link->aqm = aqm;
    }
    struct fq_flow *flow = aqm ? aqm->flow : NULL;
    if (aqm && config->flows > aqm->flow_room) {
        flow = pool_room(&t->pool, config->flows * sizeof *flow);
    }
    if (!aqm || (config->flows && !flow)) {
        give_up(t, link);
        return;
    }
    aqm->flow_room = (uint32_t)max_u64(aqm->flow_room, config->flows);
    aqm->salt = link->seed;
    aqm_change(aqm, config, flow, at_ns);
}

/* The queue holds nothing any more: what it held is served in its order, as on other links. */
static void let_go(struct transit *t, struct link *link, uint64_t at_ns) {
    for (struct piece *piece; (piece = holding_remove(t, link));) {
        uint64_t begin_ns = max_u64(link->queue.free_ns, at_ns);
        uint32_t bytes = piece_bytes(piece);
        piece->served_ns = queue_send(&link->queue, begin_ns, bytes);
        counter_add(&link->count.burst_pkts, 1);
        counter_add(&link->count.burst_bytes, bytes);
        link_append(t, link, piece, at_ns);
    }
}

void holding_change(struct transit *t, struct link *link, const struct link_config *config,
                    uint64_t at_ns) {
    if (config->fields & LINK_PKTS) {
        link->packets = (uint32_t)config->packets;
    }
    bool another = config->fields & LINK_AQM && (config->aqm.kind || link->aqm);
    if (another || (link->packets && !link->holds)) {
        const struct aqm_config *is = link->aqm ? &link->aqm->is : &config->aqm;
        change_aqm(t, link, another ? &config->aqm : is, at_ns);
    }
    if (config->fields & LINK_AQM) {
        link->managed = config->aqm.kind != AQM_NONE;
    }
    link->holds = link->packets || link->managed;
    if (!link->aqm) {
        return;
    }
    aqm_limit(link->aqm, link->queue.limit_bytes, link->packets);
    if (link->holds) {
        holding_send(t, link, at_ns, at_ns); /* where there is no rate any more */
    } else {
        let_go(t, link, at_ns);
    }
}
