/* Two ports whose devices are sockets, and I/O threads that may have the turn at them. What is
 * behind the ports is touched without locks, so that a sanitizer sees it if two threads ever use a
 * port at once. */
#ifndef TESTS_ENDS_H
#define TESTS_ENDS_H

#include "pktd/io_threads/io_threads.h"
#include "pktd/tests/sim.h"

#define T0 1000000000ull /* when a sim begins */
#define GAP_NS 20000ull
#define FRAMES 3000u
#define POOL (128u << 20)

struct came {
    struct frame *frame;
    size_t bytes;
    uint64_t at_ns;
};

struct end {
    struct port port;
    int peer;
    struct test_frame frame;
    uint32_t sent;
    uint32_t read;
    uint64_t written;
    uint64_t hash; /* of all that was written */
    struct came queue[FRAMES];
    uint32_t came;
    uint32_t entered;
};

extern struct end ends[2];
extern struct io_threads io_threads;
extern struct histogram late;

/* What happens before a port is read; mostly NULL. */
extern void (*ends_before_read)(const struct port *port);

/* Packet `number` of an end into its `frame`: small ones, some of middle size, some super-packets.
 */
void ends_make(struct end *end, uint32_t number);

/* In the I/O threads' sets, or where there are none in `epoll`. */
void ends_open(int epoll);

/* Some of FRAMES packets that each port is to read, as many as there is room for. */
void ends_feed(void);

/* An engine's hand_over. */
bool ends_hand_over(void *context, uint32_t number, uint64_t at_ns, const struct leaving *leaving,
                    const struct iovec *io, int count);

#endif
