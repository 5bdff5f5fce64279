/* Real-time scheduling, memory that stays, sleeps that end on time: whatever the machine permits.
 */
#include "exact.h"

#include "common/prefer.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FIFO_PRIORITY 10

/* Keeps what was touched in memory. Under RLIMIT_MEMLOCK that would make later allocations fail
 * instead of slow, so it is only done when an allocation as large as the pool may grow is granted.
 */
static bool lock_memory(uint64_t pool_bytes) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) {
        return false;
    }
    void *probe =
        mmap(NULL, pool_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
        munlockall();
        return false;
    }
    munmap(probe, pool_bytes);
    return true;
}

static bool be_real_time(void) {
    struct sched_param priority = {.sched_priority = FIFO_PRIORITY};
    return sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

void take_class(struct loop *loop, enum load_class wanted) {
    if (!loop->may_fifo || loop->is_fifo == (wanted == CLASS_FIFO)) {
        return;
    }
    if (wanted == CLASS_OTHER) {
        be_preferred();
    } else {
        be_real_time();
    }
    loop->is_fifo = sched_getscheduler(0) == SCHED_FIFO;
}

void be_exact(struct loop *loop, const struct loop_options *options) {
    pthread_setname_np(pthread_self(), "pktd-data");
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    loop->may_fifo = options->fifo && be_real_time();
    loop->is_fifo = loop->may_fifo;
    if (!loop->may_fifo) {
        be_preferred();
    }
    loop->is_locked = options->lock && lock_memory(options->pool_bytes);
}
