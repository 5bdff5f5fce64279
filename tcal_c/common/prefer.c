#include "prefer.h"

#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000u

/* struct sched_attr is not in every libc's headers. */
int ask_for_short_slices(int nice, bool inherited) {
    struct {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns;
        uint64_t deadline_ns;
        uint64_t period_ns;
    } attributes = {.size = sizeof attributes,
                    .policy = SCHED_OTHER,
                    .flags = inherited ? 0 : 1, /* SCHED_FLAG_RESET_ON_FORK */
                    .nice = nice,
                    .runtime_ns = SLICE_NS};
    return (int)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/* Without real-time scheduling, which control groups may refuse even root (RT_GROUP_SCHED): a high
 * priority where permitted, since agents beside us have one, and what everybody may ask for. */
void be_preferred(void) {
    if (ask_for_short_slices(-20, true) < 0) {
        ask_for_short_slices(getpriority(PRIO_PROCESS, 0), true);
    }
}
