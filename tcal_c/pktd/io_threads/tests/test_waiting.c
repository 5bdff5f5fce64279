/* Who sleeps for lack of room, packets or a turn, and is told of them. */
#include "ends.h"
#include "common/clock.h"
#include "common/tests/check.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DEADLINE_NS (60 * NS_PER_S)
#define AT_ONCE "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1"

/* Two ends, joined by links without delay, of which an I/O thread has the turn. */
static struct sim *begin(int core) {
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, AT_ONCE);
    sim->engine->hand_over = ends_hand_over;
    CHECK_EQ(io_threads_start(&io_threads, 1, false, sim->engine, &late, core), 0);
    ends[0] = (struct end){.port = {.number = 0}};
    ends[1] = (struct end){.port = {.number = 1}};
    io_threads_give(&io_threads);
    return sim;
}

/* Whoever waits for something to move would wait for ever for what nobody tells. */
static void what_has_been_written_is_told_once(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    struct sim *sim = begin(core);
    CHECK(!io_threads_finish(&io_threads));
    ends_make(&ends[0], 0);
    sim_send(sim, 0, &ends[0].frame);
    sim_run(sim, sim->now_ns + GAP_NS);
    CHECK_EQ(counter_get(&sim->engine->transit.in_flight), 1);
    while (!io_threads_finish(&io_threads)) {
        sched_yield();
    }
    CHECK_EQ(counter_get(&sim->engine->transit.in_flight), 0);
    CHECK_EQ(counter_get(&sim->engine->count.tx), 1);
    CHECK(!io_threads_finish(&io_threads));
    io_threads_recall(&io_threads);
    io_threads_end(&io_threads);
    sim_free(sim);
    close(core);
}

/* Whether an I/O thread is asleep, by the kernel's word. Nothing else here has a thread of that
 * name. */
static bool a_io_thread_sleeps(void) {
    DIR *threads = opendir("/proc/self/task");
    bool sleeps = false;
    CHECK(threads);
    for (struct dirent *entry; (entry = readdir(threads));) {
        char path[300], line[512];
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE *stat = fopen(path, "r");
        sleeps |= stat && fgets(line, sizeof line, stat) && strstr(line, "(pktd-io) S");
        if (stat) {
            fclose(stat);
        }
    }
    closedir(threads);
    return sleeps;
}

static void send_one(struct sim *sim, uint32_t number) {
    ends_make(&ends[0], number);
    sim_send(sim, 0, &ends[0].frame);
    sim_run(sim, sim->now_ns + GAP_NS);
}

/* One packet more than there is room for what has been written: it waits, and so does the I/O
 * thread, which takes no processor from whoever could make room. */
static void who_has_no_room_to_write_sleeps_until_there_is(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    uint64_t until = clock_now() + DEADLINE_NS;
    struct sim *sim = begin(core);
    for (uint32_t i = 0; i < IO_THREAD_SLOTS; i++) {
        send_one(sim, 0);
    }
    while (spsc_count(&io_threads.io_thread[0].done) < IO_THREAD_SLOTS) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    send_one(sim, 0);
    while (!a_io_thread_sleeps()) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    CHECK_EQ(spsc_count(&io_threads.io_thread[0].out), 1);
    CHECK(io_threads_finish(&io_threads));
    while (!io_threads_finish(&io_threads)) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    io_threads_recall(&io_threads);
    CHECK_EQ(ends[1].written, IO_THREAD_SLOTS + 1);
    CHECK_EQ(counter_get(&sim->engine->transit.in_flight), 0);
    io_threads_end(&io_threads);
    sim_free(sim);
    close(core);
}

static void close_ends(void) {
    for (int i = 0; i < 2; i++) {
        close(ends[i].peer);
        close(ends[i].port.fd);
    }
}

static bool is_ready(int set) {
    struct epoll_event event;
    return epoll_wait(set, &event, 1, 0) == 1;
}

/* Packets that wait while an I/O thread has the turn, and has no frames to read more of them, are
 * seen by the core when the turn comes back, and never before. */
static void the_core_sees_packets_while_it_has_the_turn(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    int epoll = epoll_create1(0);
    uint64_t until = clock_now() + DEADLINE_NS;
    struct epoll_event event;
    struct sim *sim = sim_new(POOL);
    CHECK_EQ(io_threads_start(&io_threads, 1, false, sim->engine, &late, core), 0);
    CHECK_EQ(io_threads_watch(&io_threads, epoll, 77), 0);
    ends_open(-1);
    for (int i = 0; i < 2; i++) {
        ends_feed();
        CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 1);
        CHECK_EQ(event.data.u32, 77);
        io_threads_give(&io_threads);
        while (!a_io_thread_sleeps() || !is_ready(io_threads.io_thread[0].ports)) {
            CHECK(clock_now() < until);
            ends_feed();
            sched_yield();
        }
        CHECK(!is_ready(epoll));
        CHECK_EQ(io_threads_watch(&io_threads, epoll, 77), -EEXIST); /* which could be refused */
        io_threads_recall(&io_threads);
    }
    CHECK(is_ready(epoll));
    close_ends();
    io_threads_end(&io_threads);
    sim_free(sim);
    close(epoll);
    close(core);
}

/* IO threads with the turn at two ports that have packets already. */
static struct sim *begin_reading(uint32_t count, int core) {
    struct sim *sim = sim_new(POOL);
    CHECK_EQ(io_threads_start(&io_threads, count, false, sim->engine, &late, core), 0);
    ends_open(-1);
    ends_feed();
    io_threads_give(&io_threads);
    return sim;
}

static void finish_reading(struct sim *sim, int core) {
    io_threads_recall(&io_threads);
    io_threads_end(&io_threads);
    ends_before_read = NULL;
    close_ends();
    sim_free(sim);
    close(core);
}

static void ask_for_the_turn(const struct port *port) {
    atomic_store(&io_threads_of(&io_threads, port)->recall, true);
}

/* The core waits for the I/O thread that it has asked, and so do all packets. */
static void who_is_asked_for_the_turn_reads_no_other_port(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    uint64_t until = clock_now() + DEADLINE_NS;
    ends_before_read = ask_for_the_turn;
    struct sim *sim = begin_reading(1, core);
    while (atomic_load(&io_threads.io_thread[0].turn)) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    CHECK((ends[0].read > 0) != (ends[1].read > 0));
    finish_reading(sim, core);
}

static atomic_bool reads;

static void wait_for_the_other_to_be_asked(const struct port *port) {
    uint64_t until = clock_now() + DEADLINE_NS;
    if (port->number != 0) {
        return;
    }
    atomic_store(&reads, true);
    while (!atomic_load(&io_threads.io_thread[1].recall)) {
        CHECK(clock_now() < until);
        sched_yield();
    }
}

static void all_are_asked_for_the_turn_before_one_is_waited_for(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    uint64_t until = clock_now() + DEADLINE_NS;
    ends_before_read = wait_for_the_other_to_be_asked;
    struct sim *sim = begin_reading(2, core);
    while (!atomic_load(&reads)) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    io_threads_recall(&io_threads);
    CHECK(!io_threads.are_given);
    finish_reading(sim, core);
}

/* The device of a packet socket may have gone: reading does not say so, and whoever awaits news
 * asks. */
static void a_device_that_is_down_is_told(void) {
    int core = eventfd(0, EFD_NONBLOCK);
    uint64_t until = clock_now() + DEADLINE_NS;
    struct io_thread_input input;
    bool lost;
    struct sim *sim = sim_new(POOL);
    CHECK_EQ(io_threads_start(&io_threads, 1, false, sim->engine, &late, core), 0);
    ends_open(-1);
    ends[1].port.kind = PORT_PACKET;
    close(ends[1].peer);
    io_threads_give(&io_threads);
    while (!io_threads_input(&io_threads, &io_threads.io_thread[0], &input, &lost)) {
        CHECK(clock_now() < until);
        sched_yield();
    }
    CHECK(!input.frame && !input.port && !lost);
    io_threads_recall(&io_threads);
    CHECK(!io_threads_input(&io_threads, &io_threads.io_thread[0], &input, &lost));
    ends[1].peer = -1;
    io_threads_end(&io_threads);
    close_ends();
    sim_free(sim);
    close(core);
}

void test_waiting(void) {
    what_has_been_written_is_told_once();
    who_has_no_room_to_write_sleeps_until_there_is();
    the_core_sees_packets_while_it_has_the_turn();
    who_is_asked_for_the_turn_reads_no_other_port();
    all_are_asked_for_the_turn_before_one_is_waited_for();
    a_device_that_is_down_is_told();
}
