/* Fuzzes parsing, cutting and forwarding of frames.
 *
 * The input is a virtio header and a frame. What parses must be cut into segments that together are
 * as long as the whole, stay inside the frame, and survive two links that lose and split, and a
 * path, where it leaves by the port it came from or passes.
 */
#include "common/tests/driver.h"
#include "sim.h"

#include <string.h>

static struct test_frame frame;

static void cut(const struct packet_info *info) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < info->segments; i++) {
        struct packet_piece piece;
        packet_cut(info, frame.data, i, 1, &piece);
        REQUIRE(piece.payload_offset + piece.payload_bytes <= frame.bytes);
        REQUIRE(piece.header_bytes <= HEADER_LIMIT);
        if (info->segments > 1) {
            uint64_t bytes = piece.header_bytes + (uint64_t)piece.payload_bytes - ETH_BYTES;
            REQUIRE(bytes == packet_segment_bytes(info, i));
        }
        total += packet_segment_bytes(info, i);
    }
    REQUIRE(total == packet_bytes(info, 0, info->segments));
}

/* Two worlds for all inputs: making them takes longer than most of those. */
static struct sim *by_links;
static struct sim *impaired;
static struct sim *by_paths;
static struct sim *by_frames;
static struct sim *by_radio;

#define PROPERTIES                                                                                 \
    "rate=1000000000 delay=1000 jitter=10 loss=100000000 queue=30000 dist=normal up=1"
#define AQM "aqm=fq_codel;target:1;interval:1;quantum:300;flows:4;ecn:1"

static void end_worlds(void) {
    sim_free(by_links);
    sim_free(impaired);
    sim_free(by_paths);
    sim_free(by_frames);
    sim_free(by_radio);
}

static void make_worlds(void) {
    by_links = sim_new(8 << 20);
    sim_pair(by_links, PROPERTIES);
    impaired = sim_new(8 << 20);
    sim_pair(impaired, PROPERTIES " burst=2000 duplicate=300000000 corrupt=500000000 "
                                  "reorder=500000000 by=100 reject=200000000 mtu=576 " AQM);
    sim_do(impaired, "node 2 ip=10.77.255.254 ip6=fd77:7473::1:0 hop=1");
    sim_commit(impaired);
    by_paths = sim_new(8 << 20);
    sim_paths(by_paths, PROPERTIES);
    by_frames = sim_new(8 << 20);
    for (int i = 0; i < 2; i++) {
        sim_do(by_frames, "open %d netns=/x if=eth0 mac=02:00:00:00:00:0%d", i, i);
        sim_do(by_frames, "node %d frames=end", i);
        sim_do(by_frames, "bind %d %d", i, i);
    }
    sim_do(by_frames, "node 2 frames=lan");
    for (int i = 0; i < 2; i++) {
        sim_do(by_frames, "link %d %d 2 seed=1 %s corrupt=500000000", 2 * i, i, PROPERTIES);
        sim_do(by_frames, "link %d 2 %d seed=2 %s mtu=1000 " AQM, 2 * i + 1, i, PROPERTIES);
    }
    sim_commit(by_frames);
    by_radio = sim_new(8 << 20);
    for (int i = 0; i < 2; i++) {
        sim_do(by_radio, "open %d netns=/x if=eth0 mac=02:00:00:00:00:0%d", i, i);
        sim_do(by_radio, "node %d frames=end", i);
        sim_do(by_radio, "node %d frames=air", 2 + i);
        sim_do(by_radio, "bind %d %d", i, i);
        sim_do(by_radio, "link %d %d %d seed=1 %s", 2 * i, i, 2 + i, PROPERTIES);
        sim_do(by_radio, "link %d %d %d seed=2 %s", 2 * i + 1, 2 + i, i, PROPERTIES);
    }
    sim_do(by_radio, "link 4 2 3 seed=3 %s duplicate=500000000", PROPERTIES);
    sim_do(by_radio, "link 5 3 2 seed=4 %s", PROPERTIES);
    sim_commit(by_radio);
    atexit(end_worlds);
}

static void forward(struct sim *sim) {
    for (uint32_t port = 0; port < 2; port++) {
        sim_send(sim, port, &frame);
        sim_run(sim, sim->now_ns + NS_PER_S);
        for (size_t i = 0; sim == by_paths && i < sim->count; i++) {
            REQUIRE(sim->delivery[i].port <= port);
        }
    }
    REQUIRE(counter_get(&sim->engine->transit.in_flight) == 0);
    REQUIRE(counter_get(&sim->engine->transit.drop_nobuf) == 0);
    sim_forget(sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct packet_info info;
    memset(&frame, 0, sizeof frame);
    if (size < sizeof frame.vnet || size - sizeof frame.vnet > FRAME_LIMIT) {
        return 0;
    }
    memcpy(&frame.vnet, data, sizeof frame.vnet);
    frame.bytes = size - sizeof frame.vnet;
    memcpy(frame.data, data + sizeof frame.vnet, frame.bytes);
    if (!by_links) {
        make_worlds();
    }
    forward(by_frames);
    forward(by_radio);
    if (packet_parse(&info, &frame.vnet, frame.data, frame.bytes) == PACKET_OK) {
        cut(&info);
        forward(by_links);
        forward(impaired);
        forward(by_paths);
    }
    return 0;
}

/* Parts of frames that are worth keeping together. */
const char *const fuzz_words[] = {"\x08\x06", "\x86\xdd", "\x45", "\x60", "\x06", "\x11", NULL};

const bool fuzz_frames = true;
