/* Digests of links: the published hash beneath them, what changes them, what does not. */
#include "common/tests/check.h"
#include "pktd/record/xxh64.h"
#include "pktd/tests/sim.h"

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define POOL (64u << 20)
#define SLOW "rate=8000000 delay=1000000 jitter=0 loss=0 queue=4500 dist=normal up=1"
#define FAST "rate=0 delay=1000000 jitter=0 loss=0 queue=0 dist=normal up=1"

static struct test_frame frame;

/* Values of another implementation of XXH64 (the library xxhash 0.8). */
static void the_hash_is_xxh64(void) {
    static const struct {
        size_t bytes;
        uint64_t seed;
        uint64_t hash;
    } known[] = {{0, 0, 0xEF46DB3751D8E999ull},
                 {1, 0, 0xA96C7F0CE858BBB7ull},
                 {3, 5, 0xEC71B28F75D61531ull},
                 {4, 0, 0xFA212AE44B3BB23Dull},
                 {8, 0, 0x994B676B71CE94DDull},
                 {14, 0, 0x574269377227D80Aull},
                 {24, 0xDEADBEEFCAFEBABEull, 0x40D96850D563F9DAull},
                 {31, 1, 0xE811D10B03941E82ull},
                 {32, 0, 0x07F7B8E3BC5D6E25ull},
                 {33, 0, 0x09F85EEB4E1CBE9Full},
                 {63, 0, 0xB7C9968C066CB6A5ull},
                 {64, 2, 0x1CD6C164D096C73Eull},
                 {1500, 0, 0x769FFC2E781F65AFull},
                 {1999, UINT64_MAX, 0x808C10334B0ACA3Dull}};
    uint8_t data[2000];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 131 + 7);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        CHECK_EQ(xxh64(data, known[i].bytes, known[i].seed), known[i].hash);
    }
}

/* What a packet of `bytes` bytes at layer 3, its payload begun with `mark`, is sent as. */
struct sent {
    uint64_t at_ns;
    size_t bytes;
    uint8_t mark;
};

static void send_one(struct sim *sim, const struct sent *packet) {
    make_packet(&frame, 0, 1, packet->bytes);
    frame.data[14 + 28] = packet->mark;
    sim_run(sim, packet->at_ns);
    sim_send(sim, 0, &frame);
}

/* The digest of the first link after these packets. */
static uint64_t digest_of(enum digests kind, const char *links, const struct sent *packet,
                          size_t count) {
    struct sim *sim = sim_new(POOL);
    sim->engine->transit.digests = kind;
    sim_pair(sim, links);
    sim_do(sim, "epoch %llu", T0);
    for (size_t i = 0; i < count; i++) {
        send_one(sim, &packet[i]);
    }
    sim_run(sim, T0 + 10000 * MS);
    const char *answer = sim_ask(sim, "digests");
    const char *line = strchr(answer, '\n');
    uint64_t digest = line && strncmp(line, "\n0 ", 3) == 0 ? strtoull(line + 3, NULL, 16) : 0;
    CHECK(strncmp(sim_ask(sim, "digests"), "ok 0", 4) == 0);
    sim_free(sim);
    return digest;
}

static void a_digest_is_the_chain_that_the_page_states(void) {
    const struct sent packets[] = {{T0 + MS, 100, 1}, {T0 + 5 * MS, 200, 2}};
    uint64_t digest = 0;
    for (size_t i = 0; i < 2; i++) {
        make_packet(&frame, 0, 1, packets[i].bytes);
        frame.data[14 + 28] = packets[i].mark;
        uint64_t words[3] = {packets[i].at_ns + MS - T0, 1,
                             xxh64(frame.data + 14, packets[i].bytes, 0)};
        digest = xxh64(words, sizeof words, digest);
    }
    CHECK_EQ(digest_of(DIGESTS_TIMES, FAST, packets, 2), digest);
    CHECK_EQ(digest_of(DIGESTS_OFF, FAST, packets, 2), 0);
    CHECK_EQ(digest_of(DIGESTS_TIMES, FAST, packets, 0), 0);
}

static void order_contents_length_and_time_change_a_digest(void) {
    const struct sent packets[] = {{T0 + MS, 100, 1}, {T0 + 2 * MS, 100, 2}, {T0 + 3 * MS, 90, 3}};
    const struct sent swapped[] = {{T0 + MS, 100, 2}, {T0 + 2 * MS, 100, 1}, {T0 + 3 * MS, 90, 3}};
    const struct sent other[] = {{T0 + MS, 100, 1}, {T0 + 2 * MS, 100, 2}, {T0 + 3 * MS, 90, 4}};
    const struct sent longer[] = {{T0 + MS, 100, 1}, {T0 + 2 * MS, 100, 2}, {T0 + 3 * MS, 91, 3}};
    const struct sent later[] = {
        {T0 + MS, 100, 1}, {T0 + 2 * MS, 100, 2}, {T0 + 3 * MS + 1, 90, 3}};
    for (enum digests kind = DIGESTS_CONTENTS; kind <= DIGESTS_TIMES; kind++) {
        uint64_t digest = digest_of(kind, FAST, packets, 3);
        CHECK_EQ(digest_of(kind, FAST, packets, 3), digest);
        CHECK(digest_of(kind, FAST, packets, 2) != digest);
        CHECK(digest_of(kind, FAST, swapped, 3) != digest);
        CHECK(digest_of(kind, FAST, other, 3) != digest);
        CHECK(digest_of(kind, FAST, longer, 3) != digest);
        CHECK((digest_of(kind, FAST, later, 3) != digest) == (kind == DIGESTS_TIMES));
    }
}

/* The same for random packets, with a random difference of one bit. */
static void any_bit_changes_a_digest(void) {
    uint64_t random = 88172645463325252ull;
    for (int round = 0; round < 200; round++) {
        struct sent packets[8];
        uint64_t at = T0;
        for (size_t i = 0; i < 8; i++) {
            at += next_random(&random) % MS;
            packets[i] =
                (struct sent){at, 60 + next_random(&random) % 1400, (uint8_t)next_random(&random)};
        }
        uint64_t digest = digest_of(DIGESTS_TIMES, SLOW, packets, 8);
        CHECK_EQ(digest_of(DIGESTS_TIMES, SLOW, packets, 8), digest);
        packets[next_random(&random) % 8].mark ^= (uint8_t)(1 << next_random(&random) % 8);
        CHECK(digest_of(DIGESTS_TIMES, SLOW, packets, 8) != digest);
    }
}

static void what_is_lost_is_in_the_digest(void) {
    const struct sent packets[] = {{T0, 1500, 1}, {T0, 1500, 1}, {T0, 1500, 1}, {T0, 1500, 1}};
    const char *const lossy = "rate=8000000 delay=1000000 jitter=0 loss=1000000000 queue=4500 "
                              "dist=normal up=1";
    const char *const down = "rate=0 delay=1000000 jitter=0 loss=0 queue=0 dist=normal up=0";
    uint64_t three = digest_of(DIGESTS_CONTENTS, SLOW, packets, 3);
    uint64_t full = digest_of(DIGESTS_CONTENTS, SLOW, packets, 4);
    uint64_t lost = digest_of(DIGESTS_CONTENTS, lossy, packets, 4);
    CHECK(full != three && lost != three && lost != full);
    CHECK(digest_of(DIGESTS_CONTENTS, down, packets, 4) != lost);
}

static void segments_are_in_the_digest(void) {
    struct sim *sim = sim_new(POOL);
    sim->engine->transit.digests = DIGESTS_CONTENTS;
    sim_pair(sim, "rate=1000000000 delay=0 jitter=0 loss=0 queue=3000 dist=normal up=1");
    make_frame(&frame, 4, TEST_TCP, 0, 1, 4 * 1448, 1448);
    uint64_t contents = xxh64(frame.data + 14, frame.bytes - 14, 0);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    /* Two find room, two do not; the queue decides before the others leave. */
    const uint64_t fates[] = {1ull << 32 | 2 << 16 | 1, 1ull << 32 | 3 << 16 | 1, 2};
    uint64_t digest = 0;
    for (size_t i = 0; i < 3; i++) {
        uint64_t words[3] = {0, fates[i], contents};
        digest = xxh64(words, sizeof words, digest);
    }
    char want[80];
    snprintf(want, sizeof want, "ok 2\n0 %016llx\n", (unsigned long long)digest);
    CHECK(strncmp(sim_ask(sim, "digests"), want, strlen(want)) == 0);
    sim_free(sim);
}

static void a_path_is_named_by_its_ends(void) {
    struct sim *sim = sim_new(POOL);
    sim->engine->transit.digests = DIGESTS_CONTENTS;
    sim_paths(sim, "rate=0 delay=1000000 jitter=0 loss=0 queue=0 up=1");
    make_packet(&frame, 1, 2, 100);
    sim_send(sim, 1, &frame);
    sim_run(sim, T0 + 10 * MS);
    uint64_t words[3] = {0, 1, xxh64(frame.data + 14, 100, 0)};
    char want[80];
    snprintf(want, sizeof want, "ok 1\n1 2 %016llx",
             (unsigned long long)xxh64(words, sizeof words, 0));
    CHECK_TEXT(sim_ask(sim, "digests"), want);
    sim_free(sim);
}

static void commands_are_strict(void) {
    struct sim *sim = sim_new(POOL);
    CHECK_TEXT(sim_ask(sim, "digests"), "ok 0");
    CHECK_TEXT(sim_ask(sim, "digests all"), "err syntax usage: digests");
    CHECK_TEXT(sim_ask(sim, "epoch"), "err syntax usage: epoch NS [unix=NS] [reseed=NS:KEY…]");
    CHECK_TEXT(sim_ask(sim, "epoch 1 2"), "err syntax usage: epoch NS [unix=NS] [reseed=NS:KEY…]");
    CHECK_TEXT(sim_ask(sim, "epoch -1"), "err range epoch '-1' is not a 64-bit number");
    CHECK_TEXT(sim_ask(sim, "epoch 1 reseed=5"),
               "err syntax usage: epoch NS [unix=NS] [reseed=NS:KEY…]");
    CHECK_TEXT(sim_ask(sim, "epoch 1 reseed=5:x"), "err range reseed 'x' is not a 64-bit number");
    CHECK_TEXT(sim_ask(sim, "epoch 1 reseed=5:1 reseed=5:2"),
               "err range reseed '5' is not later than the one before");
    CHECK_TEXT(sim_ask(sim, "epoch 1 unix=x"), "err range unix 'x' is not a 64-bit number");
    CHECK_TEXT(sim_ask(sim, "epoch 1 unit=2"),
               "err syntax usage: epoch NS [unix=NS] [reseed=NS:KEY…]");
    CHECK_TEXT(sim_ask(sim, "epoch 1 unix=2 3"),
               "err syntax usage: epoch NS [unix=NS] [reseed=NS:KEY…]");
    CHECK_TEXT(sim_ask(sim, "epoch 18446744073709551615"), "ok");
    CHECK_TEXT(sim_ask(sim, "epoch 5 unix=7"), "ok");
    sim_free(sim);
}

void test_digests(void) {
    the_hash_is_xxh64();
    a_digest_is_the_chain_that_the_page_states();
    order_contents_length_and_time_change_a_digest();
    any_bit_changes_a_digest();
    what_is_lost_is_in_the_digest();
    segments_are_in_the_digest();
    a_path_is_named_by_its_ends();
    commands_are_strict();
}
