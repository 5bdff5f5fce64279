/* Slots of 2 KiB, which a packet of 1,500 bytes fits in; of a larger one, a super-packet, the slot
 * only tells that all of it is in the socket's queue (PACKET_COPY_THRESH), in its place among the
 * others. So the ring need not have 64 KiB for each packet, an ordinary user gets room for
 * thousands of small packets where SO_RCVBUF allows 277, and they cost no system call.
 *
 * TPACKET_V2, not V3: V3 hands frames over in blocks, when one is full or after a whole
 * millisecond at the earliest, and a packet on a link without delay would wait for that.
 */
#include "packet_ring.h"

#include "common/limits.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/virtio_net.h>

#define BLOCK_BYTES (64u << 10)
#define SLOTS_MOST 8192u
#define SLOTS_LEAST 256u
#define SHARE_OF_MEMORY 16u /* that all rings may take, and of the rest of that each one */
#define SHARE_OF_REST 8u

static _Atomic uint64_t taken_bytes; /* by all rings */

/* As many as the memory allows that the rings before have left; 0: none. */
static uint32_t choose_slots(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || size <= 0) {
        return 0;
    }
    uint64_t all = (uint64_t)pages * (uint64_t)size / SHARE_OF_MEMORY;
    uint64_t taken = atomic_load_explicit(&taken_bytes, memory_order_relaxed);
    uint64_t may = taken < all ? (all - taken) / SHARE_OF_REST : 0;
    uint32_t slots = SLOTS_MOST;
    while (slots >= SLOTS_LEAST && (uint64_t)slots * PACKET_SLOT_BYTES > may) {
        slots /= 2;
    }
    return slots >= SLOTS_LEAST ? slots : 0;
}

static int set(int fd, int option, const void *value, socklen_t size) {
    return setsockopt(fd, SOL_PACKET, option, value, size) ? -errno : 0;
}

int packet_ring_open(struct packet_ring *ring, int fd) {
    int version = TPACKET_V2;
    int copies = 1;
    uint32_t slots = choose_slots();
    struct tpacket_req request = {.tp_block_size = BLOCK_BYTES,
                                  .tp_block_nr = slots / (BLOCK_BYTES / PACKET_SLOT_BYTES),
                                  .tp_frame_size = PACKET_SLOT_BYTES,
                                  .tp_frame_nr = slots};
    int error = slots ? set(fd, PACKET_VERSION, &version, sizeof version) : -ENOMEM;
    error = error ? error : set(fd, PACKET_COPY_THRESH, &copies, sizeof copies);
    error = error ? error : set(fd, PACKET_RX_RING, &request, sizeof request);
    if (error) {
        return error;
    }
    size_t bytes = (size_t)slots * PACKET_SLOT_BYTES;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        error = -errno;
        request = (struct tpacket_req){0};
        set(fd, PACKET_RX_RING, &request, sizeof request); /* frames go to the queue again */
        return error;
    }
    atomic_fetch_add_explicit(&taken_bytes, bytes, memory_order_relaxed);
    ring->memory = memory;
    ring->slots = slots;
    ring->next = 0;
    return 0;
}

void packet_ring_close(struct packet_ring *ring) {
    if (ring->memory) {
        size_t bytes = (size_t)ring->slots * PACKET_SLOT_BYTES;
        munmap(ring->memory, bytes);
        atomic_fetch_sub_explicit(&taken_bytes, bytes, memory_order_relaxed);
        ring->memory = NULL;
    }
}

static struct tpacket2_hdr *current(const struct packet_ring *ring) {
    return (struct tpacket2_hdr *)(void *)(ring->memory + (size_t)ring->next * PACKET_SLOT_BYTES);
}

void packet_ring_done(struct packet_ring *ring) {
    __atomic_store_n(&current(ring)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    ring->next = (ring->next + 1) % ring->slots;
}

bool packet_ring_first(struct packet_ring *ring, struct packet_slot *slot) {
    for (;;) {
        const struct tpacket2_hdr *header = current(ring);
        uint32_t status = __atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE);
        if (!(status & TP_STATUS_USER)) {
            return false;
        }
        bool is_whole = header->tp_snaplen >= header->tp_len;
        if (is_whole || status & TP_STATUS_COPY) {
            size_t vnet = sizeof(struct virtio_net_hdr); /* stands right before the frame */
            *slot = (struct packet_slot){.data = (const uint8_t *)header + header->tp_mac - vnet,
                                         .bytes = header->tp_snaplen + vnet,
                                         .seconds = header->tp_sec,
                                         .nanoseconds = header->tp_nsec,
                                         .is_whole = is_whole};
            return true;
        }
        atomic_fetch_add_explicit(&ring->cut, 1, memory_order_relaxed);
        packet_ring_done(ring);
    }
}
