/* Which packets the filters choose, matched here as the kernel does it. */
#include "common/tests/check.h"
#include "frames.h"
#include "pktd/ports/select.h"
#include "common/words.h"

#include <arpa/inet.h>

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

void test_select(void) {
    prefixes_choose_destinations();
    groups_are_left_alone();
    neighbour_discovery_is_left_alone();
}
