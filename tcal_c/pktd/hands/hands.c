/* Threads help where a core is not enough and only then: as long as the core alone has the turn, a
 * packet meets one thread and not three, and nobody has to be woken for it.
 *
 * The core stays the only one that decides: what hands read enters the engine here, packet by
 * packet in the order of each port, and what leaves it goes to the hand of its port in the engine's
 * order. So links carry the same packets with any number of hands.
 */
#include "hands.h"

#include "common/clock.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>

#define BUSY_PERMILLE 600u /* of a core: then hands get the ports */
#define QUIET_LOOKS 20u
#define WAIT_NS 20000

static void rest(void) {
    /* Not a spin: the hand may need this processor. */
    nanosleep(&(struct timespec){0, WAIT_NS}, NULL);
}

static void restock(struct hand *h, struct frame *frame) {
    struct frame **room = spsc_room(&h->stock);
    *room = frame; /* there is room for all frames that a hand has */
    spsc_put(&h->stock);
}

static bool fill_stock(struct hands *hands, struct hand *h) {
    for (uint32_t i = 0; i < HAND_SMALL + HAND_LARGE; i++) {
        size_t bytes = i < HAND_SMALL ? HAND_SMALL_BYTES : FRAME_LIMIT;
        struct frame *frame = pool_frame(&hands->engine->transit.pool, bytes);
        if (!frame) {
            return false;
        }
        restock(h, frame);
    }
    return true;
}

int hands_start(struct hands *hands, uint32_t count, bool always, struct engine *engine,
                struct histogram *late, int core) {
    _Static_assert(HAND_SMALL + HAND_LARGE <= HAND_SLOTS, "the stock's queue holds all frames");
    *hands = (struct hands){.always = always, .epoll = -1, .engine = engine, .late = late};
    while (hands->count < count) {
        struct hand *h = &hands->hand[hands->count];
        int error = hand_start(h, core, &hands->core_sleeps);
        if (error) {
            return error;
        }
        hands->count++;
        if (!fill_stock(hands, h)) {
            return -ENOMEM;
        }
    }
    return 0;
}

void hands_end(struct hands *hands) {
    for (uint32_t i = 0; i < hands->count; i++) {
        hand_end(&hands->hand[i]);
    }
    hands->count = 0;
}

static void wake_hand(struct hand *h) {
    if (atomic_exchange_explicit(&h->sleeps, false, memory_order_acq_rel)) {
        hand_ring(h);
    }
}

/* What the hand has to write may have waited for room in what is done. */
static bool finish(struct hands *hands, struct hand *h) {
    struct hand_done *done = spsc_first(&h->done);
    bool any = done;
    for (; done; done = spsc_first(&h->done)) {
        engine_left(hands->engine, &done->leaving, done->error);
        if (!done->error) {
            histogram_add(hands->late, done->late_ns);
        }
        spsc_take(&h->done);
    }
    if (any && spsc_count(&h->out)) {
        wake_hand(h);
    }
    return any;
}

bool hands_finish(struct hands *hands) {
    uint64_t frames = 0;
    bool any = false;
    for (uint32_t i = 0; i < hands->count; i++) {
        any |= finish(hands, &hands->hand[i]);
        frames += counter_get(&hands->hand[i].frames);
    }
    counter_set(&hands->frames, frames);
    return any;
}

static int control(const struct hands *hands, int operation, uint32_t i, uint32_t events) {
    struct epoll_event event = {.events = events, .data.u32 = hands->tag - i};
    return epoll_ctl(hands->epoll, operation, hands->hand[i].ports, &event) ? -errno : 0;
}

int hands_watch(struct hands *hands, int epoll, uint32_t tag) {
    int error = 0;
    hands->epoll = epoll;
    hands->tag = tag;
    for (uint32_t i = 0; i < hands->count && error == 0; i++) {
        error = control(hands, EPOLL_CTL_ADD, i, EPOLLIN);
    }
    return error;
}

/* What is there already can always be changed: no ports fall silent because the kernel has no room
 * for them when the turn comes back, as it may have none for what is added. */
static void let_core_see(const struct hands *hands, uint32_t events) {
    for (uint32_t i = 0; hands->epoll >= 0 && i < hands->count; i++) {
        int error = control(hands, EPOLL_CTL_MOD, i, events);
        assert(error == 0);
        (void)error;
    }
}

void hands_give(struct hands *hands) {
    let_core_see(hands, 0);
    for (uint32_t i = 0; i < hands->count; i++) {
        struct hand *h = &hands->hand[i];
        h->is_given = true;
        atomic_store_explicit(&h->recall, false, memory_order_relaxed);
        atomic_store_explicit(&h->turn, true, memory_order_release);
        hand_ring(h);
    }
    hands->are_given = hands->count > 0;
}

/* All of them are asked before one is waited for: they stop side by side. */
static void ask_back(struct hands *hands) {
    for (uint32_t i = 0; i < hands->count; i++) {
        struct hand *h = &hands->hand[i];
        if (h->is_given) {
            atomic_store_explicit(&h->recall, true, memory_order_release);
            hand_ring(h);
        }
    }
}

static void recall(struct hands *hands, struct hand *h) {
    if (!h->is_given) {
        return;
    }
    while (atomic_load_explicit(&h->turn, memory_order_acquire)) {
        rest();
    }
    do {
        finish(hands, h);
    } while (hand_write(h, HAND_SLOTS));
    h->is_given = false;
}

void hands_recall(struct hands *hands) {
    ask_back(hands);
    for (uint32_t i = 0; i < hands->count; i++) {
        recall(hands, &hands->hand[i]);
    }
    let_core_see(hands, EPOLLIN);
    hands->are_given = false;
    hands->look.quiet = 0;
}

bool hands_write(struct hands *hands, struct port *port, uint64_t due_ns,
                 const struct leaving *leaving, const struct iovec *io, int count) {
    struct hand *h = hands_of(hands, port);
    struct hand_job *job;
    if (!h->is_given) {
        return false;
    }
    while (!(job = spsc_room(&h->out))) {
        wake_hand(h);
        finish(hands, h);
        rest();
    }
    job->leaving = *leaving;
    job->port = port;
    job->due_ns = due_ns;
    memcpy(&job->vnet, io[0].iov_base, sizeof job->vnet);
    job->header_bytes = count == 3 ? (uint32_t)io[1].iov_len : 0;
    memcpy(job->header, io[1].iov_base, job->header_bytes);
    job->payload = io[count - 1].iov_base;
    job->payload_bytes = io[count - 1].iov_len;
    spsc_put(&h->out);
    wake_hand(h);
    return true;
}

/* The frame as the engine is to have it; another one goes to the hand in its stead. NULL: there is
 * no memory, which is counted, and the hand has the frame back. */
static struct frame *exchange(struct hands *hands, struct hand *h, struct frame *frame,
                              size_t bytes) {
    struct pool *pool = &hands->engine->transit.pool;
    struct frame *fresh = pool_frame(pool, bytes);
    if (fresh && fresh->size_class != frame->size_class) {
        memcpy(fresh->data, frame->data, bytes + VNET_BYTES);
        restock(h, frame);
        return fresh;
    }
    if (!fresh) {
        engine_lost(hands->engine, frame->data, bytes);
    }
    restock(h, fresh ? fresh : frame);
    return fresh ? frame : NULL;
}

bool hands_input(struct hands *hands, struct hand *h, struct hand_input *input, bool *lost) {
    struct hand_input *first = spsc_first(&h->in);
    *lost = false;
    if (!first) {
        return false;
    }
    *input = *first;
    spsc_take(&h->in);
    if (input->frame) {
        input->frame = exchange(hands, h, input->frame, input->bytes);
        *lost = !input->frame;
        wake_hand(h);
    }
    return true;
}

bool hands_may_sleep(struct hands *hands) {
    if (!hands->are_given) {
        return true;
    }
    atomic_exchange_explicit(&hands->core_sleeps, true, memory_order_acq_rel);
    for (uint32_t i = 0; i < hands->count; i++) {
        if (spsc_first(&hands->hand[i].in) || spsc_first(&hands->hand[i].done)) {
            hands_woke(hands);
            return false;
        }
    }
    return true;
}

void hands_woke(struct hands *hands) {
    if (hands->are_given) {
        atomic_exchange_explicit(&hands->core_sleeps, false, memory_order_acq_rel);
    }
}

/* Where a second has brought less than half of what made them help, for a while, they are not
 * needed any more. */
static bool are_needed(struct hands_look *look, uint64_t frames_per_s) {
    look->quiet = frames_per_s * 2 < look->given ? look->quiet + 1 : 0;
    return look->quiet < QUIET_LOOKS;
}

void hands_look(struct hands *hands, uint64_t now_ns, uint64_t cpu_ns, uint64_t frames) {
    struct hands_look *look = &hands->look;
    uint64_t took = now_ns - look->at_ns;
    /* Spinning is measured by the clock: where the thread was kept from its processor while it spun
     * there is less left than before, which is no work. */
    uint64_t worked = cpu_ns - min_u64(look->cpu_ns, cpu_ns);
    uint64_t busy = worked * 1000 / (took ? took : 1);
    uint64_t rate = (frames - look->frames) * NS_PER_S / (took ? took : 1);
    bool is_first = look->at_ns == 0;
    look->at_ns = now_ns;
    look->cpu_ns = max_u64(look->cpu_ns, cpu_ns);
    look->frames = frames;
    if (hands->always) {
        if (!hands->are_given) {
            hands_give(hands);
        }
    } else if (hands->are_given && !are_needed(look, rate)) {
        hands_recall(hands);
    } else if (!hands->are_given && !is_first && busy >= BUSY_PERMILLE) {
        look->given = rate;
        hands_give(hands);
    }
}

uint64_t hands_cpu_ns(const struct hands *hands) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < hands->count; i++) {
        clockid_t id;
        struct timespec t;
        if (pthread_getcpuclockid(hands->hand[i].thread, &id) == 0 && clock_gettime(id, &t) == 0) {
            sum += clock_ns(&t);
        }
    }
    return sum;
}
