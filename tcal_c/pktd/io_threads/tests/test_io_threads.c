/* Threads that read and write: the same packets in the same order with any number of them, also
 * while ports change I/O threads. */
#include "ends.h"
#include "common/tests/check.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOSSY "rate=400000000 delay=300000 jitter=50000 loss=50000000 queue=60000 dist=normal up=1"

struct outcome {
    uint64_t written[2];
    uint64_t hash[2];
    uint64_t digest[4];
    uint64_t rx, tx;
};

static int write_now(void *context, uint32_t number, uint64_t at_ns, const struct iovec *io,
                     int count) {
    (void)context, (void)at_ns;
    return port_write(&ends[number].port, io, count);
}

/* Frames enter by their times, whichever thread was faster: a link's digest has the order in which
 * the engine has found out what became of packets. */
static void enter_by_time(struct sim *sim) {
    for (;;) {
        bool may[2];
        for (int i = 0; i < 2; i++) {
            may[i] = ends[i].entered < ends[i].came;
            if (!may[i] && ends[i].came < FRAMES) {
                return; /* it may have an earlier one */
            }
        }
        if (!may[0] && !may[1]) {
            return;
        }
        struct end *end =
            may[0] && (!may[1] || ends[0].entered <= ends[1].entered) ? ends : ends + 1;
        const struct came *next = &end->queue[end->entered++];
        sim_run(sim, next->at_ns);
        engine_input(sim->engine, end->port.number, next->frame, next->bytes, next->at_ns);
    }
}

static void enter(struct sim *sim, const struct port *port, struct frame *frame, size_t bytes,
                  uint64_t at_ns) {
    struct end *end = &ends[port->number];
    CHECK(end->came < FRAMES);
    end->queue[end->came++] = (struct came){frame, bytes, at_ns};
    enter_by_time(sim);
}

/* As the core does while it has the turn. */
static uint32_t read_directly(struct sim *sim, int set) {
    struct epoll_event event[2];
    struct port_frame got;
    static uint8_t data[FRAME_LIMIT + VNET_BYTES];
    uint32_t count = 0;
    int ready = epoll_wait(set, event, 2, 0);
    for (int i = 0; i < ready; i++) {
        struct port *port = event[i].data.ptr;
        for (int n = 0; n < 8 && port_read(port, data, sizeof data, &got) == 1; n++) {
            struct frame *frame = pool_frame(&sim->engine->transit.pool, got.bytes);
            CHECK(frame);
            memcpy(frame->data, data, got.bytes + VNET_BYTES);
            enter(sim, port, frame, got.bytes, got.at_ns);
            count++;
        }
    }
    return count;
}

static uint32_t take_inputs(struct sim *sim, uint32_t *gone) {
    struct io_thread_input input;
    uint32_t count = 0;
    bool lost;
    for (uint32_t i = 0; i < io_threads.count; i++) {
        while (io_threads_input(&io_threads, &io_threads.io_thread[i], &input, &lost)) {
            CHECK(!lost);
            if (input.frame) {
                enter(sim, input.port, input.frame, input.bytes, input.at_ns);
                count++;
            } else {
                (*gone)++;
            }
        }
    }
    return count;
}

static uint32_t turn(struct sim *sim, int epoll, uint32_t *gone) {
    io_threads_finish(&io_threads);
    uint32_t count = take_inputs(sim, gone);
    if (io_threads.are_given) {
        return count;
    }
    for (uint32_t i = 0; i < io_threads.count; i++) {
        count += read_directly(sim, io_threads.io_thread[i].ports);
    }
    return io_threads.count ? count : read_directly(sim, epoll);
}

/* Gives the ports away and takes them back, every now and then in the middle. */
static void run_all(struct sim *sim, int epoll, uint32_t *gone) {
    for (uint32_t done = 0, rounds = 0; done < 2 * FRAMES; rounds++) {
        ends_feed();
        if (io_threads.count && rounds % 7 == 0 && !io_threads.are_given) {
            io_threads_give(&io_threads);
        } else if (rounds % 64 == 63) {
            io_threads_recall(&io_threads);
            done += take_inputs(sim, gone);
        }
        done += turn(sim, epoll, gone);
        sched_yield();
    }
    sim_run(sim, T0 + 2 * FRAMES * GAP_NS);
}

/* The ends go while I/O threads have the turn. */
static void close_ends(struct sim *sim, int epoll, uint32_t *gone) {
    if (io_threads.count) {
        io_threads_give(&io_threads);
    }
    close(ends[0].peer);
    close(ends[1].peer);
    while (io_threads.count && *gone < 2) {
        turn(sim, epoll, gone);
        sched_yield();
    }
    io_threads_recall(&io_threads);
    close(ends[0].port.fd);
    close(ends[1].port.fd);
}

static struct outcome run_with(uint32_t count) {
    struct outcome o = {0};
    uint32_t gone = 0;
    int core = eventfd(0, EFD_NONBLOCK);
    int epoll = epoll_create1(0);
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, LOSSY);
    sim->engine->transit.digests = DIGESTS_TIMES;
    sim->engine->deliver = write_now;
    sim->engine->hand_over = count ? ends_hand_over : NULL;
    CHECK_EQ(io_threads_start(&io_threads, count, false, sim->engine, &late, core), 0);
    ends_open(epoll);
    run_all(sim, epoll, &gone);
    close_ends(sim, epoll, &gone);
    CHECK_EQ(counter_get(&io_threads.frames) > 0, count > 0);
    for (int i = 0; i < 4; i++) {
        o.written[i / 2] = ends[i / 2].written;
        o.hash[i / 2] = ends[i / 2].hash;
        o.digest[i] = counter_get(&engine_link(sim->engine, (uint32_t)i)->digest);
    }
    o.rx = counter_get(&sim->engine->count.rx);
    o.tx = counter_get(&sim->engine->count.tx);
    CHECK_EQ(counter_get(&sim->engine->transit.in_flight), 0);
    io_threads_end(&io_threads);
    sim_free(sim);
    close(epoll);
    close(core);
    return o;
}

static void any_number_of_io_threads_does_the_same(void) {
    const struct outcome alone = run_with(0);
    CHECK(alone.written[0] > FRAMES / 2 && alone.digest[0] != 0 && alone.tx > 2 * FRAMES);
    for (uint32_t count = 1; count <= 3; count++) {
        const struct outcome o = run_with(count);
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(o.digest[i], alone.digest[i]);
            CHECK_EQ(o.written[i / 2], alone.written[i / 2]);
            CHECK_EQ(o.hash[i / 2], alone.hash[i / 2]);
        }
        CHECK_EQ(o.rx, alone.rx);
        CHECK_EQ(o.tx, alone.tx);
    }
}

static void look(uint64_t *now_ns, uint64_t *cpu_ns, uint64_t *frames, uint64_t permille,
                 uint64_t rate) {
    *now_ns += IO_THREADS_LOOK_NS;
    *cpu_ns += IO_THREADS_LOOK_NS / 1000 * permille;
    *frames += rate / 100;
    io_threads_look(&io_threads, *now_ns, *cpu_ns, *frames);
}

static void io_threads_help_while_there_is_much_to_do(void) {
    uint64_t now = T0, cpu = 0, frames = 0;
    int core = eventfd(0, EFD_NONBLOCK);
    struct sim *sim = sim_new(POOL);
    CHECK_EQ(io_threads_start(&io_threads, 2, false, sim->engine, &late, core), 0);
    look(&now, &cpu, &frames, 900, 100000); /* nothing to compare with yet */
    CHECK(!io_threads.are_given);
    look(&now, &cpu, &frames, 500, 100000);
    CHECK(!io_threads.are_given);
    look(&now, &cpu, &frames, 700, 100000);
    CHECK(io_threads.are_given);
    for (int i = 0; i < 100; i++) {
        look(&now, &cpu, &frames, 50, 60000);
        CHECK(io_threads.are_given);
    }
    for (int i = 0; i < 19; i++) {
        look(&now, &cpu, &frames, 50, 40000);
        CHECK(io_threads.are_given);
    }
    look(&now, &cpu, &frames, 50, 60000); /* not one after the other */
    for (int i = 0; i < 19; i++) {
        look(&now, &cpu, &frames, 50, 40000);
        CHECK(io_threads.are_given);
    }
    look(&now, &cpu, &frames, 50, 40000);
    CHECK(!io_threads.are_given);
    io_threads_end(&io_threads);
    sim_free(sim);
    close(core);
}

/* The core spins by the clock: if it was kept from its processor it seems to have worked less than
 * nothing. */
static void less_work_than_none_is_no_reason(void) {
    uint64_t now = T0, cpu = NS_PER_S, frames = 0;
    int core = eventfd(0, EFD_NONBLOCK);
    struct sim *sim = sim_new(POOL);
    CHECK_EQ(io_threads_start(&io_threads, 2, false, sim->engine, &late, core), 0);
    look(&now, &cpu, &frames, 100, 100000);
    look(&now, &cpu, &frames, 100, 100000);
    cpu -= 2 * IO_THREADS_LOOK_NS;
    look(&now, &cpu, &frames, 100, 100000);
    CHECK(!io_threads.are_given);
    look(&now, &cpu, &frames, 1000, 100000); /* this much was counted before */
    CHECK(!io_threads.are_given);
    look(&now, &cpu, &frames, 1700, 100000);
    CHECK(io_threads.are_given);
    io_threads_recall(&io_threads);
    io_threads_end(&io_threads);
    sim_free(sim);
    close(core);
}

static void too_little_memory_is_said(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    struct sim *sim = sim_new(2u << 20);
    CHECK_EQ(io_threads_start(&io_threads, 2, false, sim->engine, &late, core), -ENOMEM);
    io_threads_end(&io_threads);
    sim_free(sim);
    close(core);
}

void test_io_threads(void) {
    any_number_of_io_threads_does_the_same();
    io_threads_help_while_there_is_much_to_do();
    less_work_than_none_is_no_reason();
    too_little_memory_is_said();
}
