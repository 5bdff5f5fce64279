/* The writing thread takes pieces from the ring, cuts super-packets into the segments that links
 * count, completes checksums that were left to the receiver, and writes blocks to the files.
 *
 * A file has whole blocks only: one that could not be written is cut off again, and nothing is
 * added to that file later. What is missing is counted, in the file where it can be.
 *
 * A pipe is written to without waiting. What its reader leaves in it stays in a buffer, and what
 * finds no room there is lost. When the reader has gone its links have no destination any more; the
 * record of the pipe stays, since entries that point to it may still be in the ring.
 */
#include "capture.h"

#include "pcapng.h"
#include "pktd/core/packets/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BUFFER_BYTES (128u << 10)
#define PIPE_BUFFER_BYTES (4u << 20)
#define TICK_MS 1000
#define PIPE_TICK_MS 10
#define LAST_MS 500  /* for a pipe's reader to take its end */
#define FRAME_AT 28u /* of a packet's block */
#define PROGRAM "pktd " VERSION

struct capture_file {
    struct capture_file *next;
    struct capture_file *next_dirty;
    int fd;
    int error; /* it takes nothing more */
    bool is_pipe;
    uint8_t *buffer;
    size_t used;
    uint64_t packets; /* in the buffer, of each interface */
    off_t length;     /* of whole blocks in the file */
    uint32_t count;
    bool is_dirty;
    struct capture_interface interface[CAPTURE_PLACES];
};

static void add(_Atomic uint64_t *counter, uint64_t n) {
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void fail(struct captures *c, struct capture_file *file, int error) {
    int none = 0;
    file->error = error;
    if (file->is_pipe) { /* its links are free for another; nothing of it is anybody's loss */
        for (uint32_t i = 0; i < file->count; i++) {
            struct captured *own = &file->interface[i].captured;
            atomic_compare_exchange_strong(file->interface[i].place, &own, NULL);
        }
        return;
    }
    atomic_compare_exchange_strong(&c->error, &none, error);
}

/* Appends whole blocks, or nothing. 0 or -errno. */
static int append(struct capture_file *file, const uint8_t *bytes, size_t count) {
    size_t done = 0;
    while (done < count) {
        ssize_t n = write(file->fd, bytes + done, count - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            int error = n < 0 ? errno : EIO;
            return ftruncate(file->fd, file->length) ? -errno : -error;
        }
        done += (size_t)n;
    }
    file->length += (off_t)count;
    return 0;
}

/* As much as goes in without waiting. */
static void write_pipe(struct captures *c, struct capture_file *file) {
    size_t done = 0;
    while (done < file->used && !file->error) {
        ssize_t n = write(file->fd, file->buffer + done, file->used - done);
        if (n >= 0) {
            done += (size_t)n;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            fail(c, file, errno);
        }
    }
    file->used = file->error ? 0 : file->used - done;
    memmove(file->buffer, file->buffer + done, file->used);
}

static void write_buffer(struct captures *c, struct capture_file *file) {
    if (file->used == 0) {
        return;
    }
    if (file->is_pipe) {
        write_pipe(c, file);
        return;
    }
    int error = append(file, file->buffer, file->used);
    if (error) {
        fail(c, file, -error);
        add(&c->unwritten, file->packets);
    } else {
        add(&c->written, file->packets);
    }
    file->used = 0;
    file->packets = 0;
}

static void write_dirty(struct captures *c) {
    while (c->dirty) {
        struct capture_file *file = c->dirty;
        c->dirty = file->next_dirty;
        file->is_dirty = false;
        write_buffer(c, file);
    }
}

/* Pipes of which the reader has gone, and what the others left in them; whether there are any. */
static bool tend_pipes(struct captures *c) {
    bool any = false;
    for (struct capture_file *file = atomic_load(&c->files); file; file = file->next) {
        struct pollfd end = {file->fd, POLLOUT, 0};
        if (!file->is_pipe || file->error) {
            continue;
        }
        if (poll(&end, 1, 0) > 0 && end.revents & POLLERR) {
            fail(c, file, EPIPE);
        } else {
            write_buffer(c, file);
            any = true;
        }
    }
    return any;
}

static size_t buffer_bytes(const struct capture_file *file) {
    return file->is_pipe ? PIPE_BUFFER_BYTES : BUFFER_BYTES;
}

/* Room for a block with a packet of this length; NULL when the file takes nothing more, or not
 * now. */
static uint8_t *room(struct captures *c, struct capture_file *file, size_t bytes) {
    if (!file->buffer && !file->error) {
        file->buffer = malloc(buffer_bytes(file));
        if (!file->buffer) {
            fail(c, file, ENOMEM);
        }
    }
    if (file->used + bytes + PCAPNG_BLOCK_LIMIT > buffer_bytes(file)) {
        write_buffer(c, file);
    }
    if (file->error || file->used + bytes + PCAPNG_BLOCK_LIMIT > buffer_bytes(file)) {
        return NULL;
    }
    if (file->is_pipe) {
        return file->buffer + file->used; /* written at every tick */
    }
    if (!file->is_dirty) {
        file->is_dirty = true;
        file->next_dirty = c->dirty;
        c->dirty = file;
    }
    return file->buffer + file->used;
}

/* The ones' complement sum of 16-bit words in memory's own order, which is the sum in the other
 * order with its bytes exchanged (RFC 1071, 2 B). */
static uint16_t sum_words(const uint8_t *bytes, size_t count) {
    uint64_t sum = 0;
    uint32_t word;
    for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        sum += word;
    }
    word = 0;
    memcpy(&word, bytes, count);
    sum += word;
    while (sum >> 16) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint16_t)sum;
}

/* The transport checksum of a frame of which the receiver was to complete it. */
static void complete_sum(const struct virtio_net_hdr *vnet, uint8_t *frame, size_t bytes) {
    size_t start = vnet->csum_start;
    size_t place = start + vnet->csum_offset;
    if (!(vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || place + 2 > bytes) {
        return;
    }
    uint16_t sum = (uint16_t)~sum_words(frame + start, bytes - start);
    sum = sum ? sum : 0xFFFF; /* 0 would mean in UDP that there is none, and is the same in TCP */
    memcpy(frame + place, &sum, sizeof sum);
}

static uint64_t wall_ns(const struct captures *c, uint64_t at_ns) {
    return at_ns - atomic_load(&c->epoch_ns) + atomic_load(&c->epoch_unix_ns);
}

/* One segment, in up to two parts. */
static void save(struct captures *c, const struct ring_entry *entry, uint64_t at_ns,
                 const struct virtio_net_hdr *vnet, const struct iovec *io) {
    static const char *const comments[] = {NULL, "dropped: no room in the queue",
                                           "dropped: lost by the draw",
                                           "dropped: the link was down"};
    struct capture_interface *to = (struct capture_interface *)(void *)entry->to;
    struct capture_file *file = to->file;
    size_t bytes = io[0].iov_len + io[1].iov_len;
    uint8_t *block = room(c, file, bytes);
    if (!block) {
        add(file->is_pipe ? &to->captured.lost : &c->unwritten, 1);
        return;
    }
    uint64_t lost = atomic_load_explicit(&to->captured.lost, memory_order_relaxed);
    struct pcapng_packet packet = {.interface = to->number,
                                   .at_ns = wall_ns(c, at_ns),
                                   .dropcount = lost - to->lost_told,
                                   .comment = comments[entry->fate],
                                   .bytes = {io[0].iov_base, io[1].iov_base},
                                   .count = {io[0].iov_len, io[1].iov_len}};
    file->used += pcapng_packet(block, &packet);
    file->packets++;
    complete_sum(vnet, block + FRAME_AT, bytes);
    to->lost_told = lost;
    to->last_ns = packet.at_ns;
    to->written++;
}

/* When segment `i` was through, if the last one was at `at_ns`. */
static uint64_t through_ns(const struct ring_entry *entry, uint32_t i) {
    if (entry->segments <= 1) {
        return entry->at_ns;
    }
    return entry->at_ns - entry->span_ns + (uint64_t)entry->span_ns * i / (entry->segments - 1u);
}

static void take(struct captures *c, const struct ring_entry *entry) {
    const uint8_t *frame = (const uint8_t *)(entry + 1);
    struct packet_info info;
    if (entry->segments <= 1 ||
        packet_parse(&info, &entry->vnet, frame, entry->frame_bytes) != PACKET_OK ||
        info.segments != entry->segments) {
        const struct iovec io[2] = {{(void *)(uintptr_t)frame, entry->frame_bytes}, {NULL, 0}};
        save(c, entry, entry->at_ns, &entry->vnet, io);
        return;
    }
    for (uint32_t i = 0; i < info.segments; i++) {
        struct packet_piece cut;
        packet_cut(&info, frame, i, 1, &cut);
        const struct iovec io[2] = {
            {cut.header, cut.header_bytes},
            {(void *)(uintptr_t)(frame + cut.payload_offset), cut.payload_bytes}};
        save(c, entry, through_ns(entry, i), &cut.vnet, io);
    }
}

/* What is in the ring now, and no more: who puts in faster than this must not hold up an answer. */
static void drain(struct captures *c) {
    uint64_t end = atomic_load(&c->ring.end);
    const struct ring_entry *entry;
    while (atomic_load(&c->ring.begin) != end && (entry = ring_first(&c->ring))) {
        take(c, entry);
        ring_next(&c->ring);
    }
}

static void signal_done(const struct captures *c) {
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(c->done, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

static void *run(void *context) {
    struct captures *c = context;
    pthread_setname_np(pthread_self(), "pktd-capture");
    for (;;) {
        /* Asked before it is drained: what was put in before the question is out then. */
        bool stop = atomic_load(&c->stop);
        bool asked = atomic_exchange(&c->asked, false);
        drain(c);
        bool pipes = tend_pipes(c);
        if (stop || asked || c->ticks) {
            write_dirty(c);
        }
        if (asked) {
            signal_done(c);
        }
        if (stop) {
            return NULL;
        }
        int tick = pipes ? PIPE_TICK_MS : TICK_MS;
        ring_sleep(&c->ring, c->ticks && atomic_load(&c->files) ? tick : -1);
    }
}

int captures_start(struct captures *c, int directory, uint64_t ring_bytes, bool waits) {
    *c = (struct captures){.directory = directory, .ticks = !waits};
    int error = ring_init(&c->ring, ring_bytes, waits);
    if (error) {
        return error;
    }
    c->done = eventfd(0, EFD_CLOEXEC);
    error = c->done < 0 ? -errno : -pthread_create(&c->thread, NULL, run, c);
    if (error) {
        close(c->done);
        ring_destroy(&c->ring);
    }
    return error;
}

/* What is in it and what is missing, as its last blocks. */
static void close_file(struct captures *c, struct capture_file *file) {
    for (uint32_t i = 0; i < file->count && !file->error; i++) {
        struct capture_interface *interface = &file->interface[i];
        uint8_t *block = room(c, file, 0);
        if (block) {
            file->used += pcapng_statistics(block, i, interface->last_ns, interface->written,
                                            atomic_load(&interface->captured.lost));
        }
    }
    struct pollfd end = {file->fd, POLLOUT, 0};
    write_buffer(c, file);
    while (file->used && poll(&end, 1, LAST_MS) > 0) {
        write_buffer(c, file);
    }
    close(file->fd);
    free(file->buffer);
    free(file);
}

void captures_stop(struct captures *c) {
    atomic_store(&c->stop, true);
    ring_wake(&c->ring);
    pthread_join(c->thread, NULL);
    for (struct capture_file *file; (file = atomic_load(&c->files));) {
        atomic_store(&c->files, file->next);
        close_file(c, file);
    }
    close(c->done);
    close(c->directory);
    ring_destroy(&c->ring);
}

/* The head of the file: written at once, so that what is wrong is known at once. */
static int write_head(struct capture_file *file, const struct capture_request *request) {
    uint8_t head[(CAPTURE_PLACES + 1) * PCAPNG_BLOCK_LIMIT];
    size_t bytes = pcapng_section(head, PROGRAM);
    for (uint32_t i = 0; i < request->count; i++) {
        bytes += pcapng_interface(head + bytes, request->name[i]);
    }
    if (!file->is_pipe) {
        return append(file, head, bytes);
    }
    ssize_t n = write(file->fd, head, bytes); /* an empty pipe has room for it */
    return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EIO;
}

static int open_file(const struct captures *c, const struct capture_request *request) {
    int make = request->is_pipe ? O_NONBLOCK : O_CREAT | O_EXCL;
    int fd = openat(c->directory, request->file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | make, 0644);
    return fd < 0 ? -errno : fd;
}

static int check_free(struct capture_request *request) {
    for (uint32_t i = 0; i < request->count; i++) {
        if (atomic_load(request->place[i])) {
            request->taken = i;
            return -EBUSY;
        }
    }
    return 0;
}

/* Opens what the file's record is of. */
static int begin_file(const struct captures *c, struct capture_file *file,
                      const struct capture_request *request) {
    file->fd = open_file(c, request);
    if (file->fd < 0) {
        return file->fd;
    }
    int error = write_head(file, request);
    if (error) {
        close(file->fd);
        if (!request->is_pipe) {
            unlinkat(c->directory, request->file, 0);
        }
    }
    return error;
}

int captures_open(struct captures *c, struct capture_request *request) {
    if (request->is_pipe) {
        captures_flush(c); /* a reader that has gone frees its links */
    }
    int error = check_free(request);
    error = error ? error : ring_make_room(&c->ring);
    struct capture_file *file = error ? NULL : calloc(1, sizeof *file);
    if (!file) {
        return error ? error : -ENOMEM;
    }
    file->count = request->count;
    file->is_pipe = request->is_pipe;
    error = begin_file(c, file, request);
    if (error) {
        free(file);
        return error;
    }
    for (uint32_t i = 0; i < file->count; i++) {
        struct capture_interface *interface = &file->interface[i];
        interface->captured.programs = request->programs;
        interface->file = file;
        interface->place = request->place[i];
        interface->number = i;
        atomic_store_explicit(interface->place, &interface->captured, memory_order_release);
    }
    file->next = atomic_load(&c->files);
    atomic_store(&c->files, file);
    ring_wake(&c->ring); /* it may sleep without an end */
    return 0;
}

uint64_t captures_lost(struct captures *c) {
    uint64_t lost = 0;
    for (struct capture_file *file = atomic_load(&c->files); file; file = file->next) {
        for (uint32_t i = 0; i < file->count && !file->is_pipe; i++) {
            lost += atomic_load(&file->interface[i].captured.lost);
        }
    }
    return lost;
}

void captures_flush(struct captures *c) {
    uint64_t count;
    ssize_t got;
    atomic_store(&c->asked, true);
    ring_wake(&c->ring);
    do {
        got = read(c->done, &count, sizeof count);
    } while (got < 0 && errno == EINTR);
}
