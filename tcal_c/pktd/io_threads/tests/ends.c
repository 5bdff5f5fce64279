#include "ends.h"

#include "common/tests/check.h"
#include "pktd/record/xxh64.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct end ends[2];
struct io_threads io_threads;
struct histogram late;
void (*ends_before_read)(const struct port *port);

/* The error is taken away, so it shows only once. */
void port_settle(const struct port *port) {
    CHECK_EQ(epoll_ctl(io_threads_of(&io_threads, port)->ports, EPOLL_CTL_DEL, port->fd, NULL), 0);
}

void ends_make(struct end *end, uint32_t number) {
    unsigned from = end->port.number;
    if (number % 16 == 15) {
        make_frame(&end->frame, 4, TEST_TCP, from, 1 - from, 40000, 1400);
    } else {
        make_packet(&end->frame, from, 1 - from, number % 10 == 9 ? 6000 : 64 + number % 1000);
        memcpy(end->frame.data + ETH_BYTES + 28, &number, sizeof number);
    }
}

int port_read(struct port *port, uint8_t *data, size_t room, struct port_frame *frame) {
    struct end *end = &ends[port->number];
    uint32_t number;
    if (ends_before_read) {
        ends_before_read(port);
    }
    ssize_t got = read(port->fd, &number, sizeof number);
    if (got <= 0) {
        return got == 0 && port->kind == PORT_TAP ? -ENODEV : 0;
    }
    CHECK_EQ(number, end->read++);
    ends_make(end, number);
    CHECK(end->frame.bytes + VNET_BYTES <= room);
    memcpy(data, &end->frame.vnet, VNET_BYTES);
    memcpy(data + VNET_BYTES, end->frame.data, end->frame.bytes);
    *frame = (struct port_frame){end->frame.bytes, T0 + number * GAP_NS};
    return 1;
}

int port_write(struct port *port, const struct iovec *io, int count) {
    struct end *end = &ends[port->number];
    end->written++;
    for (int i = 0; i < count; i++) {
        end->hash = xxh64(io[i].iov_base, io[i].iov_len, end->hash);
    }
    return end->written % 500 ? 0 : -EIO; /* counted, in its place */
}

bool ends_hand_over(void *context, uint32_t number, uint64_t at_ns, const struct leaving *leaving,
                    const struct iovec *io, int count) {
    (void)context;
    return io_threads_write(&io_threads, &ends[number].port, at_ns, leaving, io, count);
}

void ends_open(int epoll) {
    for (uint32_t i = 0; i < 2; i++) {
        int pair[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
        ends[i] =
            (struct end){.port = {.fd = pair[0], .number = i, .kind = PORT_TAP}, .peer = pair[1]};
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &ends[i].port};
        int set = io_threads.count ? io_threads_of(&io_threads, &ends[i].port)->ports : epoll;
        CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event), 0);
    }
}

void ends_feed(void) {
    for (uint32_t i = 0; i < 2; i++) {
        for (int n = 0; n < 50 && ends[i].sent < FRAMES; n++) {
            if (send(ends[i].peer, &ends[i].sent, sizeof ends[i].sent, MSG_DONTWAIT) < 0) {
                break;
            }
            ends[i].sent++;
        }
    }
}
