/* Real-time scheduling, memory that stays, sleeps that end on time: whatever the machine permits.
 */
#include "exact.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIFO_PRIORITY 10
#define SLICE_NS 100000u

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

/* Without real-time scheduling, which control groups may refuse even root (RT_GROUP_SCHED): a high
 * priority where permitted, since agents beside us have one, and what everybody may ask for, a
 * short time slice, which since Linux 6.12 makes the scheduler pick a thread earlier when it wakes.
 * (sched_setattr(2); struct sched_attr is not in every libc's headers.) */
static void be_preferred(void) {
    struct {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns;
        uint64_t deadline_ns;
        uint64_t period_ns;
    } attr = {.size = sizeof attr, .policy = SCHED_OTHER, .nice = -20, .runtime_ns = SLICE_NS};
    if (syscall(SYS_sched_setattr, 0, &attr, 0) < 0) {
        attr.nice = getpriority(PRIO_PROCESS, 0);
        syscall(SYS_sched_setattr, 0, &attr, 0);
    }
}

void be_exact(struct loop *loop, const struct loop_options *options) {
    struct sched_param priority = {.sched_priority = FIFO_PRIORITY};
    pthread_setname_np(pthread_self(), "pktd-data");
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    loop->is_fifo = options->fifo && sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    if (!loop->is_fifo) {
        be_preferred();
    }
    loop->is_locked = options->lock && lock_memory(options->pool_bytes);
}
