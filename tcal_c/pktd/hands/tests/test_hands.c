/* Threads that read and write: the same packets in the same order with any number of them, also
 * while ports change hands. The ports are sockets; what is behind them is touched without locks, so
 * that a sanitizer sees it if two threads ever use a port at once. */
#include "common/clock.h"
#include "common/tests/check.h"
#include "pktd/hands/hands.h"
#include "pktd/record/xxh64.h"
#include "pktd/tests/sim.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define T0 1000000000ull /* when a sim begins */
#define GAP_NS 20000ull
#define FRAMES 3000u
#define POOL (128u << 20)
#define DEADLINE_NS (60 * NS_PER_S)
#define AT_ONCE "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1"
#define LOSSY "rate=400000000 delay=300000 jitter=50000 loss=50000000 queue=60000 dist=normal up=1"

struct came {
    struct frame *frame;
    size_t bytes;
    uint64_t at_ns;
};

struct end {
    struct port port;
    int peer;
    struct test_frame frame;
    uint32_t sent;
    uint32_t read;
    uint64_t written;
    uint64_t hash; /* of all that was written */
    struct came queue[FRAMES];
    uint32_t came;
    uint32_t entered;
};

struct outcome {
    uint64_t written[2];
    uint64_t hash[2];
    uint64_t digest[4];
    uint64_t rx, tx;
};

static struct end ends[2];
static struct hands hands;
static struct histogram late;

void port_settle(const struct port *port) {
    (void)port;
}

/* Small ones, some of middle size, some super-packets. */
static void make(struct end *end, uint32_t number) {
    unsigned from = end->port.number;
    if (number % 16 == 15) {
        make_frame(&end->frame, 4, TEST_TCP, from, 1 - from, 40000, 1400);
    } else {
        make_packet(&end->frame, from, 1 - from, number % 10 == 9 ? 6000 : 64 + number % 1000);
        memcpy(end->frame.data + ETH_BYTES + 28, &number, sizeof number);
    }
}

int port_read(struct port *port, uint8_t *data, size_t room, struct port_frame *frame) {
    struct end *end = &ends[port->number];
    uint32_t number;
    ssize_t got = read(port->fd, &number, sizeof number);
    if (got <= 0) {
        return got == 0 ? -ENODEV : 0;
    }
    CHECK_EQ(number, end->read++);
    make(end, number);
    CHECK(end->frame.bytes + VNET_BYTES <= room);
    memcpy(data, &end->frame.vnet, VNET_BYTES);
    memcpy(data + VNET_BYTES, end->frame.data, end->frame.bytes);
    *frame = (struct port_frame){end->frame.bytes, T0 + number * GAP_NS};
    return 1;
}

int port_write(struct port *port, const struct iovec *io, int count) {
    struct end *end = &ends[port->number];
    end->written++;
    for (int i = 0; i < count; i++) {
        end->hash = xxh64(io[i].iov_base, io[i].iov_len, end->hash);
    }
    return end->written % 500 ? 0 : -EIO; /* counted, in its place */
}

static int write_now(void *context, uint32_t number, uint64_t at_ns, const struct iovec *io,
                     int count) {
    (void)context, (void)at_ns;
    return port_write(&ends[number].port, io, count);
}

static bool hand_over(void *context, uint32_t number, uint64_t at_ns, const struct leaving *leaving,
                      const struct iovec *io, int count) {
    (void)context;
    return hands_write(&hands, &ends[number].port, at_ns, leaving, io, count);
}

static void open_ends(int epoll) {
    for (uint32_t i = 0; i < 2; i++) {
        int pair[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
        ends[i] =
            (struct end){.port = {.fd = pair[0], .number = i, .kind = PORT_TAP}, .peer = pair[1]};
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &ends[i].port};
        int set = hands.count ? hands_of(&hands, &ends[i].port)->ports : epoll;
        CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event), 0);
    }
}

static void feed(void) {
    for (uint32_t i = 0; i < 2; i++) {
        for (int n = 0; n < 50 && ends[i].sent < FRAMES; n++) {
            if (send(ends[i].peer, &ends[i].sent, sizeof ends[i].sent, MSG_DONTWAIT) < 0) {
                break;
            }
            ends[i].sent++;
        }
    }
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
    struct hand_input input;
    uint32_t count = 0;
    bool lost;
    for (uint32_t i = 0; i < hands.count; i++) {
        while (hands_input(&hands, &hands.hand[i], &input, &lost)) {
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
    hands_finish(&hands);
    uint32_t count = take_inputs(sim, gone);
    if (hands.are_given) {
        return count;
    }
    for (uint32_t i = 0; i < hands.count; i++) {
        count += read_directly(sim, hands.hand[i].ports);
    }
    return hands.count ? count : read_directly(sim, epoll);
}

/* Gives the ports away and takes them back, every now and then in the middle. */
static void run_all(struct sim *sim, int epoll, uint32_t *gone) {
    for (uint32_t done = 0, rounds = 0; done < 2 * FRAMES; rounds++) {
        feed();
        if (hands.count && rounds % 7 == 0 && !hands.are_given) {
            hands_give(&hands);
        } else if (rounds % 64 == 63) {
            hands_recall(&hands);
            done += take_inputs(sim, gone);
        }
        done += turn(sim, epoll, gone);
        sched_yield();
    }
    sim_run(sim, T0 + 2 * FRAMES * GAP_NS);
}

/* The ends go while hands have the turn. */
static void close_ends(struct sim *sim, int epoll, uint32_t *gone) {
    if (hands.count) {
        hands_give(&hands);
    }
    close(ends[0].peer);
    close(ends[1].peer);
    while (hands.count && *gone < 2) {
        turn(sim, epoll, gone);
        sched_yield();
    }
    hands_recall(&hands);
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
    sim->engine->hand_over = count ? hand_over : NULL;
    CHECK_EQ(hands_start(&hands, count, false, sim->engine, &late, core), 0);
    open_ends(epoll);
    run_all(sim, epoll, &gone);
    close_ends(sim, epoll, &gone);
    CHECK_EQ(counter_get(&hands.frames) > 0, count > 0);
    for (int i = 0; i < 4; i++) {
        o.written[i / 2] = ends[i / 2].written;
        o.hash[i / 2] = ends[i / 2].hash;
        o.digest[i] = counter_get(&engine_link(sim->engine, (uint32_t)i)->digest);
    }
    o.rx = counter_get(&sim->engine->count.rx);
    o.tx = counter_get(&sim->engine->count.tx);
    CHECK_EQ(counter_get(&sim->engine->transit.in_flight), 0);
    hands_end(&hands);
    sim_free(sim);
    close(epoll);
    close(core);
    return o;
}

static void any_number_of_hands_does_the_same(void) {
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
    *now_ns += HANDS_LOOK_NS;
    *cpu_ns += HANDS_LOOK_NS / 1000 * permille;
    *frames += rate / 100;
    hands_look(&hands, *now_ns, *cpu_ns, *frames);
}

static void hands_help_while_there_is_much_to_do(void) {
    uint64_t now = T0, cpu = 0, frames = 0;
    int core = eventfd(0, EFD_NONBLOCK);
    struct sim *sim = sim_new(POOL);
    CHECK_EQ(hands_start(&hands, 2, false, sim->engine, &late, core), 0);
    look(&now, &cpu, &frames, 900, 100000); /* nothing to compare with yet */
    CHECK(!hands.are_given);
    look(&now, &cpu, &frames, 500, 100000);
    CHECK(!hands.are_given);
    look(&now, &cpu, &frames, 700, 100000);
    CHECK(hands.are_given);
    for (int i = 0; i < 100; i++) {
        look(&now, &cpu, &frames, 50, 60000);
        CHECK(hands.are_given);
    }
    for (int i = 0; i < 19; i++) {
        look(&now, &cpu, &frames, 50, 40000);
        CHECK(hands.are_given);
    }
    look(&now, &cpu, &frames, 50, 60000); /* not one after the other */
    for (int i = 0; i < 19; i++) {
        look(&now, &cpu, &frames, 50, 40000);
        CHECK(hands.are_given);
    }
    look(&now, &cpu, &frames, 50, 40000);
    CHECK(!hands.are_given);
    hands_end(&hands);
    sim_free(sim);
    close(core);
}

/* Whoever waits for something to move would wait for ever for what nobody tells. */
static void what_has_been_written_is_told_once(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, AT_ONCE);
    sim->engine->hand_over = hand_over;
    CHECK_EQ(hands_start(&hands, 1, false, sim->engine, &late, core), 0);
    ends[0] = (struct end){.port = {.number = 0}};
    ends[1] = (struct end){.port = {.number = 1}};
    hands_give(&hands);
    CHECK(!hands_finish(&hands));
    make(&ends[0], 0);
    sim_send(sim, 0, &ends[0].frame);
    sim_run(sim, sim->now_ns + GAP_NS);
    CHECK_EQ(counter_get(&sim->engine->transit.in_flight), 1);
    while (!hands_finish(&hands)) {
        sched_yield();
    }
    CHECK_EQ(counter_get(&sim->engine->transit.in_flight), 0);
    CHECK_EQ(counter_get(&sim->engine->count.tx), 1);
    CHECK(!hands_finish(&hands));
    hands_recall(&hands);
    hands_end(&hands);
    sim_free(sim);
    close(core);
}

/* Whether a hand is asleep, by the kernel's word. Nothing else here has a thread of that name. */
static bool a_hand_sleeps(void) {
    DIR *threads = opendir("/proc/self/task");
    bool sleeps = false;
    CHECK(threads);
    for (struct dirent *entry; (entry = readdir(threads));) {
        char path[300], line[512];
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE *stat = fopen(path, "r");
        sleeps |= stat && fgets(line, sizeof line, stat) && strstr(line, "(pktd-hand) S");
        if (stat) {
            fclose(stat);
        }
    }
    closedir(threads);
    return sleeps;
}

static void send_one(struct sim *sim, uint32_t number) {
    make(&ends[0], number);
    sim_send(sim, 0, &ends[0].frame);
    sim_run(sim, sim->now_ns + GAP_NS);
}

/* One packet more than there is room for what has been written: it waits, and so does the hand,
 * which takes no processor from whoever could make room. */
static void who_has_no_room_to_write_sleeps_until_there_is(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    uint64_t until = clock_now() + DEADLINE_NS;
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, AT_ONCE);
    sim->engine->hand_over = hand_over;
    CHECK_EQ(hands_start(&hands, 1, false, sim->engine, &late, core), 0);
    ends[0] = (struct end){.port = {.number = 0}};
    ends[1] = (struct end){.port = {.number = 1}};
    hands_give(&hands);
    for (uint32_t i = 0; i < HAND_SLOTS; i++) {
        send_one(sim, 0);
    }
    while (spsc_count(&hands.hand[0].done) < HAND_SLOTS) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    send_one(sim, 0);
    while (!a_hand_sleeps()) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    CHECK_EQ(spsc_count(&hands.hand[0].out), 1);
    CHECK(hands_finish(&hands));
    while (!hands_finish(&hands)) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    hands_recall(&hands);
    CHECK_EQ(ends[1].written, HAND_SLOTS + 1);
    CHECK_EQ(counter_get(&sim->engine->transit.in_flight), 0);
    hands_end(&hands);
    sim_free(sim);
    close(core);
}

static void too_little_memory_is_said(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    struct sim *sim = sim_new(2u << 20);
    CHECK_EQ(hands_start(&hands, 2, false, sim->engine, &late, core), -ENOMEM);
    hands_end(&hands);
    sim_free(sim);
    close(core);
}

void test_hands(void) {
    any_number_of_hands_does_the_same();
    hands_help_while_there_is_much_to_do();
    what_has_been_written_is_told_once();
    who_has_no_room_to_write_sleeps_until_there_is();
    too_little_memory_is_said();
}
