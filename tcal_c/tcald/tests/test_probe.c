/* What the probe tells of a kernel that lacks something: whichever message it refuses, every
 * ability keeps its name, is found or has a reason, and what is needed stays needed. */
#include "common/tests/check.h"
#include "kernel.h"
#include "tcal/tree/objects.h"
#include "tcal/probe.h"
#include "tcal/socket.h"
#include "suites.h"

#include <errno.h>

#define NAMES 7

static const struct {
    const char *name;
    bool needed;
} known[NAMES] = {{"htb", true},       {"tbf", true}, {"netem", true},        {"bfifo", true},
                  {"blackhole", true}, {"u32", true}, {"netem-counts", false}};

/* The abilities begin as garbage, as a caller's do. The n-th message fails. */
static bool probe(struct tcal_ability ability[TCAL_ABILITIES], uint64_t n, int error) {
    struct nl_channel channel;
    struct tcal_error why;
    uint64_t inode;
    memset(ability, 0xa5, TCAL_ABILITIES * sizeof *ability);
    CHECK(tcal_socket_open("/x", &channel, &inode, &why));
    kernel_fail(n, error);
    probe_begin(ability);
    bool good = probe_kernel(&channel, ability, &why);
    kernel_fail(0, 0);
    channel.close(channel.context);
    for (size_t i = 0; i < NAMES; i++) {
        CHECK_TEXT(ability[i].name, known[i].name);
        CHECK_EQ(ability[i].needed, known[i].needed);
        CHECK(memchr(ability[i].why, 0, sizeof ability[i].why));
        CHECK(ability[i].found || *ability[i].why);
    }
    return good;
}

static size_t missing(const struct tcal_ability ability[TCAL_ABILITIES]) {
    size_t count = 0;
    for (size_t i = 0; i < TCAL_ABILITIES; i++) {
        count += !ability[i].found;
    }
    return count;
}

static void a_kernel_that_has_everything(void) {
    struct tcal_ability ability[TCAL_ABILITIES];
    CHECK_EQ(TCAL_ABILITIES, NAMES);
    kernel_reset();
    kernel_count_netem(true);
    CHECK(probe(ability, 0, 0));
    CHECK_EQ(missing(ability), 0);
}

static void an_old_netem(void) {
    struct tcal_ability ability[TCAL_ABILITIES];
    kernel_reset();
    CHECK(probe(ability, 0, 0));
    CHECK_EQ(missing(ability), 1);
    CHECK(!ability[TCAL_COUNTS].found);
    CHECK_TEXT(ability[TCAL_COUNTS].why, "1 of 10 frames left the queue: trees are made deep");
}

/* htb is there, and refuses a class: the reason is told under its name. */
static void htb_without_classes(void) {
    struct tcal_ability ability[TCAL_ABILITIES];
    uint64_t n = 0;
    do {
        kernel_reset();
        CHECK(n < 20);
        probe(ability, ++n, -EOPNOTSUPP);
    } while (!kernel_stats_of(TCAL_HTB) || kernel_stats_of(tcal_class_of(0)));
    CHECK(!ability[0].found);
    CHECK_TEXT(ability[0].name, "htb");
    CHECK_TEXT(ability[0].why, "Operation not supported: the test wants it");
    CHECK(ability[0].needed);
}

static void any_message_may_be_refused(int error) {
    struct tcal_ability ability[TCAL_ABILITIES];
    uint64_t refused = 0;
    bool complete = false;
    while (!complete) { /* until the message that would fail comes after the last */
        kernel_reset();
        kernel_count_netem(true);
        complete = probe(ability, refused + 1, error) && missing(ability) == 0;
        refused += !complete;
        CHECK(refused < 50);
    }
    CHECK(refused > 6);
}

void test_probe(void) {
    a_kernel_that_has_everything();
    an_old_netem();
    htb_without_classes();
    any_message_may_be_refused(-EOPNOTSUPP);
    any_message_may_be_refused(KERNEL_SEND_FAILS);
    any_message_may_be_refused(KERNEL_ANSWER_LOST);
    any_message_may_be_refused(KERNEL_REFUSES_ALL);
    kernel_reset();
}
