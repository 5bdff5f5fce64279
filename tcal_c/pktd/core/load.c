/* The load is the CPU time that the thread has worked, without what it has spun, of its share of
 * the machine: a mean that forgets with a time constant of 100 ms.
 *
 * Class: Linux gives ordinary programs 50 ms of every second of a core (sched(7),
 * sched_rt_runtime_us; since Linux 6.12 the fair server), all at once if a real-time thread has
 * left them less. A real-time thread rests where a window has left others less than REST_PERMILLE,
 * and at LEAVE of its share, some 250 ms after it has become too busy, it leaves the real-time
 * class and competes as others do, which delays packets evenly and little. It does not while it is
 * just being relieved of receivers' work (RELIEF, see steer.h): that takes effect soon, and as an
 * ordinary thread it would first have to come back. It comes back when the load has been below
 * RETURN for a second (RELIEVED_RETURN where it is relieved, so that there is no more work than is
 * seen); each time that this was too early (it had to leave again soon) doubles the second, up to
 * STAY_MAX.
 *
 * Tolerance: what costs the busy thread are waking up, waking receivers on other cores, and system
 * calls for single packets. So the busier it is the longer it rests between two rounds of work, up
 * to TOLERANCE_MAX_NS from the beginning of one to that of the next, and what is due or arrives
 * meanwhile is done together. The work that this saves lowers the load and with it the tolerance.
 */
#include "load.h"

#define MEMORY_NS 100000000u
#define MILLION 1000000u
#define LEAVE_PPM 900000u
#define RETURN_PPM 700000u
#define RELIEVED_RETURN_PPM 850000u
#define QUIET_PPM 600000u /* no tolerance below: sleeping and waking is a part of the load */
#define FULL_PPM 850000u  /* all of it from here on */
#define REST_PERMILLE 55u
#define STAY_MIN_NS NS_PER_S
#define STAY_MAX_NS (16 * NS_PER_S)
#define SOON_NS (10 * NS_PER_S)
#define RELIEF_NS (NS_PER_S / 2)
#define REST_MIN_NS 10000u /* to fall asleep and wake up takes about as long */

void load_init(struct load *l, uint64_t now_ns, uint32_t sharers, uint32_t cores, bool may_fifo) {
    *l = (struct load){
        .share_ppm = (uint32_t)min_u64(MILLION, max_u64(1, (uint64_t)MILLION * cores / sharers)),
        .wanted = may_fifo ? CLASS_FIFO : CLASS_OTHER,
        .may_fifo = may_fifo,
        .looked_ns = now_ns,
        .changed_ns = now_ns,
        .calm_ns = now_ns,
        .stay_ns = STAY_MIN_NS,
        .second_ns = now_ns};
}

static void leave(struct load *l, uint64_t now_ns, enum load_class class) {
    bool soon = counter_get(&l->class_left) && now_ns - l->changed_ns < SOON_NS;
    l->stay_ns = soon ? min_u64(2 * l->stay_ns, STAY_MAX_NS) : STAY_MIN_NS;
    l->wanted = CLASS_OTHER;
    l->changed_ns = now_ns;
    l->calm_ns = now_ns;
    counter_add(&l->class_left, class == CLASS_FIFO);
}

/* What it does itself now others will soon do. */
static bool is_being_relieved(const struct load *l, uint64_t now_ns) {
    return l->is_relieved && now_ns - l->relieved_ns < RELIEF_NS;
}

static void choose_class(struct load *l, uint64_t now_ns, enum load_class class) {
    if (!l->may_fifo) {
        return;
    }
    if (class == CLASS_OTHER) {
        counter_add(&l->class_left_ns, now_ns - l->looked_ns);
    }
    if (l->wanted == CLASS_FIFO) {
        if (l->ppm >= LEAVE_PPM && !is_being_relieved(l, now_ns)) {
            leave(l, now_ns, class);
        }
        return;
    }
    if (l->ppm >= (l->is_relieved ? RELIEVED_RETURN_PPM : RETURN_PPM)) {
        l->calm_ns = now_ns;
    } else if (now_ns - l->calm_ns >= l->stay_ns) {
        l->wanted = CLASS_FIFO;
        l->changed_ns = now_ns;
    }
}

static void sum_up_second(struct load *l, uint64_t now_ns, uint64_t worked_ns) {
    uint64_t length = now_ns - l->second_ns;
    if (length < NS_PER_S) {
        return;
    }
    uint64_t worked = worked_ns - l->second_worked_ns;
    counter_set(&l->busy_ppm, min_u64((uint64_t)((u128)worked * MILLION / length), MILLION));
    l->second_ns = now_ns;
    l->second_worked_ns = worked_ns;
}

void load_look(struct load *l, uint64_t now_ns, uint64_t cpu_ns, uint64_t spun_ns,
               enum load_class class) {
    /* Spinning is measured by the clock, CPU time in other ways: a little less is no contradiction.
     */
    uint64_t worked_ns = max_u64(cpu_ns > spun_ns ? cpu_ns - spun_ns : 0, l->worked_ns);
    uint64_t length = now_ns - l->looked_ns;
    if (length == 0) {
        return;
    }
    u128 ppm = (u128)(worked_ns - l->worked_ns) * MILLION / length * MILLION / l->share_ppm;
    int64_t now_ppm = (int64_t)min_u64(ppm > MILLION ? MILLION : (uint64_t)ppm, MILLION);
    int64_t weight = (int64_t)min_u64(length, MEMORY_NS);
    l->ppm = (uint32_t)(l->ppm + (now_ppm - l->ppm) * weight / (int64_t)MEMORY_NS);
    uint64_t used = cpu_ns - min_u64(l->cpu_ns, cpu_ns);
    uint64_t left = length - min_u64(used, length);
    uint64_t owed = min_u64(length, LOAD_WINDOW_NS) * REST_PERMILLE / 1000;
    l->rest_ns = owed > left ? owed - left : 0;
    l->cpu_ns = cpu_ns;
    choose_class(l, now_ns, class);
    sum_up_second(l, now_ns, worked_ns);
    l->looked_ns = now_ns;
    l->worked_ns = worked_ns;
}

void load_relieve(struct load *l, uint64_t now_ns, bool is_relieved) {
    if (is_relieved && !l->is_relieved) {
        l->relieved_ns = now_ns;
    }
    l->is_relieved = is_relieved;
}

uint64_t load_rest(struct load *l) {
    uint64_t rest = l->wanted == CLASS_FIFO ? l->rest_ns : 0;
    l->rest_ns = 0;
    return rest;
}

uint64_t load_tolerance(const struct load *l) {
    if (l->ppm <= QUIET_PPM) {
        return 0;
    }
    uint64_t over = l->ppm - QUIET_PPM;
    return min_u64(over * TOLERANCE_MAX_NS / (FULL_PPM - QUIET_PPM), TOLERANCE_MAX_NS);
}

uint64_t load_gather(struct load *l, uint64_t began_ns, uint64_t now_ns, uint64_t limit_ns) {
    uint64_t until = min_u64(began_ns + load_tolerance(l), limit_ns);
    l->gather_from_ns = now_ns;
    l->gather_until_ns = until >= now_ns + REST_MIN_NS ? until : 0;
    return l->gather_until_ns;
}

void load_sent(struct load *l, uint64_t due_ns) {
    if (due_ns >= l->gather_until_ns) {
        return;
    }
    uint64_t waited = l->gather_until_ns - max_u64(due_ns, l->gather_from_ns);
    counter_add(&l->coalesced_frames, 1);
    counter_set(&l->coalesced_max_ns, max_u64(counter_get(&l->coalesced_max_ns), waited));
}
