/* Waiting in virtual time, in a kernel whose clock stands still while anything runs and jumps when
 * all wait: there is nothing to be early for, but every system call takes real time.
 *
 * A timer ends exactly when something is due, and when it has, that is what time it is. A packet
 * says in its stamp when it came. So the clock is looked at only for packets without a stamp. Each
 * port has a read on its way; one call hands over the next reads and the next time of the timer,
 * waits, and brings what has been read.
 */
#include "wait.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUESTS 256
#define TIMER_TAG (UINT32_MAX - 1)
#define IGNORED_TAG (UINT32_MAX - 2)
#define READ_BYTES (sizeof(struct line_record) + FRAME_LIMIT + VNET_BYTES)
#define KNOWN_NS (12 * 3600 * NS_PER_S) /* stamps count from a time known, and not for days */

int virtual_open(struct loop *loop) {
    loop->now_ns = clock_now();
    return uring_open(&loop->uring, REQUESTS);
}

void virtual_close(struct loop *loop) {
    uring_close(&loop->uring);
}

static void request_read(struct loop *loop, uint64_t tag, int fd, void *to, uint32_t bytes) {
    struct io_uring_sqe *sqe = uring_request(&loop->uring, IORING_OP_READ, tag);
    sqe->fd = fd;
    sqe->addr = (uintptr_t)to;
    sqe->len = bytes;
    sqe->off = UINT64_MAX; /* no file with a position */
}

void virtual_again(struct loop *loop, uint64_t tag) {
    if (tag == WAKE_TAG) {
        request_read(loop, tag, loop->wake, &loop->woken, sizeof loop->woken);
        return;
    }
    struct port *port = loop->port[(uint32_t)tag];
    request_read(loop, tag, port->fd, port->buffer + port->kept,
                 (uint32_t)(READ_BYTES - port->kept));
}

int virtual_add(struct loop *loop, struct port *port) {
    port->buffer = mmap(NULL, READ_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (port->buffer == MAP_FAILED) {
        port->buffer = NULL;
        return -errno;
    }
    /* Of this port only, also when its number is used again. */
    port->tag = (uint64_t)++loop->ports << 32 | port->number;
    virtual_again(loop, port->tag);
    return 0;
}

void virtual_remove(struct loop *loop, struct port *port) {
    if (port->buffer) {
        uring_cancel(&loop->uring, port->tag);
        munmap(port->buffer, READ_BYTES);
        port->buffer = NULL;
    }
}

/* A time that has passed ends the timer at once. */
static void set_timer(struct loop *loop, uint64_t due_ns) {
    if (due_ns == loop->timer_ns) {
        return;
    }
    loop->timer_at = (struct __kernel_timespec){.tv_sec = (int64_t)(due_ns / NS_PER_S),
                                                .tv_nsec = (long long)(due_ns % NS_PER_S)};
    struct io_uring_sqe *sqe;
    loop->timer_first_ns = loop->timer_ns ? min_u64(loop->timer_first_ns, due_ns) : due_ns;
    if (loop->timer_ns) {
        /* Should it have ended meanwhile, this comes back and the end is news all the same. */
        sqe = uring_request(&loop->uring, IORING_OP_TIMEOUT_REMOVE, IGNORED_TAG);
        sqe->addr = TIMER_TAG;
        sqe->addr2 = (uintptr_t)&loop->timer_at;
        sqe->timeout_flags = IORING_TIMEOUT_UPDATE | IORING_TIMEOUT_ABS;
        sqe->flags = IOSQE_CQE_SKIP_SUCCESS;
    } else {
        sqe = uring_request(&loop->uring, IORING_OP_TIMEOUT, TIMER_TAG);
        sqe->addr = (uintptr_t)&loop->timer_at;
        sqe->len = 1;
        sqe->timeout_flags = IORING_TIMEOUT_ABS;
    }
    loop->timer_ns = due_ns;
}

/* Where nothing is due any timer will do that ends before the time is forgotten. */
static uint64_t timer_for(const struct loop *loop, uint64_t due_ns) {
    if (due_ns != TIME_NEVER) {
        return due_ns;
    }
    return loop->timer_ns ? loop->timer_ns : loop->now_ns + KNOWN_NS;
}

int virtual_wait(struct loop *loop, struct ready *ready) {
    struct io_uring_cqe cqe;
    uint64_t due = wait_next_due(loop);
    bool waits = due > loop->now_ns; /* a message that has been read may be due */
    int count = 0;
    set_timer(loop, timer_for(loop, due));
    uring_enter(&loop->uring, waits);
    while (count < WAIT_EVENTS && uring_take(&loop->uring, &cqe)) {
        if (cqe.user_data == TIMER_TAG) {
            /* It may have ended before it was set to the time that it has now. */
            loop->now_ns = max_u64(loop->now_ns, loop->timer_first_ns);
            loop->timer_ns = 0;
        } else if (cqe.user_data != IGNORED_TAG) {
            ready[count++] = (struct ready){.tag = cqe.user_data, .result = cqe.res};
        }
    }
    return count;
}
