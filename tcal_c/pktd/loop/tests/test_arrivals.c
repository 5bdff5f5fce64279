/* When frames arrive: by the stamp in the source address, and over lines, where whole frames come
 * whatever pieces they were read in, in the order of their arrival. */
#include "common/tests/check.h"
#include "pktd/tests/frames.h"
#include "pktd/loop/arrivals.h"
#include "pktd/ports/stamp.h"

static const uint8_t plain[6] = {2, 0x54, 0x53, 0, 0, 1};

/* As the program in the kernel writes it: the low 48 bits, the lowest byte first. */
static void stamp(uint8_t *mac, uint64_t at_ns) {
    for (int i = 0; i < 6; i++) {
        mac[i] = (uint8_t)(at_ns >> 8 * i);
    }
}

static uint64_t taken(uint64_t at_ns, uint64_t now_ns) {
    uint8_t mac[6];
    stamp(mac, at_ns);
    uint64_t found = stamp_take(mac, plain, now_ns);
    CHECK(memcmp(mac, plain, sizeof mac) == 0);
    return found;
}

static uint64_t near(uint64_t at_ns, uint64_t about_ns) {
    uint8_t mac[6];
    uint64_t found = 0;
    stamp(mac, at_ns);
    CHECK(stamp_take_near(mac, plain, about_ns, &found));
    CHECK(memcmp(mac, plain, sizeof mac) == 0);
    return found;
}

static void stamp_is_a_little_older_than_now(void) {
    uint64_t turn = 1ull << 48; /* the low bits begin again */
    CHECK_EQ(taken(1000, 1500), 1000);
    CHECK_EQ(taken(turn - 7, turn + 5), turn - 7);
    CHECK_EQ(taken(5 * turn + 1, 5 * turn + NS_PER_S), 5 * turn + 1);
    CHECK_EQ(taken(1600, 1500), 1500); /* not from the future */
    CHECK_EQ(taken(turn, turn + STAMP_AGE_LIMIT_NS), turn + STAMP_AGE_LIMIT_NS);
}

static void stamp_is_near_a_time_that_is_not_now(void) {
    uint64_t turn = 1ull << 48;
    CHECK_EQ(near(turn + 1600, turn + 1500), turn + 1600);
    CHECK_EQ(near(turn + 1400, turn + 1500), turn + 1400);
    CHECK_EQ(near(turn + 3, turn - 3), turn + 3);
    CHECK_EQ(near(turn - 3, turn + 3), turn - 3);
    CHECK_EQ(near(1500, 1500), 1500);
    CHECK_EQ(near(9 * turn + STAMP_AGE_LIMIT_NS, 9 * turn), 9 * turn + STAMP_AGE_LIMIT_NS);
    CHECK_EQ(near(9 * turn - STAMP_AGE_LIMIT_NS, 9 * turn), 9 * turn - STAMP_AGE_LIMIT_NS);
}

/* So the clock has to tell, and not a program that sends what address it likes. */
static void stamp_that_is_far_away_is_left_alone(void) {
    static const uint64_t about = 9ull << 48;
    const uint64_t stamps[] = {about + STAMP_AGE_LIMIT_NS + 1, about - STAMP_AGE_LIMIT_NS - 1,
                               about + DAY_NS, about - DAY_NS, about + (1ull << 47)};
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++) {
        uint8_t mac[6];
        uint64_t found = 42;
        stamp(mac, stamps[i]);
        CHECK(!stamp_take_near(mac, plain, about, &found));
        CHECK_EQ(found, 42);
        CHECK_EQ(stamp_take(mac, plain, stamps[i] + 5), stamps[i]);
    }
    uint8_t mac[6];
    uint64_t found;
    stamp(mac, -5ull); /* before time began */
    CHECK(!stamp_take_near(mac, plain, 3, &found));
}

static void frame_without_stamp_is_left_alone(void) {
    uint8_t mac[6];
    uint64_t found = 42;
    memcpy(mac, plain, sizeof mac);
    CHECK_EQ(stamp_take(mac, plain, 1500), 1500);
    CHECK(!stamp_take_near(mac, plain, 1500, &found));
    CHECK_EQ(found, 42);
    CHECK(memcmp(mac, plain, sizeof mac) == 0);
}

static void stamp_by_the_wall_clock_is_as_old_as_by_the_other(void) {
    const uint64_t now = 100 * NS_PER_S, wall = 1700000000 * NS_PER_S;
    CHECK_EQ(stamp_of_wall(wall, wall, now), now);
    CHECK_EQ(stamp_of_wall(wall - 7, wall, now), now - 7);
    CHECK_EQ(stamp_of_wall(wall - NS_PER_S, wall, now), now - NS_PER_S);
    CHECK_EQ(stamp_of_wall(wall - NS_PER_S - 1, wall, now), now); /* stepped forward */
    CHECK_EQ(stamp_of_wall(wall + 1, wall, now), now);            /* back */
    CHECK_EQ(stamp_of_wall(wall - 7, wall, 6), 6);
}

#define ROOM 4096

static struct loop loop;
static uint8_t stream[ROOM];
static size_t length;

static int deliver(void *context, uint32_t port, uint64_t at_ns, const struct iovec *io,
                   int count) {
    (void)context, (void)port, (void)at_ns, (void)io, (void)count;
    return 0;
}

static void begin(struct port *line, int lines) {
    loop = (struct loop){.engine = engine_new(1 << 22, deliver, NULL)};
    CHECK(loop.engine);
    for (int i = 0; i < lines; i++) {
        line[i] = (struct port){.kind = PORT_LINE, .number = (uint32_t)i, .buffer = malloc(ROOM)};
        CHECK(line[i].buffer);
        arrivals_add(&loop, &line[i]);
    }
    length = 0;
}

static void end(struct port *line, int lines) {
    for (int i = 0; i < lines; i++) {
        arrivals_remove(&loop, &line[i]);
        free(line[i].buffer);
    }
    CHECK(!loop.lines);
    engine_free(loop.engine);
}

static void add_record(uint64_t due_ns, uint64_t bytes) {
    struct line_record record = {due_ns, bytes};
    memcpy(stream + length, &record, sizeof record);
    memset(stream + length + sizeof record, (int)due_ns, bytes);
    length += sizeof record + bytes;
}

static bool come(struct port *line, size_t from, size_t bytes) {
    memcpy(line->buffer + line->kept, stream + from, bytes);
    return arrivals_take(&loop, line, bytes);
}

static void any_pieces_are_the_same_frames(void) {
    for (size_t piece = 1; piece < 300; piece++) {
        struct port line;
        begin(&line, 1);
        add_record(7, 60);
        add_record(8, 10);
        add_record(9, 200);
        for (size_t at = 0; at < length; at += piece) {
            CHECK(come(&line, at, min_u64(piece, length - at)));
        }
        static const size_t bytes[] = {50, 0, 190};
        struct frame *frame = line.first;
        for (uint64_t i = 0; i < 3; i++, frame = frame->next) {
            CHECK_EQ(frame->due_ns, 7 + i);
            CHECK_EQ(frame->bytes, bytes[i]);
            CHECK_EQ(frame->data[VNET_BYTES + bytes[i] - 1], 7 + i);
        }
        CHECK(!frame);
        CHECK_EQ(line.kept, 0);
        end(&line, 1);
    }
}

static void next_is_the_first_of_all_lines(void) {
    struct port line[2];
    begin(line, 2);
    CHECK_EQ(arrivals_next(&loop), TIME_NEVER);
    add_record(5, 60);
    add_record(6, 60);
    CHECK(come(&line[0], 0, length));
    length = 0;
    add_record(4, 60);
    add_record(5, 60);
    CHECK(come(&line[1], 0, length));
    static const uint64_t due[] = {4, 5, 5, 6};
    for (uint64_t i = 0; i < 4; i++) {
        CHECK_EQ(arrivals_next(&loop), due[i]);
        CHECK_EQ(counter_get(&loop.engine->count.rx_frames), i);
        arrivals_step(&loop);
    }
    CHECK_EQ(arrivals_next(&loop), TIME_NEVER);
    end(line, 2);
}

static void what_has_not_arrived_goes_with_its_line(void) {
    struct port line[2];
    begin(line, 2);
    add_record(5, 60);
    CHECK(come(&line[1], 0, length));
    arrivals_remove(&loop, &line[1]);
    CHECK_EQ(arrivals_next(&loop), TIME_NEVER);
    end(line, 2);
}

static void nonsense_is_no_frame(void) {
    static const uint64_t sizes[] = {0, VNET_BYTES - 1, FRAME_LIMIT + VNET_BYTES + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct port line;
        begin(&line, 1);
        struct line_record record = {1, sizes[i]};
        memcpy(stream, &record, sizeof record);
        CHECK(!come(&line, 0, sizeof record));
        CHECK(!line.first);
        end(&line, 1);
    }
}

void test_arrivals(void) {
    stamp_is_a_little_older_than_now();
    stamp_is_near_a_time_that_is_not_now();
    stamp_that_is_far_away_is_left_alone();
    frame_without_stamp_is_left_alone();
    stamp_by_the_wall_clock_is_as_old_as_by_the_other();
    any_pieces_are_the_same_frames();
    next_is_the_first_of_all_lines();
    what_has_not_arrived_goes_with_its_line();
    nonsense_is_no_frame();
}
