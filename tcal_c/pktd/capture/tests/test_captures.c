/* Captures: what passes the ring between two threads, and the files. A strict reader of the files
 * is in the tests of the command.
 */
#include "common/tests/check.h"
#include "pktd/tests/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define POOL (64u << 20)
#define PAIR "rate=8000000 delay=1000000 jitter=0 loss=0 queue=4500 dist=normal up=1"
#define FILE_LIMIT (8u << 20)

static struct test_frame frame;
static uint8_t contents[FILE_LIMIT];

/* A directory that is gone when its last file is: its descriptor. */
static int new_directory(void) {
    char name[] = "/tmp/test-captures-XXXXXX";
    CHECK(mkdtemp(name));
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void remove_directory(int directory, const char *file) {
    char link[64];
    char name[256] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    CHECK(readlink(link, name, sizeof name - 1) > 0);
    unlinkat(directory, file, 0);
    CHECK(rmdir(name) == 0);
    close(directory);
}

static size_t read_file(int directory, const char *name) {
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    ssize_t bytes = read(fd, contents, sizeof contents);
    CHECK(bytes >= 0 && (size_t)bytes < sizeof contents);
    close(fd);
    return (size_t)bytes;
}

static uint32_t get32(size_t at) {
    uint32_t v;
    memcpy(&v, contents + at, sizeof v);
    return v;
}

/* Blocks of one type; `at` gets where the n-th of them begins. */
static uint32_t blocks(size_t bytes, uint32_t type, uint32_t nth, size_t *at) {
    uint32_t count = 0;
    for (size_t i = 0; i < bytes; i += get32(i + 4)) {
        uint32_t length = get32(i + 4);
        CHECK(length >= 12 && length % 4 == 0 && i + length <= bytes);
        CHECK_EQ(get32(i + length - 4), length);
        if (get32(i) == type && count++ == nth) {
            *at = i;
        }
    }
    return count;
}

struct taken {
    struct ring *ring;
    struct captured *to;
    uint64_t count;
    uint64_t random;
};

/* Checks that entries come whole and in order. */
static void take_all(struct taken *taken) {
    for (const struct ring_entry *entry; (entry = ring_first(taken->ring));) {
        const uint8_t *bytes = (const uint8_t *)(entry + 1);
        CHECK(entry->to == taken->to);
        CHECK_EQ(entry->at_ns, taken->count);
        CHECK_EQ(entry->frame_bytes, next_random(&taken->random) % 65000 + 1);
        for (uint32_t i = 0; i < entry->frame_bytes; i++) {
            CHECK(bytes[i] == (uint8_t)(taken->count + i));
        }
        taken->count++;
        ring_next(taken->ring);
    }
}

static void *taker(void *context) {
    struct taken *taken = context;
    while (taken->count < 2000) {
        take_all(taken);
        ring_sleep(taken->ring, taken->count < 2000 ? -1 : 0);
        take_all(taken);
    }
    return NULL;
}

static void put(struct ring *ring, struct captured *to, uint64_t number, size_t bytes) {
    static uint8_t data[65000];
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)(number + i);
    }
    struct ring_entry entry = {.to = to, .at_ns = number, .segments = 1};
    const struct iovec io[2] = {{data, bytes / 3}, {data + bytes / 3, bytes - bytes / 3}};
    ring_put(ring, &entry, io, 2);
}

static void a_ring_that_waits_loses_nothing(void) {
    struct ring ring;
    struct captured to = {0};
    struct taken taken = {.ring = &ring, .to = &to, .random = 88172645463325252ull};
    uint64_t random = taken.random;
    pthread_t thread;
    CHECK_EQ(ring_init(&ring, 1, true) || ring_make_room(&ring), 0);
    CHECK_EQ(ring.size, 1u << 20);
    CHECK_EQ(pthread_create(&thread, NULL, taker, &taken), 0);
    for (uint64_t i = 0; i < 2000; i++) {
        put(&ring, &to, i, next_random(&random) % 65000 + 1);
    }
    ring_wake(&ring);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(taken.count, 2000);
    CHECK_EQ(atomic_load(&ring.lost), 0);
    ring_destroy(&ring);
}

static void a_full_ring_counts_what_it_loses(void) {
    struct ring ring;
    struct captured to = {0};
    CHECK_EQ(ring_init(&ring, 1, false) || ring_make_room(&ring), 0);
    for (uint64_t i = 0; i < 100; i++) {
        put(&ring, &to, i, 60000);
    }
    uint64_t count = 0;
    for (const struct ring_entry *entry; (entry = ring_first(&ring)); count++) {
        CHECK_EQ(entry->at_ns, count);
        ring_next(&ring);
    }
    CHECK_EQ(count, 17);
    CHECK_EQ(atomic_load(&to.lost), 83);
    CHECK_EQ(atomic_load(&ring.lost), 83);
    put(&ring, &to, 7, 60000);
    CHECK_EQ(ring_first(&ring)->at_ns, 7);
    ring_destroy(&ring);
}

struct putter {
    struct captures *captures;
    struct captured *to;
    atomic_bool stop;
};

/* Super-packets, which are put in faster than they are cut. */
static void *put_without_end(void *context) {
    struct putter *putter = context;
    make_frame(&frame, 6, TEST_TCP, 0, 1, 100 * 600, 600);
    const struct ring_entry entry = {.to = putter->to, .segments = 100, .vnet = frame.vnet};
    const struct iovec io = {frame.data, frame.bytes};
    while (!atomic_load(&putter->stop)) {
        ring_put(&putter->captures->ring, &entry, &io, 1);
    }
    return NULL;
}

static void what_comes_after_the_question_holds_up_no_answer(void) {
    int directory = new_directory();
    struct captures captures;
    struct putter putter = {.captures = &captures};
    _Atomic(struct captured *) place = NULL;
    struct capture_request request = {.file = "one", .count = 1, .name = {"x"}, .place = {&place}};
    pthread_t thread;
    CHECK_EQ(captures_start(&captures, dup(directory), 16u << 20, false), 0);
    CHECK_EQ(captures_open(&captures, &request), 0);
    putter.to = atomic_load(&place);
    CHECK_EQ(pthread_create(&thread, NULL, put_without_end, &putter), 0);
    for (int i = 0; i < 3; i++) {
        captures_flush(&captures);
    }
    atomic_store(&putter.stop, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    captures_stop(&captures);
    remove_directory(directory, "one");
}

static void files_have_what_left_and_what_was_lost(void) {
    int directory = new_directory();
    struct sim *sim = sim_new(POOL);
    sim_capture(sim, dup(directory), 1, true);
    sim_pair(sim, PAIR);
    sim_do(sim, "epoch %llu unix=1000", T0);
    sim_do(sim, "capture a--b.pcapng 0=a->b 3=b->a");
    make_packet(&frame, 0, 1, 1500);
    for (int i = 0; i < 5; i++) {
        sim_send(sim, 0, &frame); /* three fit, two do not */
    }
    sim_run(sim, T0 + 1000 * MS);
    CHECK_TEXT(sim_ask(sim, "captures"), "ok written=5 lost=0 unwritten=0 errno=0");
    sim_end_captures(sim);
    size_t bytes = read_file(directory, "a--b.pcapng");
    size_t at = 0;
    CHECK_EQ(blocks(bytes, 0x0A0D0D0A, 0, &at), 1);
    CHECK_EQ(blocks(bytes, 1, 1, &at), 2);
    CHECK(memcmp(contents + at + 20, "b->a", 4) == 0);
    CHECK_EQ(blocks(bytes, 5, 1, &at), 2);
    CHECK_EQ(blocks(bytes, 6, 0, &at), 5);
    /* Both that found no room came first. */
    CHECK(memcmp(contents + at + 28 + 1516 + 4, "dropped: no room", 16) == 0);
    CHECK_EQ(get32(at + 16), 1000);
    blocks(bytes, 6, 2, &at);
    CHECK_EQ(get32(at + 16), 1000 + 1500000 + MS);
    CHECK_EQ(get32(at + 20), 1514);
    check_sums(&frame.vnet, frame.data, frame.bytes); /* completes them */
    CHECK(memcmp(contents + at + 28, frame.data, 1514) == 0);
    sim_free(sim);
    remove_directory(directory, "a--b.pcapng");
}

static void super_packets_are_cut_and_sums_completed(void) {
    static const int kinds[] = {TEST_TCP, TEST_UDP};
    for (size_t kind = 0; kind < 2; kind++) {
        int directory = new_directory();
        struct sim *sim = sim_new(POOL);
        sim_capture(sim, dup(directory), 1, true);
        sim_pair(sim, "rate=1000000000 delay=0 jitter=0 loss=0 queue=1000000 dist=normal up=1");
        sim_do(sim, "epoch %llu", T0);
        sim_do(sim, "capture one 0=x");
        make_frame(&frame, 6, kinds[kind], 0, 1, 9 * 1000 + 500, 1000);
        sim_send(sim, 0, &frame);
        sim_run(sim, T0 + 100 * MS);
        sim_do(sim, "captures");
        sim_end_captures(sim);
        size_t bytes = read_file(directory, "one");
        size_t at = 0;
        uint64_t last = 0;
        CHECK_EQ(blocks(bytes, 6, 0, &at), 10);
        for (uint32_t i = 0; i < 10; i++) {
            blocks(bytes, 6, i, &at);
            CHECK(get32(at + 16) >= last);
            last = get32(at + 16);
            CHECK_EQ(get32(at + 20), (i < 9 ? 1000 : 500) + (kinds[kind] == TEST_TCP ? 86 : 62));
            check_sums(NULL, contents + at + 28, get32(at + 20));
        }
        sim_free(sim);
        remove_directory(directory, "one");
    }
}

static void a_file_that_cannot_be_written_says_so(void) {
    struct sim *sim = sim_new(POOL);
    int directory = new_directory();
    sim_capture(sim, dup(directory), 1, true);
    sim_pair(sim, PAIR);
    CHECK(symlinkat("/dev/full", directory, "linked") == 0);
    CHECK_TEXT(sim_ask(sim, "capture linked 0=x"), "err system create linked: File exists");
    sim_do(sim, "capture one 0=x");
    CHECK_TEXT(sim_ask(sim, "capture one 1=x"), "err system create one: File exists");
    sim_do(sim, "captures");
    sim_end_captures(sim);
    unlinkat(directory, "linked", 0);
    sim_free(sim);
    remove_directory(directory, "one");
}

/* What comes to a link is there before what becomes of it; a reader that does not read loses. */
static void a_pipe_never_waits_and_ends_with_its_reader(void) {
    struct sim *sim = sim_new(POOL);
    int directory = new_directory();
    sim_capture(sim, dup(directory), 1, false);
    sim_pair(sim, PAIR);
    sim_do(sim, "epoch %llu", T0);
    CHECK_TEXT(sim_ask(sim, "capture p pipe=1 0=x"),
               "err system create p: No such file or directory");
    CHECK(mkfifoat(directory, "p", 0600) == 0);
    CHECK_TEXT(sim_ask(sim, "capture p pipe=1 0=x"),
               "err system create p: No such device or address");
    int reader = openat(directory, "p", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    sim_do(sim, "capture p pipe=1 probes=0 offered:0=in 0=out");
    make_packet(&frame, 0, 1, 1500);
    for (int i = 0; i < 4000; i++) {
        sim_send(sim, 0, &frame);
        sim_run(sim, T0 + (uint64_t)(i + 1) * 2 * MS);
    }
    CHECK_TEXT(sim_ask(sim, "captures"), "ok written=0 lost=0 unwritten=0 errno=0");
    ssize_t bytes = read(reader, contents, sizeof contents);
    CHECK(bytes > 40000);
    size_t at = 0, whole = 0;
    while (whole + 8 <= (size_t)bytes && whole + get32(whole + 4) <= (size_t)bytes) {
        whole += get32(whole + 4);
    }
    CHECK_EQ(blocks(whole, 1, 1, &at), 2);
    CHECK(blocks(whole, 6, 0, &at) > 20);
    CHECK_EQ(get32(at + 8), 0);
    uint32_t first = get32(at + 16);
    blocks(whole, 6, 2, &at); /* the second packet came before the first had left */
    CHECK_EQ(get32(at + 8), 1);
    CHECK_EQ(get32(at + 16), first + 1500000 + MS);
    CHECK(atomic_load(&atomic_load(&engine_link(sim->engine, 0)->offered)->lost) > 0);
    CHECK_TEXT(sim_ask(sim, "capture p pipe=1 offered:0=x"), "err conflict x is captured already");
    close(reader);
    sim_do(sim, "captures"); /* looks at pipes, too */
    sim_do(sim, "capture q offered:0=x 0=y");
    sim_end_captures(sim);
    sim_free(sim);
    unlinkat(directory, "q", 0);
    remove_directory(directory, "p");
}

static void a_path_is_captured_by_its_ends(void) {
    struct sim *sim = sim_new(POOL);
    int directory = new_directory();
    size_t at = 0;
    sim_capture(sim, dup(directory), 1, true);
    sim_paths(sim, "rate=0 delay=5000000 jitter=0 loss=0 queue=0 up=1");
    sim_do(sim, "epoch %llu", T0);
    sim_do(sim, "capture a offered:0>1=in 0>1=out");
    make_packet(&frame, 0, 1, 1500);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 5 * MS);
    CHECK_TEXT(sim_ask(sim, "captures"), "ok written=2 lost=0 unwritten=0 errno=0");
    CHECK_TEXT(sim_ask(sim, "capture b 2>0=x"), "err unknown path 2>0 is not declared");
    sim_end_captures(sim);
    size_t bytes = read_file(directory, "a");
    CHECK_EQ(blocks(bytes, 6, 0, &at), 2);
    CHECK_EQ(get32(at + 8), 0);
    CHECK_EQ(get32(at + 16), 0);
    blocks(bytes, 6, 1, &at);
    CHECK_EQ(get32(at + 8), 1);
    CHECK_EQ(get32(at + 16), 5 * MS);
    sim_free(sim);
    remove_directory(directory, "a");
}

static void commands_are_strict(void) {
    static const char *const syntax[] = {"capture",      "capture a",        "capture a 0",
                                         "capture a 0=", "capture a pipe=1", "capture a 0=x =y"};
    struct sim *sim = sim_new(POOL);
    sim_pair(sim, PAIR);
    for (size_t i = 0; i < 5; i++) {
        CHECK_TEXT(
            sim_ask(sim, "%s", syntax[i]),
            "err syntax usage: capture FILE [pipe=1] [probes=0|1] [offered:]LINK|SRC>DST=NAME…");
    }
    CHECK_TEXT(sim_ask(sim, "%s", syntax[5]), "err range link '' is not a number below 1048575");
    CHECK_TEXT(sim_ask(sim, "capture ../a 0=x"),
               "err range '../a' is not the plain name of a file");
    CHECK_TEXT(sim_ask(sim, "capture a/b 0=x"), "err range 'a/b' is not the plain name of a file");
    CHECK_TEXT(sim_ask(sim, "capture .a 0=x"), "err range '.a' is not the plain name of a file");
    CHECK_TEXT(sim_ask(sim, "capture a 9=x"), "err unknown link 9 is not declared");
    CHECK_TEXT(sim_ask(sim, "capture a 0>65535=x"),
               "err range path '0>65535' is not of two nodes below 65535");
    CHECK_TEXT(sim_ask(sim, "capture a >1=x"),
               "err range path '>1' is not of two nodes below 65535");
    CHECK_TEXT(sim_ask(sim, "capture a 0>1=x"), "err unknown path 0>1 is not declared");
    CHECK_TEXT(sim_ask(sim, "capture a 0=x 0=y"),
               "err conflict two interfaces are of the same link");
    CHECK_TEXT(sim_ask(sim, "capture a 0=x"), "err conflict no captures");
    CHECK_TEXT(sim_ask(sim, "captures all"), "err syntax usage: captures");
    CHECK_TEXT(sim_ask(sim, "captures"), "ok written=0 lost=0 unwritten=0 errno=0");
    int directory = new_directory();
    sim_capture(sim, dup(directory), 1, true);
    sim_do(sim, "capture a 0=x");
    CHECK_TEXT(sim_ask(sim, "capture b 0=y"), "err conflict y is captured already");
    sim_end_captures(sim);
    sim_free(sim);
    remove_directory(directory, "a");
}

void test_captures(void) {
    a_ring_that_waits_loses_nothing();
    a_full_ring_counts_what_it_loses();
    what_comes_after_the_question_holds_up_no_answer();
    files_have_what_left_and_what_was_lost();
    super_packets_are_cut_and_sums_completed();
    a_file_that_cannot_be_written_says_so();
    a_pipe_never_waits_and_ends_with_its_reader();
    a_path_is_captured_by_its_ends();
    commands_are_strict();
}
