/* Frames of a packet socket in memory that is shared with the kernel (packet(7), PACKET_RX_RING).
 */
#ifndef PKTD_PACKET_RING_H
#define PKTD_PACKET_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/if_packet.h>

#define PACKET_SLOT_BYTES 2048u

struct packet_ring {
    uint8_t *memory; /* NULL: frames are read with recvmsg */
    uint32_t slots;
    uint32_t next; /* the slot that is filled next, or has been */
    _Atomic uint64_t
        cut; /* frames that could not be taken: too large for their slot and nowhere else */
};

/* What the kernel says of a frame. `bytes` of it stand at `data`, the virtio header first, until
 * packet_ring_done. `is_whole`: if not, the socket has all of it in its own queue. */
struct packet_slot {
    const uint8_t *data;
    size_t bytes;
    uint32_t seconds; /* CLOCK_REALTIME when it came */
    uint32_t nanoseconds;
    bool is_whole;
};

/* Before the socket is bound: 0 or -errno, then frames are read with recvmsg. */
int packet_ring_open(struct packet_ring *ring, int fd);
void packet_ring_close(struct packet_ring *ring);

/* The oldest frame; false when there is none. Frames that were cut off are left out and counted. */
bool packet_ring_first(struct packet_ring *ring, struct packet_slot *slot);
void packet_ring_done(struct packet_ring *ring);

#endif
