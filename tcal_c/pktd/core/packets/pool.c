/* Packet memory for one thread.
 *
 * Free lists per size class over slabs of 2 MiB from mmap; last in, first out, so that what is
 * reused is still in the cache. Nothing goes back to the system and nothing takes a lock: the data
 * thread must not meet the control thread in malloc. Slabs are chained in their first word so that
 * they can be unmapped at the end.
 */
#include "pool.h"

#include <string.h>
#include <sys/mman.h>

#define SLAB_BYTES (2u << 20)

static const size_t class_bytes[POOL_CLASSES] = {2304, 17u << 10, 69u << 10};

void pool_init(struct pool *pool, uint64_t limit_bytes) {
    *pool = (struct pool){.limit_bytes = limit_bytes};
}

void pool_destroy(struct pool *pool) {
    uint8_t *slab = pool->slab;
    while (slab) {
        uint8_t *next = *(uint8_t **)(void *)slab;
        munmap(slab, SLAB_BYTES);
        slab = next;
    }
    *pool = (struct pool){0};
}

static bool new_slab(struct pool *pool) {
    if (counter_get(&pool->bytes) + SLAB_BYTES > pool->limit_bytes) {
        return false;
    }
    void *slab = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab == MAP_FAILED) {
        return false;
    }
    *(uint8_t **)slab = pool->slab;
    pool->slab = slab;
    pool->slab_left = POOL_ROOM_LIMIT;
    counter_add(&pool->bytes, SLAB_BYTES);
    return true;
}

/* The unused end of a slab that is too short is given up: under 70 KiB of 2 MiB. */
void *pool_room(struct pool *pool, size_t bytes) {
    bytes = (bytes + 63u) & ~(size_t)63u;
    if (pool->slab_left < bytes && !new_slab(pool)) {
        return NULL;
    }
    pool->slab_left -= bytes;
    return pool->slab + 64 + pool->slab_left;
}

struct frame *pool_frame(struct pool *pool, size_t frame_bytes) {
    size_t need = sizeof(struct frame) + VNET_BYTES + frame_bytes;
    int class = 0;
    while (class < POOL_CLASSES && class_bytes[class] < need) {
        class ++;
    }
    if (class == POOL_CLASSES) {
        return NULL;
    }
    struct frame *frame = pool->frames[class];
    if (frame) {
        pool->frames[class] = frame->next;
    } else {
        frame = pool_room(pool, class_bytes[class]);
        if (!frame) {
            return NULL;
        }
    }
    frame->references = 1;
    frame->audience = NULL;
    frame->is_whole_frame = false;
    frame->size_class = (uint8_t) class;
    return frame;
}

void pool_release(struct pool *pool, struct frame *frame) {
    if (--frame->references == 0) {
        if (frame->audience) {
            pool_release(pool, frame->audience);
        }
        frame->next = pool->frames[frame->size_class];
        pool->frames[frame->size_class] = frame;
    }
}

void frame_send_as(struct frame *frame, const struct frame *other) {
    frame->pair = other->pair;
    frame->source = other->source;
    frame->dest = other->dest;
    frame->audience = other->audience;
    frame->is_whole_frame = other->is_whole_frame;
    if (frame->audience) {
        frame->audience->references++;
    }
}

struct frame *pool_segment(struct pool *pool, const struct frame *frame, uint32_t segment) {
    struct frame *copy = pool_frame(pool, ETH_BYTES + packet_segment_bytes(&frame->info, segment));
    if (copy) {
        packet_copy(&frame->info, frame_content(frame), segment, frame_bytes(copy), &copy->info);
        frame_send_as(copy, frame);
    }
    return copy;
}

struct piece *pool_piece(struct pool *pool, struct frame *frame) {
    struct piece *piece = pool->pieces;
    if (piece) {
        pool->pieces = piece->next;
    } else {
        piece = pool_room(pool, sizeof *piece);
        if (!piece) {
            return NULL;
        }
    }
    *piece = (struct piece){.frame = frame};
    frame->references++;
    return piece;
}

void piece_age(const struct piece *piece, struct packet_piece *cut) {
    const struct frame *frame = piece->frame;
    if (piece->aged == 0) {
        return;
    }
    if (cut->header_bytes == 0) {
        cut->header_bytes = ETH_BYTES + (frame->info.version == 4 ? 20 : 40);
        memcpy(cut->header, frame_content(frame), cut->header_bytes);
        cut->payload_offset = cut->header_bytes;
        cut->payload_bytes -= cut->header_bytes;
    }
    packet_age(cut->header, piece->aged);
}

void pool_piece_release(struct pool *pool, struct piece *piece) {
    pool_release(pool, piece->frame);
    piece->next = pool->pieces;
    pool->pieces = piece;
}
