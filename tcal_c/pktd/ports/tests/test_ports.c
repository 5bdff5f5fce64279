/* Which packets the filters choose, matched here as the kernel does it; and a packet socket's ring.
 */
#include "common/tests/check.h"
#include "pktd/tests/frames.h"
#include "pktd/ports/packet_ring.h"
#include "pktd/ports/select.h"
#include "common/words.h"

#include <stdatomic.h>

#include <arpa/inet.h>
#include <linux/virtio_net.h>

static struct test_frame frame;

/* As u32_classify in the kernel: all words, masked, are equal. */
static bool key_matches(const struct tc_u32_key *key) {
    uint32_t word;
    memcpy(&word, frame.data + ETH_BYTES + key->off, sizeof word);
    return ((word ^ key->val) & key->mask) == 0;
}

static bool chosen(const char *prefix_text) {
    struct selector s[SELECTOR_LIMIT];
    struct prefix prefix;
    bool strayed;
    char text[64];
    snprintf(text, sizeof text, "%s", prefix_text);
    CHECK(word_prefix(text, &prefix, &strayed));
    CHECK_TEXT(text, prefix_text);
    uint32_t count = select_prefix(&prefix, s);
    CHECK(count <= SELECTOR_LIMIT);
    for (uint32_t i = 0; i < count; i++) {
        bool all = true;
        CHECK(s[i].keys <= KEY_LIMIT);
        for (uint32_t k = 0; k < s[i].keys; k++) {
            all &= key_matches(&s[i].key[k]);
        }
        if (all) {
            return true;
        }
    }
    return false;
}

static void prefixes_choose_destinations(void) {
    make_frame(&frame, 4, TEST_TCP, 0, 1, 100, 0); /* to 10.77.0.2 */
    CHECK(chosen("10.77.0.0/16"));
    CHECK(chosen("10.77.0.2/32"));
    CHECK(chosen("10.77.0.2/31"));
    CHECK(chosen("0.0.0.0/0"));
    CHECK(chosen("0.0.0.0/1"));
    CHECK(!chosen("128.0.0.0/1"));
    CHECK(!chosen("10.77.0.3/32"));
    CHECK(!chosen("10.76.0.0/16"));
    make_frame(&frame, 6, TEST_UDP, 0, 1, 100, 0); /* to fd77:7473::2 */
    CHECK(chosen("fd77:7473::/64"));
    CHECK(chosen("fd77:7473::/33"));
    CHECK(chosen("fd77:7473::2/128"));
    CHECK(chosen("::/0"));
    CHECK(!chosen("fd77:7473::3/128"));
    CHECK(!chosen("fd77:7473::1:0:0:0/80"));
    CHECK(!chosen("fd77:7474::/32"));
}

static void groups_are_left_alone(void) {
    make_frame(&frame, 4, TEST_UDP, 0, 1, 100, 0);
    frame.data[0] = 0x01;
    CHECK(!chosen("0.0.0.0/0"));
    memset(frame.data, 0xFF, 6);
    CHECK(!chosen("10.77.0.0/16"));
    make_frame(&frame, 6, TEST_UDP, 0, 1, 100, 0);
    frame.data[0] = 0x33;
    CHECK(!chosen("::/0"));
}

static void neighbour_discovery_is_left_alone(void) {
    make_frame(&frame, 6, TEST_UDP, 0, 1, 100, 0);
    for (unsigned next = 0; next < 256; next++) {
        frame.data[ETH_BYTES + 6] = (uint8_t)next;
        for (unsigned type = 0; type < 256; type++) {
            frame.data[ETH_BYTES + 40] = (uint8_t)type;
            bool discovery = next == 58 && type >= 133 && type <= 137;
            CHECK_EQ(chosen("fd77:7473::/32"), !discovery);
        }
    }
}

/* -- the ring of a packet socket, filled here as the kernel fills it (net/packet/af_packet.c)
 * ------- */

#define SLOTS 8u
#define MAC_AT 96u

static _Alignas(16) uint8_t memory[SLOTS * PACKET_SLOT_BYTES];

/* A frame of `bytes`, of which the slot has as much as fits. */
static void fill(uint32_t slot, uint32_t bytes, uint32_t status, uint8_t mark) {
    struct tpacket2_hdr *header = (void *)(memory + slot * PACKET_SLOT_BYTES);
    uint32_t room = PACKET_SLOT_BYTES - MAC_AT;
    memset((uint8_t *)header + MAC_AT - sizeof(struct virtio_net_hdr), mark,
           sizeof(struct virtio_net_hdr) + (bytes < room ? bytes : room));
    *header = (struct tpacket2_hdr){.tp_status = TP_STATUS_USER | status,
                                    .tp_len = bytes,
                                    .tp_snaplen = bytes < room ? bytes : room,
                                    .tp_mac = MAC_AT,
                                    .tp_sec = slot,
                                    .tp_nsec = 7};
}

static uint32_t status_of(uint32_t slot) {
    return ((struct tpacket2_hdr *)(void *)(memory + slot * PACKET_SLOT_BYTES))->tp_status;
}

static struct packet_ring new_ring(void) {
    memset(memory, 0, sizeof memory);
    return (struct packet_ring){.memory = memory, .slots = SLOTS};
}

static void gives_frames_in_their_order(void) {
    struct packet_ring ring = new_ring();
    struct packet_slot slot;
    CHECK(!packet_ring_first(&ring, &slot));
    for (uint32_t i = 0; i < 3 * SLOTS; i++) {
        fill(i % SLOTS, 60 + i, TP_STATUS_CSUMNOTREADY, (uint8_t)i);
        CHECK(packet_ring_first(&ring, &slot));
        CHECK(slot.is_whole);
        CHECK_EQ(slot.bytes, 60 + i + sizeof(struct virtio_net_hdr));
        CHECK_EQ(slot.data[0], i);
        CHECK_EQ(slot.data[slot.bytes - 1], i);
        CHECK_EQ(slot.seconds, i % SLOTS);
        CHECK_EQ(slot.nanoseconds, 7);
        packet_ring_done(&ring);
        CHECK_EQ(status_of(i % SLOTS), TP_STATUS_KERNEL);
        CHECK(!packet_ring_first(&ring, &slot));
    }
}

static void says_where_the_queue_has_the_frame(void) {
    struct packet_ring ring = new_ring();
    struct packet_slot slot;
    fill(0, 60, 0, 1);
    fill(1, 60000, TP_STATUS_COPY, 2);
    fill(2, 60, 0, 3);
    CHECK(packet_ring_first(&ring, &slot));
    CHECK(slot.is_whole);
    packet_ring_done(&ring);
    CHECK(packet_ring_first(&ring, &slot));
    CHECK(!slot.is_whole);
    packet_ring_done(&ring);
    CHECK(packet_ring_first(&ring, &slot));
    CHECK(slot.is_whole);
    CHECK_EQ(slot.data[0], 3);
}

static void counts_what_was_cut_off(void) {
    struct packet_ring ring = new_ring();
    struct packet_slot slot;
    fill(0, 60000, 0, 1);
    fill(1, 60001, 0, 2);
    fill(2, 61, 0, 3);
    CHECK(packet_ring_first(&ring, &slot));
    CHECK_EQ(slot.data[0], 3);
    CHECK_EQ(atomic_load(&ring.cut), 2);
    CHECK_EQ(status_of(0), TP_STATUS_KERNEL);
    CHECK_EQ(status_of(1), TP_STATUS_KERNEL);
}

void test_ports(void) {
    prefixes_choose_destinations();
    groups_are_left_alone();
    neighbour_discovery_is_left_alone();
    gives_frames_in_their_order();
    says_where_the_queue_has_the_frame();
    counts_what_was_cut_off();
}
