/* A ring of bytes between two threads, without locks.
 *
 * An entry is never split: where it does not fit before the end of the memory, an entry without a
 * destination fills the rest. Each side writes one position and reads the other's. The data thread
 * makes a system call only when a quarter is full and the taker sleeps, so in the packet path an
 * entry costs its copy.
 */
#include "ring.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 8u
#define LEAST_BYTES (1u << 20) /* many times the largest entry */

int ring_init(struct ring *ring, uint64_t bytes, bool waits) {
    uint64_t size = LEAST_BYTES;
    while (size < bytes) {
        size *= 2;
    }
    *ring = (struct ring){.size = size, .waits = waits, .wake = -1, .room = -1};
    ring->wake = eventfd(0, EFD_CLOEXEC);
    ring->room = eventfd(0, EFD_CLOEXEC);
    if (ring->wake < 0 || ring->room < 0) {
        int error = -errno;
        ring_destroy(ring);
        return error;
    }
    return 0;
}

int ring_make_room(struct ring *ring) {
    if (ring->memory) {
        return 0;
    }
    void *memory =
        mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    ring->memory = memory;
    return 0;
}

void ring_destroy(struct ring *ring) {
    if (ring->memory) {
        munmap(ring->memory, ring->size);
    }
    close(ring->wake);
    close(ring->room);
    *ring = (struct ring){.wake = -1, .room = -1};
}

static void signal_event(int fd) {
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

static void await_event(int fd) {
    uint64_t count;
    ssize_t got;
    do {
        got = read(fd, &count, sizeof count);
    } while (got < 0 && errno == EINTR);
}

/* Bytes that an entry at `end` takes, those before the wrap included. */
static uint64_t needed(const struct ring *ring, uint64_t end, uint64_t bytes) {
    uint64_t rest = ring->size - end % ring->size;
    return rest < bytes ? rest + bytes : bytes;
}

static bool has_room(struct ring *ring, uint64_t bytes) {
    uint64_t used = atomic_load(&ring->end) - atomic_load(&ring->begin);
    return used + bytes <= ring->size;
}

static uint64_t quarter(const struct ring *ring) {
    return ring->size / 4;
}

/* Wakes the taker if it sleeps. */
static void wake(struct ring *ring) {
    if (atomic_load(&ring->asleep) && atomic_exchange(&ring->asleep, false)) {
        signal_event(ring->wake);
    }
}

static void await_room(struct ring *ring, uint64_t bytes) {
    while (!has_room(ring, bytes)) {
        atomic_store(&ring->full, true);
        wake(ring);
        /* It may have become free just before the flag was set. */
        if (!has_room(ring, bytes)) {
            await_event(ring->room);
        }
        atomic_store(&ring->full, false);
    }
}

static void count_lost(struct ring *ring, const struct ring_entry *entry) {
    atomic_fetch_add_explicit(&entry->to->lost, entry->segments, memory_order_relaxed);
    atomic_fetch_add_explicit(&ring->lost, entry->segments, memory_order_relaxed);
}

static void copy_in(struct ring *ring, uint64_t end, const struct ring_entry *entry,
                    const struct iovec *io, int count) {
    uint8_t *to = ring->memory + end % ring->size;
    memcpy(to, entry, sizeof *entry);
    to += sizeof *entry;
    for (int i = 0; i < count; i++) {
        memcpy(to, io[i].iov_base, io[i].iov_len);
        to += io[i].iov_len;
    }
}

void ring_put(struct ring *ring, const struct ring_entry *entry, const struct iovec *io,
              int count) {
    struct ring_entry whole = *entry;
    uint64_t end = atomic_load_explicit(&ring->end, memory_order_relaxed);
    whole.frame_bytes = 0;
    for (int i = 0; i < count; i++) {
        whole.frame_bytes += (uint32_t)io[i].iov_len;
    }
    uint64_t bytes = sizeof whole + whole.frame_bytes;
    whole.bytes = (uint32_t)((bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1));
    uint64_t need = needed(ring, end, whole.bytes);
    if (!ring->waits && !has_room(ring, need)) {
        count_lost(ring, &whole);
        wake(ring);
        return;
    }
    await_room(ring, need);
    if (need > whole.bytes) {
        /* The rest may be too short for an entry: its first bytes tell how long it is. */
        memcpy(ring->memory + end % ring->size, &(uint32_t){0}, sizeof(uint32_t));
        end += need - whole.bytes;
    }
    copy_in(ring, end, &whole, io, count);
    atomic_store(&ring->end, end + whole.bytes);
    if (end + whole.bytes - atomic_load_explicit(&ring->begin, memory_order_relaxed) >
        quarter(ring)) {
        wake(ring);
    }
}

static void taken(struct ring *ring, uint64_t begin) {
    atomic_store(&ring->begin, begin);
    /* Not for every entry: who waits would wait again at once. */
    bool half_free = atomic_load(&ring->end) - begin <= ring->size / 2;
    if (half_free && atomic_load(&ring->full) && atomic_exchange(&ring->full, false)) {
        signal_event(ring->room);
    }
}

const struct ring_entry *ring_first(struct ring *ring) {
    for (;;) {
        uint64_t begin = atomic_load_explicit(&ring->begin, memory_order_relaxed);
        if (begin == atomic_load(&ring->end)) {
            return NULL;
        }
        const struct ring_entry *entry =
            (const struct ring_entry *)(const void *)(ring->memory + begin % ring->size);
        if (entry->bytes) {
            return entry;
        }
        taken(ring, begin + ring->size - begin % ring->size);
    }
}

void ring_next(struct ring *ring) {
    uint64_t begin = atomic_load_explicit(&ring->begin, memory_order_relaxed);
    const struct ring_entry *entry =
        (const struct ring_entry *)(const void *)(ring->memory + begin % ring->size);
    taken(ring, begin + entry->bytes);
}

void ring_sleep(struct ring *ring, int wait_ms) {
    struct pollfd event = {ring->wake, POLLIN, 0};
    atomic_store(&ring->asleep, true);
    /* A quarter may have been reached just before. */
    uint64_t used = atomic_load(&ring->end) - atomic_load(&ring->begin);
    if (used <= quarter(ring)) {
        poll(&event, 1, wait_ms);
    }
    atomic_store(&ring->asleep, false);
    if (event.revents & POLLIN) {
        await_event(ring->wake);
    }
}

void ring_wake(struct ring *ring) {
    signal_event(ring->wake);
}
