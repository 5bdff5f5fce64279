/* Fuzzes reports of membership.
 *
 * The input is a frame. What it says of groups is about groups, at most one for each eight bytes,
 * with sources that are in the frame; an engine that hears it keeps its tables in order and
 * forwards to those that listen. A checksum
 * is made right, so that what is behind it is read.
 */
#include "common/tests/driver.h"
#include "pktd/core/packets/membership.h"
#include "sim.h"

#include <string.h>

static struct test_frame frame;
static struct sim *sim;

#define PROPERTIES "rate=0 delay=1000 jitter=0 loss=0 queue=0 dist=normal up=1"

static void end_world(void) {
    sim_free(sim);
}

static void make_world(void) {
    sim = sim_new(8 << 20);
    sim_pair(sim, PROPERTIES);
    atexit(end_world);
}

static uint32_t said;

static void note(void *context, const struct membership *one) {
    const struct packet_info *info = context;
    const uint8_t *group = one->group.bytes, *end = frame.data + info->length;
    uint32_t bytes = one->group.version == 4 ? 4 : 16;
    REQUIRE(one->group.version == 4 ? group[0] >> 4 == 14 : group[0] == 0xff);
    REQUIRE(one->kind <= HEARS_LESS);
    REQUIRE(!one->count || one->count * bytes <= (size_t)(end - one->sources));
    said++;
}

/* The sources that one listener names, counted. */
static uint32_t named(const struct groups *g, const struct listener *one) {
    uint32_t count = 0;
    for (uint32_t at = one->sources; at; at = g->source[at - 1].next) {
        REQUIRE(groups_hears(g, one, g->source[at - 1].bytes) != one->excludes);
        count++;
    }
    REQUIRE(count == one->count && count <= SOURCES_MOST && (one->excludes || count));
    return count;
}

/* Lists are as long as they say, and no source is lost. */
static void check_tables(const struct groups *g) {
    uint32_t sources = 0;
    for (uint32_t i = 0; i < g->groups; i++) {
        uint32_t count = 0;
        const struct group *group = &g->group[i];
        for (uint32_t at = group->count ? group->first : 0; at; at = g->listener[at - 1].next) {
            sources += named(g, &g->listener[at - 1]);
            count++;
        }
        REQUIRE(count == group->count && count <= 2);
    }
    for (uint32_t at = g->free_source; at; at = g->source[at - 1].next) {
        sources++;
    }
    REQUIRE(sources == g->sources);
}

static uint32_t words(const uint8_t *bytes, size_t length) {
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
    }
    return sum;
}

/* Of the bytes above IP, as if all of them were a message with its checksum at 2. */
static void complete(const struct packet_info *info) {
    if (info->l4 + 4u > info->length) {
        return;
    }
    uint8_t *l4 = frame.data + info->l4;
    uint32_t length = info->length - info->l4;
    l4[2] = l4[3] = 0;
    uint32_t sum = words(l4, length);
    sum += info->version == 6 ? words(frame.data + ETH_BYTES + 8, 32) + 58 + length : 0;
    while (sum >> 16) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    l4[2] = (uint8_t)(~sum >> 8);
    l4[3] = (uint8_t)~sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct packet_info info;
    memset(&frame, 0, sizeof frame);
    if (size > FRAME_LIMIT) {
        return 0;
    }
    frame.bytes = size;
    memcpy(frame.data, data, size);
    if (packet_parse(&info, &frame.vnet, frame.data, frame.bytes) != PACKET_OK) {
        return 0;
    }
    if (!sim) {
        make_world();
    }
    complete(&info);
    said = 0;
    membership_read(&info, frame.data, note, &info);
    REQUIRE(said <= info.length / 8);
    for (uint32_t port = 0; port < 2; port++) {
        sim_send(sim, port, &frame);
    }
    sim_run(sim, sim->now_ns + NS_PER_S);
    check_tables(&sim->engine->groups);
    REQUIRE(counter_get(&sim->engine->transit.in_flight) == 0);
    sim_forget(sim);
    return 0;
}

/* Parts of frames that are worth keeping together. */
const char *const fuzz_words[] = {"\x86\xdd",         "\x46\xc0", "\x94\x04", "\x22",     "\x16",
                                  "\xef\x01\x02\x03", "\x8f",     "\x83",     "\xff\x05", NULL};

const bool fuzz_frames = true;
