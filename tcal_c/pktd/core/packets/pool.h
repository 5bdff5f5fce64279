/* Memory of packets in flight: frames of three sizes and descriptors, never returned, bounded. */
#ifndef PKTD_POOL_H
#define PKTD_POOL_H

#include "pktd/core/structures/counter.h"
#include "packet.h"

struct pair;

#define VNET_BYTES sizeof(struct virtio_net_hdr)

/* A frame as it was read: virtio header, Ethernet header, packet. Shared by its pieces. */
struct frame {
    struct frame *next; /* of those that are free, or on the same line */
    struct pair *pair;
    struct frame *audience; /* whose bytes list whom it is for (core/many.c); NULL: `dest` */
    uint32_t references;
    uint16_t source; /* node */
    uint16_t dest;   /* node */
    uint8_t size_class;
    bool is_whole_frame; /* on links without addresses (core/switching.c) */
    uint64_t contents;   /* the hash of its bytes, where links have digests */
    uint64_t due_ns;     /* came over a line: when it is there */
    size_t bytes;        /* the same: after the virtio header */
    struct packet_info info;
    _Alignas(8) uint8_t data[];
};

/* Segments [first, first + count) of a frame on their way over a link. */
struct piece {
    struct piece *next; /* of those on a link, and the one before */
    struct piece *prev;
    struct frame *frame;
    uint64_t due_ns;    /* leaves the link; where its queue holds it: when it came */
    uint64_t served_ns; /* leaves, or left, the link's queue */
    uint64_t seq;       /* breaks ties of due_ns */
    uint16_t first;
    uint16_t count;
    uint32_t span_ns;  /* how long before due_ns the first segment was through */
    int32_t deviation; /* PIECE_ALONE: draw_alone */
    uint8_t hops;      /* links passed */
    uint8_t aged;      /* what bridges have taken from its TTL; the frame's header has all of it */
    uint8_t order;     /* enum piece_order, on the present link */
    bool marked : 1;   /* congestion experienced, which its frame does not say yet */
    bool apart : 1;    /* timed as the link's further class is */
};

enum piece_order { PIECE_IN_ORDER, PIECE_LATER, PIECE_ALONE };
_Static_assert(sizeof(struct piece) == 64, "a line of the cache");

enum { POOL_CLASSES = 3 };

struct pool {
    struct frame *frames[POOL_CLASSES];
    struct piece *pieces;
    uint8_t *slab;
    size_t slab_left;
    counter bytes; /* taken from the system */
    uint64_t limit_bytes;
};

void pool_init(struct pool *pool, uint64_t limit_bytes);
void pool_destroy(struct pool *pool);

/* Room for a virtio header and a frame of `frame_bytes`; NULL when the limit is reached. */
struct frame *pool_frame(struct pool *pool, size_t frame_bytes);
void pool_release(struct pool *pool, struct frame *frame);

/* It is for those that the other one is for. */
void frame_send_as(struct frame *frame, const struct frame *other);
/* Room that is never given back, at most POOL_ROOM_LIMIT; NULL as above. */
#define POOL_ROOM_LIMIT ((2u << 20) - 64)
void *pool_room(struct pool *pool, size_t bytes);

/* One segment of a frame as a frame of its own, whole (packet_copy), on the same way; NULL as
 * above. What it hashes to is the caller's. */
struct frame *pool_segment(struct pool *pool, const struct frame *frame, uint32_t segment);

struct piece *pool_piece(struct pool *pool, struct frame *frame); /* takes a reference */
void pool_piece_release(struct pool *pool, struct piece *piece);

/* What was cut of the piece's frame loses what bridges have taken from its TTL. */
void piece_age(const struct piece *piece, struct packet_piece *cut);

/* Of a piece that is made of another one: it has passed the same links. */
static inline void piece_come_as(struct piece *piece, const struct piece *origin) {
    piece->hops = origin->hops;
    piece->aged = origin->aged;
}

static inline const uint8_t *frame_content(const struct frame *frame) {
    return frame->data + VNET_BYTES;
}

static inline uint8_t *frame_bytes(struct frame *frame) {
    return frame->data + VNET_BYTES;
}

#endif
