/* The threads that read and write for the core while there is much to do. Core's thread, unless it
 * says otherwise. */
#ifndef PKTD_IO_THREADS_H
#define PKTD_IO_THREADS_H

#include "io_thread.h"
#include "pktd/core/structures/histogram.h"

#define IO_THREADS_LIMIT 15u

struct io_threads_look {
    uint64_t at_ns;  /* the last one */
    uint64_t cpu_ns; /* of the core until then, without spinning */
    uint64_t frames; /* until then */
    uint64_t given;  /* frames a second when the ports were given away */
    uint32_t quiet;  /* looks since then with less than half of that, one after the other */
};

struct io_threads {
    uint32_t count;
    bool always; /* the turn is theirs also when there is little to do */
    bool are_given;
    int epoll;    /* where the core looks for packets; -1: nowhere */
    uint32_t tag; /* of I/O thread 0's ports there; downwards those of the others */
    struct engine *engine;
    struct histogram *late;
    atomic_bool core_sleeps;
    struct io_threads_look look;
    counter frames; /* that I/O threads have read and written, all in all */
    struct io_thread io_thread[IO_THREADS_LIMIT];
};

/* `core` is the eventfd that wakes the core: 0 or -errno. */
int io_threads_start(struct io_threads *io_threads, uint32_t count, bool always,
                     struct engine *engine, struct histogram *late, int core);
void io_threads_end(struct io_threads *io_threads);

/* Whose port it is. There must be I/O threads. */
static inline struct io_thread *io_threads_of(struct io_threads *io_threads,
                                              const struct port *port) {
    return &io_threads->io_thread[port->number % io_threads->count];
}

/* Puts the ports of I/O thread 0 as `tag`, downwards those of the others, into the core's epoll for
 * good. Packets are seen there while the core has the turn. 0 or -errno. */
int io_threads_watch(struct io_threads *io_threads, int epoll, uint32_t tag);

/* The ports of the I/O threads are theirs from now on, or the core's again. The core then has
 * everything that they had read, which io_threads_input gives, and has written what they had not.
 */
void io_threads_give(struct io_threads *io_threads);
void io_threads_recall(struct io_threads *io_threads);

/* Lets an I/O thread write the frame: true. False: the core has the turn. Waits where there is no
 * room. */
bool io_threads_write(struct io_threads *io_threads, struct port *port, uint64_t due_ns,
                      const struct leaving *leaving, const struct iovec *io, int count);

/* The oldest frame that this I/O thread has read, which is the caller's; false when there is none.
 * Without a frame the port has gone, or, when it is `lost`, there was no memory for what was read;
 * without a port either, some device is down, or has gone, which nobody was told before. */
bool io_threads_input(struct io_threads *io_threads, struct io_thread *io_thread,
                      struct io_thread_input *input, bool *lost);

/* Takes note of what has been written: whether anything has. */
bool io_threads_finish(struct io_threads *io_threads);

/* Whether I/O threads have something for the core; if not, it may sleep, and I/O threads wake it.
 */
bool io_threads_may_sleep(struct io_threads *io_threads);
void io_threads_woke(struct io_threads *io_threads);

/* Gives the ports away or takes them back, as the core's load wants it: `cpu_ns` is the CPU time
 * that it has used, without spinning, `frames` what it has read and written. */
void io_threads_look(struct io_threads *io_threads, uint64_t now_ns, uint64_t cpu_ns,
                     uint64_t frames);

/* When io_threads_look is worth its while again. */
#define IO_THREADS_LOOK_NS 10000000u

/* CPU time of all I/O threads. Any thread. */
uint64_t io_threads_cpu_ns(const struct io_threads *io_threads);

#endif
