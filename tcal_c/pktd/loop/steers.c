/* While steering is on the data thread stays on its processor: if it came to the one that does the
 * receivers' work, each would wait for the other. The control thread opens the files and writes
 * masks, a few between two commands, since that takes the kernel some time. Taking them back is the
 * data thread's: what is written after it must not overtake what is still on its way on another
 * processor, so nothing may wait there, nor have been written a moment ago, nor be written in
 * between.
 */
#include "loop.h"

#include "common/bell.h"
#include "common/clock.h"
#include "pktd/ports/steering.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PORTS_AT_A_TIME 16

void steers_open(struct loop *loop, const struct loop_options *options) {
    struct steers *s = &loop->steers;
    if (loop->is_virtual || loop->io_threads.count || options->sharers > 1 ||
        sched_getaffinity(0, sizeof s->set, &s->set) || CPU_COUNT(&s->set) < 2) {
        return;
    }
    s->may = true;
    s->looked_ns = clock_now();
}

void steers_close(struct loop *loop) {
    if (loop->steers.backlog >= 0) {
        close(loop->steers.backlog);
    }
}

/* False: the machine does not permit it. */
static bool pin(struct steers *s) {
    cpu_set_t one;
    int cpu = sched_getcpu();
    CPU_ZERO(&one);
    if (cpu < 0) {
        return false;
    }
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) {
        return false;
    }
    atomic_store_explicit(&s->cpu, cpu, memory_order_relaxed);
    s->is_pinned = true;
    return true;
}

static void unpin(struct steers *s) {
    sched_setaffinity(0, sizeof s->set, &s->set);
    s->is_pinned = false;
}

static bool is_steerable(const struct port *port) {
    return port->kind == PORT_TAP && port->out < 0 && !port->gone;
}

static struct steer_window count_window(struct loop *loop) {
    struct steer_window w = {.load_ppm = loop->load.ppm};
    for (uint32_t i = 0; i < loop->steers.ports; i++) {
        const struct port *port = loop->port[i];
        uint32_t frames = port ? port->window_frames : 0;
        w.frames += frames;
        w.most_frames = frames > w.most_frames ? frames : w.most_frames;
        w.active += frames >= STEER_ACTIVE_FRAMES && is_steerable(port);
    }
    return w;
}

static void ask_for(struct loop *loop, const struct steer_window *w) {
    bool any = false;
    for (uint32_t i = 0; i < loop->steers.ports; i++) {
        struct port *port = loop->port[i];
        if (port && is_steerable(port) && port->steered == STEERED_NOT &&
            steer_port(w, port->window_frames)) {
            atomic_store_explicit(&port->steered, STEERED_ASKED, memory_order_release);
            any = true;
        }
    }
    if (any) {
        atomic_store(&loop->steers.asked, true);
        bell_ring(loop->report);
    }
}

/* No packet waits for its protocol work on any processor. A read gives whole lines, as many as fit
 * into a page. */
static bool is_drained(struct steers *s) {
    char text[4096 + 1];
    off_t at = 0;
    ssize_t got;
    if (s->backlog < 0) {
        s->backlog = open("/proc/net/softnet_stat", O_RDONLY | O_CLOEXEC);
    }
    while (s->backlog >= 0 && (got = pread(s->backlog, text, sizeof text - 1, at)) > 0) {
        text[got] = 0;
        if (!steer_is_drained(text)) {
            return false;
        }
        at += got;
    }
    return true;
}

static void take_back(struct loop *loop, uint64_t now_ns) {
    uint32_t left = 0, done = 0;
    bool drained = is_drained(&loop->steers);
    for (uint32_t i = 0; i < loop->steers.ports; i++) {
        struct port *port = loop->port[i];
        if (!port || port->steered == STEERED_NOT || port->steered == STEERED_REFUSED) {
            continue;
        }
        if (port->steered == STEERED_NOW && drained && done < PORTS_AT_A_TIME &&
            steer_is_over(now_ns, port->wrote_ns, loop->steers.off_ns)) {
            done++;
            port_steer(port, "0");
            atomic_store_explicit(&port->steered, STEERED_NOT, memory_order_release);
        } else {
            left++;
        }
    }
    if (left == 0) {
        unpin(&loop->steers);
    }
}

static void end_window(struct loop *loop, uint64_t now_ns) {
    struct steers *s = &loop->steers;
    struct steer_window w = count_window(loop);
    bool was_on = s->steer.is_on;
    bool is_on = steer_look(&s->steer, &w, now_ns - s->looked_ns);
    s->off_ns = was_on && !is_on ? now_ns : s->off_ns;
    s->is_unable = is_on && !s->is_pinned && !pin(s);
    load_relieve(&loop->load, now_ns, is_on && s->is_pinned);
    if (is_on && s->is_pinned) {
        ask_for(loop, &w);
    }
    for (uint32_t i = 0; i < s->ports; i++) {
        if (loop->port[i]) {
            loop->port[i]->window_frames = 0;
        }
    }
    s->looked_ns = now_ns;
}

/* Where the first file could not be written no other will be. */
static bool is_refused(const struct steers *s) {
    return s->is_unable || (counter_get(&s->refused) && !counter_get(&s->ports_steered));
}

void steers_look(struct loop *loop, uint64_t now_ns) {
    struct steers *s = &loop->steers;
    if (!s->may) {
        return;
    }
    if (is_refused(s)) {
        s->steer.is_on = false;
        load_relieve(&loop->load, now_ns, false);
    } else if (now_ns - s->looked_ns >= STEER_WINDOW_NS) {
        end_window(loop, now_ns);
    }
    if (s->is_pinned && !s->steer.is_on) {
        take_back(loop, now_ns);
    }
}

void steers_apply(struct loop *loop, struct port *const *ports, uint32_t end) {
    struct steers *s = &loop->steers;
    char mask[STEER_MASK_BYTES];
    uint32_t done = 0;
    if (!atomic_exchange(&s->asked, false)) {
        return;
    }
    int cpu = atomic_load_explicit(&s->cpu, memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++) {
        if (!ports[i] ||
            atomic_load_explicit(&ports[i]->steered, memory_order_acquire) != STEERED_ASKED) {
            continue;
        }
        if (done == PORTS_AT_A_TIME) {
            atomic_store(&s->asked, true);
            bell_ring(loop->report);
            return;
        }
        done++;
        int error =
            steer_mask(&s->set, cpu, s->turn++, mask) ? port_steer(ports[i], mask) : -ENODEV;
        counter_add(error ? &s->refused : &s->ports_steered, 1);
        atomic_store_explicit(&ports[i]->steered, error ? STEERED_REFUSED : STEERED_NOW,
                              memory_order_release);
    }
}
