/* Sleep to shortly before a packet is due, then spin: exact to microseconds at a bounded cost.
 *
 * The spin is as long as sleeps end late: the 99th percentile of that, followed by a stochastic
 * approximation (up by 99 steps when exceeded, down by one when not). Work and spinning together
 * stay under 60 % of a core per window: beyond that, spinning takes time from the programs under
 * test, and a real-time thread that never sleeps is stalled by the kernel for 50 ms a second.
 */
#include "pace.h"

#define WINDOW_NS 10000000u
#define BUDGET_PERCENT 60u
#define SPIN_MIN_NS 5000u
#define SPIN_MAX_NS 80000u
#define WAKE_START_NS 50000u
#define WAKE_STEP_NS 50u
#define WRITE_START_NS 4000u
#define WRITE_MAX_NS 20000u
#define WRITE_STEP_NS 20u

void pace_init(struct pace *p, uint64_t now_ns, uint32_t sharers) {
    *p = (struct pace){.wake_ns = WAKE_START_NS,
                       .write_ns = WRITE_START_NS,
                       .window_ns = now_ns,
                       .sharers = sharers,
                       .may_spin_ns = WINDOW_NS * BUDGET_PERCENT / 100 / sharers};
    counter_set(&p->spin_ns, WAKE_START_NS);
}

/* What the window that has ended leaves to spin in the next one. */
static void turn_window(struct pace *p, uint64_t now_ns) {
    uint64_t length = now_ns - p->window_ns;
    if (length < WINDOW_NS) {
        return;
    }
    uint64_t idle = p->slept_ns + p->spun_ns;
    uint64_t work = length > idle ? length - idle : 0;
    uint64_t budget = length * BUDGET_PERCENT / 100 / p->sharers;
    p->may_spin_ns = budget > work ? (budget - work) * WINDOW_NS / length : 0;
    p->window_ns = now_ns;
    p->slept_ns = 0;
    p->spun_ns = 0;
}

uint64_t pace_sleep(struct pace *p, uint64_t now_ns, uint64_t due_ns, uint64_t tolerance_ns) {
    turn_window(p, now_ns);
    if (due_ns <= now_ns) {
        return 0;
    }
    uint64_t spin = 0;
    if (p->spun_ns < p->may_spin_ns) {
        spin = p->wake_ns < SPIN_MIN_NS ? SPIN_MIN_NS : min_u64(p->wake_ns, SPIN_MAX_NS);
        spin -= min_u64(spin, tolerance_ns);
    }
    counter_set(&p->spin_ns, spin);
    uint64_t wait = due_ns - now_ns;
    return wait > spin ? wait - spin : 0;
}

void pace_woke(struct pace *p, uint64_t from_ns, uint64_t wanted_ns, uint64_t now_ns, bool timer) {
    p->slept_ns += now_ns - from_ns;
    if (!timer) {
        return;
    }
    uint64_t late = now_ns > wanted_ns ? now_ns - wanted_ns : 0;
    if (late > p->wake_ns) {
        p->wake_ns = min_u64(p->wake_ns + 99 * WAKE_STEP_NS, 2 * SPIN_MAX_NS);
    } else if (p->wake_ns > WAKE_STEP_NS) {
        p->wake_ns -= WAKE_STEP_NS;
    }
}

void pace_spun(struct pace *p, uint64_t from_ns, uint64_t now_ns) {
    p->spun_ns += now_ns - from_ns;
}

void pace_wrote(struct pace *p, uint64_t took_ns) {
    if (took_ns > p->write_ns) {
        p->write_ns = min_u64(p->write_ns + WRITE_STEP_NS, WRITE_MAX_NS);
    } else if (p->write_ns > WRITE_STEP_NS) {
        p->write_ns -= WRITE_STEP_NS;
    }
}
