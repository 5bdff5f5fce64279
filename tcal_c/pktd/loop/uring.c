/* Requests and completions stand in two rings that are shared with the kernel; with SINGLE_ISSUER
 * and DEFER_TASKRUN it does all of the work in the waiting thread. Sources: io_uring_setup(2),
 * io_uring_enter(2), io_uring_register(2). */
#include "uring.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int map(struct uring *u, const struct io_uring_params *p) {
    int flags = MAP_SHARED | MAP_POPULATE;
    size_t sq = p->sq_off.array + p->sq_entries * sizeof(unsigned);
    size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    u->rings_bytes = sq > cq ? sq : cq;
    u->sqe_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    void *rings =
        mmap(NULL, u->rings_bytes, PROT_READ | PROT_WRITE, flags, u->fd, IORING_OFF_SQ_RING);
    if (rings == MAP_FAILED) {
        return -errno;
    }
    u->rings = rings;
    void *sqe = mmap(NULL, u->sqe_bytes, PROT_READ | PROT_WRITE, flags, u->fd, IORING_OFF_SQES);
    if (sqe == MAP_FAILED) {
        return -errno;
    }
    u->sqe = sqe;
    return 0;
}

static void *at(const struct uring *u, unsigned offset) {
    return (char *)u->rings + offset;
}

static void find_parts(struct uring *u, const struct io_uring_params *p) {
    unsigned *array = at(u, p->sq_off.array);
    u->sq_tail = at(u, p->sq_off.tail);
    u->cq_head = at(u, p->cq_off.head);
    u->cq_tail = at(u, p->cq_off.tail);
    u->cqe = at(u, p->cq_off.cqes);
    u->sq_mask = p->sq_entries - 1;
    u->cq_mask = p->cq_entries - 1;
    for (unsigned i = 0; i < p->sq_entries; i++) {
        array[i] = i;
    }
}

int uring_open(struct uring *u, unsigned entries) {
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    p.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    *u = (struct uring){0};
    u->fd = (int)syscall(SYS_io_uring_setup, entries, &p);
    if (u->fd < 0) {
        return -errno;
    }
    int error = p.features & IORING_FEAT_SINGLE_MMAP ? map(u, &p) : -ENOSYS;
    if (error) {
        uring_close(u);
        return error;
    }
    find_parts(u, &p);
    return 0;
}

void uring_close(struct uring *u) {
    if (u->sqe) {
        munmap(u->sqe, u->sqe_bytes);
    }
    if (u->rings) {
        munmap(u->rings, u->rings_bytes);
    }
    close(u->fd);
}

static int ask(const struct uring *u, unsigned what, void *about, unsigned count) {
    return syscall(SYS_io_uring_register, u->fd, what, about, count) < 0 ? -errno : 0;
}

int uring_begin(struct uring *u) {
    return ask(u, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

struct io_uring_sqe *uring_request(struct uring *u, uint8_t opcode, uint64_t user_data) {
    if (u->queued > u->sq_mask) {
        uring_enter(u, 0);
    }
    unsigned tail = atomic_load_explicit(u->sq_tail, memory_order_relaxed);
    struct io_uring_sqe *sqe = &u->sqe[tail & u->sq_mask];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = opcode;
    sqe->user_data = user_data;
    atomic_store_explicit(u->sq_tail, tail + 1, memory_order_release);
    u->queued++;
    return sqe;
}

int uring_enter(struct uring *u, unsigned count) {
    long done =
        syscall(SYS_io_uring_enter, u->fd, u->queued, count, IORING_ENTER_GETEVENTS, NULL, 0);
    if (done < 0) {
        return -errno;
    }
    u->queued -= (unsigned)done;
    return 0;
}

bool uring_take(struct uring *u, struct io_uring_cqe *cqe) {
    unsigned head = atomic_load_explicit(u->cq_head, memory_order_relaxed);
    if (head == atomic_load_explicit(u->cq_tail, memory_order_acquire)) {
        return false;
    }
    *cqe = u->cqe[head & u->cq_mask];
    atomic_store_explicit(u->cq_head, head + 1, memory_order_release);
    return true;
}

void uring_cancel(struct uring *u, uint64_t user_data) {
    struct io_uring_sync_cancel_reg what = {
        .addr = user_data, .fd = -1, .timeout = {.tv_sec = -1, .tv_nsec = -1}};
    uring_enter(u, 0);
    ask(u, IORING_REGISTER_SYNC_CANCEL, &what, 1);
    uring_enter(u, 0); /* lets go of the descriptor */
}
