/* As much of io_uring(7) as the data thread needs: requests are put in, one system call hands all
 * of them over and waits, completions are taken out. One thread. */
#ifndef PKTD_URING_H
#define PKTD_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/io_uring.h>

struct uring {
    int fd;
    unsigned queued; /* requests that have not been handed over */
    unsigned sq_mask;
    unsigned cq_mask;
    _Atomic unsigned *sq_tail;
    _Atomic unsigned *cq_head;
    _Atomic unsigned *cq_tail;
    struct io_uring_sqe *sqe;
    struct io_uring_cqe *cqe;
    void *rings;
    size_t rings_bytes;
    size_t sqe_bytes;
};

/* Any thread may make it: 0 or -errno. */
int uring_open(struct uring *u, unsigned entries);
void uring_close(struct uring *u);

/* By the thread that will use it, before anything else: 0 or -errno. */
int uring_begin(struct uring *u);

/* A request to be filled in; all 0 but for its opcode and user_data. */
struct io_uring_sqe *uring_request(struct uring *u, uint8_t opcode, uint64_t user_data);

/* Hands the requests over and waits for `count` completions: 0 or -errno. */
int uring_enter(struct uring *u, unsigned count);

/* The next completion; false when there is none. */
bool uring_take(struct uring *u, struct io_uring_cqe *cqe);

/* Ends the request with that user_data. Its completion may still come, its memory is free. */
void uring_cancel(struct uring *u, uint64_t user_data);

#endif
