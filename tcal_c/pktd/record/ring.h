/* Packets on their way from the data thread to the thread that writes them to files. */
#ifndef PKTD_RING_H
#define PKTD_RING_H

#include "digest.h"

#include <stdatomic.h>
#include <stdbool.h>

#include <linux/virtio_net.h>
#include <sys/uio.h>

/* Where packets of one link direction go. */
struct captured {
    _Atomic uint64_t lost; /* segments for which there was no room */
    bool programs;         /* only packets of programs: no probes */
};

/* What is known of a piece beside its bytes, which follow in the ring. */
struct ring_entry {
    uint32_t bytes;       /* of the entry and its frame, rounded up; 0: the next is at the start */
    uint32_t frame_bytes; /* Ethernet frame */
    struct captured *to;
    uint64_t at_ns;   /* when its last segment left the link or was lost */
    uint32_t span_ns; /* how long before that the first one did */
    uint16_t segments;
    uint8_t fate; /* enum fate */
    struct virtio_net_hdr vnet;
};

/* One thread puts, one takes. What is put in is taken when a quarter of the ring is full, or when
 * somebody asks for it. */
struct ring {
    uint8_t *memory;
    uint64_t size;
    bool waits;           /* for room, instead of losing what finds none */
    int wake;             /* eventfd: there is something to take */
    int room;             /* eventfd: there is room again */
    _Atomic uint64_t end; /* bytes ever put in, and taken */
    _Atomic uint64_t begin;
    _Atomic bool full;   /* somebody waits for room */
    _Atomic bool asleep; /* the taker waits for `wake` */
    _Atomic uint64_t lost;
};

/* `bytes` is rounded up to a power of two, a MiB at least. 0 or -errno. */
int ring_init(struct ring *ring, uint64_t bytes, bool waits);

/* Takes its memory, unless it has it: before anything is put in. 0 or -errno. */
int ring_make_room(struct ring *ring);

void ring_destroy(struct ring *ring);

/* Puts one piece in, or counts it as lost. `io` is the Ethernet frame in up to two parts. */
void ring_put(struct ring *ring, const struct ring_entry *entry, const struct iovec *io, int count);

/* The oldest entry, with its frame behind it; NULL when there is none. It stays until ring_next. */
const struct ring_entry *ring_first(struct ring *ring);
void ring_next(struct ring *ring);

/* The taker sleeps until a quarter is full, ring_wake is called or `wait_ms` are over (-1: never).
 */
void ring_sleep(struct ring *ring, int wait_ms);

/* Any thread: ends the taker's sleep, or its next one. */
void ring_wake(struct ring *ring);

#endif
