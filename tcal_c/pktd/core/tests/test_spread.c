/* Groups of links: which link a packet takes, that flows stay together, and what is refused. */
#include "common/tests/check.h"
#include "pktd/tests/sim.h"

#define T0 1000000000ull
#define MS 1000000ull
#define PLAIN "rate=0 delay=1000000 jitter=0 loss=0 queue=0 dist=normal up=1"
#define IP 14

/* As compiler/plan/paths/flows.py has them (tests/plan/routes/test_equal_paths.py reads this): the
 * link of forty flows each, of links 1, 2 and 3 with the seeds 11, 12 and 13. */
static const struct known {
    const char *flows;
    const char *links;
} known[] = {{"udp", "1222313213332112132123333323223231233111"},
             {"tcp", "3133112233231211333133112112113333311323"},
             {"sctp", "2321233122231331211232211322123132231122"},
             {"udp6", "2133232212322212133321222212231133132211"},
             {"label", "2123312312231313122211112231311331312212"},
             {"protocol", "3213222312131323331311311222212213121321"},
             {"fragment", "2222222222222222222222222222222222222222"}};

static struct test_frame frame;

/* Nodes 0 and 1 with ports; 0 - 2, and from there by way of 3, 4 or 5 to 1. */
static struct sim *new_sim(void) {
    struct sim *sim = sim_new(64 << 20);
    for (int node = 0; node < 6; node++) {
        sim_do(sim, node < 2 ? "node %d ip=10.77.0.%d ip6=fd77:7473::%d" : "node %d", node,
               node + 1, node + 1);
    }
    for (int node = 0; node < 2; node++) {
        sim_do(sim, "open %d netns=/x if=eth0", node);
        sim_do(sim, "bind %d %d", node, node);
    }
    sim_do(sim, "link 0 0 2 " PLAIN " seed=10");
    sim_do(sim, "route 0 0 1");
    for (int way = 1; way <= 3; way++) {
        sim_do(sim, "link %d 2 %d " PLAIN " seed=%d", way, way + 2, way + 10);
        sim_do(sim, "link %d %d 1 " PLAIN " seed=%d", way + 3, way + 2, way);
        sim_do(sim, "route %d %d 1", way + 2, way + 3);
    }
    sim_do(sim, "group 0 2 1 2 3");
    sim_do(sim, "routes 2 g0 1-1");
    sim_commit(sim);
    return sim;
}

/* The link of 1, 2 and 3 that the frame takes; 0: it comes nowhere. */
static int taken(struct sim *sim) {
    sim_ask(sim, "stats links");
    sim_send(sim, 0, &frame);
    sim_run(sim, sim->now_ns + 10 * MS);
    const char *told = sim_ask(sim, "stats links");
    int found = 0;
    for (int link = 1; link <= 3; link++) {
        char line[] = {'\n', (char)('0' + link), ' ', 0};
        if (strstr(told, line)) {
            CHECK_EQ(found, 0);
            found = link;
        }
    }
    CHECK_EQ(sim->count, found ? 1 : 0);
    sim_forget(sim);
    return found;
}

static void set16(uint8_t *at, unsigned value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Packet i of these flows. */
static void make(const char *flows, unsigned i) {
    bool six = strcmp(flows, "udp6") == 0 || strcmp(flows, "label") == 0;
    make_frame(&frame, six ? 6 : 4, strcmp(flows, "tcp") == 0 ? TEST_TCP : TEST_UDP, 0, 1, 100, 0);
    uint8_t *ip = frame.data + IP;
    unsigned port = 1000 + i;
    if (strcmp(flows, "label") == 0) {
        unsigned label = 0xFFFD8 + i;
        ip[1] = (uint8_t)(label >> 16);
        set16(ip + 2, label);
        port = 1000;
    } else if (strcmp(flows, "sctp") == 0) {
        ip[9] = 132;
    } else if (strcmp(flows, "protocol") == 0) {
        ip[9] = (uint8_t)(200 + i);
    } else if (strcmp(flows, "fragment") == 0) {
        set16(ip + 6, i ? i : 0x2000); /* the first one, and others */
    }
    set16(ip + (six ? 40 : 20), port);
}

static void flows_take_the_links_that_plans_say(void) {
    struct sim *sim = new_sim();
    for (size_t row = 0; row < sizeof known / sizeof *known; row++) {
        for (unsigned i = 0; known[row].links[i]; i++) {
            make(known[row].flows, i);
            CHECK_EQ(taken(sim), known[row].links[i] - '0');
        }
    }
    sim_free(sim);
}

/* Whatever segments a super-packet has, and on links that cut it up. */
static void a_super_packet_is_one_flow(void) {
    struct sim *sim = new_sim();
    for (int way = 1; way <= 3; way++) {
        sim_do(sim, "set %d rate=1000000000 queue=1000000", way);
    }
    sim_commit(sim);
    make_frame(&frame, 4, TEST_TCP, 0, 1, 20000, 1000);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    char line[] = {known[1].links[0], ' ', 0};
    CHECK_EQ(sim_stat(sim, "stats links", line, 1), 20);
    sim_free(sim);
}

static void a_link_that_goes_moves_its_own_flows_only(void) {
    struct sim *sim = new_sim();
    sim_do(sim, "group 1 2 1 3");
    sim_do(sim, "route 2 g1 1");
    sim_commit(sim);
    for (unsigned i = 0; known[0].links[i]; i++) {
        make("udp", i);
        int before = known[0].links[i] - '0', now = taken(sim);
        CHECK(now == before || (before == 2 && now));
    }
    sim_do(sim, "group 0 2 2 3"); /* declared again, and in use again */
    sim_do(sim, "route 2 g0 1");
    sim_commit(sim);
    for (unsigned i = 0; known[0].links[i]; i++) {
        make("udp", i);
        int before = known[0].links[i] - '0', now = taken(sim);
        CHECK(now == before || (before == 1 && now));
    }
    sim_do(sim, "route 2 - 1");
    sim_commit(sim);
    CHECK_EQ(taken(sim), 0);
    sim_free(sim);
}

/* Which is nobody here: to node 1 there are two bridges. Nodes 0 and 1 are looked for along groups.
 */
static void broadcast_finds_its_neighbours(void) {
    struct sim *sim = new_sim();
    sim_do(sim, "link 7 0 3 " PLAIN " seed=7");
    sim_do(sim, "group 3 0 0 7");
    sim_do(sim, "route 0 g3 1");
    sim_commit(sim);
    make_packet(&frame, 0, 77, 100);
    memset(frame.data + IP + 16, 255, 4);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->count, 0);
    sim_free(sim);
}

static void what_is_no_group_is_refused(void) {
    struct sim *sim = new_sim();
    static const char *const usage = "err syntax usage: group GROUP NODE LINK LINK...";
    CHECK_TEXT(sim_ask(sim, "group"), usage);
    CHECK_TEXT(sim_ask(sim, "group 7 2"), usage);
    CHECK_TEXT(sim_ask(sim, "group 7 2 1"), usage);
    CHECK_TEXT(sim_ask(sim, "group 7 9 1 2"), "err unknown node 9 is not declared");
    CHECK_TEXT(sim_ask(sim, "group 7 2 1 99"), "err unknown link 99 is not declared");
    CHECK_TEXT(sim_ask(sim, "group 7 2 1 4"), "err conflict link 4 leaves node 3, not node 2");
    CHECK_TEXT(sim_ask(sim, "group 7 2 2 1"), "err range link 1: a group's links ascend");
    CHECK_TEXT(sim_ask(sim, "group 7 2 1 1"), "err range link 1: a group's links ascend");
    CHECK_TEXT(sim_ask(sim, "group 1048576 2 1 2"),
               "err range group '1048576' is not a number from 0 to 1048575");
    char many[512] = "group 7 2";
    for (int i = 0; i < 65; i++) {
        strcat(many, " 1");
    }
    CHECK_TEXT(sim_ask(sim, "%s", many), "err range a group has 64 links at most");
    CHECK_TEXT(sim_ask(sim, "route 2 g7 1"), "err unknown group 7 is not declared");
    CHECK_TEXT(sim_ask(sim, "route 3 g0 1"), "err conflict group 0 leaves node 2, not node 3");
    CHECK_TEXT(sim_ask(sim, "route 2 gx 1"),
               "err range group 'x' is not a number from 0 to 1048575");
    sim_do(sim, "link 9 3 4 " PLAIN " seed=1");
    sim_do(sim, "link 10 3 5 " PLAIN " seed=1");
    CHECK_TEXT(sim_ask(sim, "group 0 3 9 10"),
               "err conflict group 0 leaves node 2; that cannot change");
    sim_do(sim, "group 1048575 2 2 3");
    sim_do(sim, "group 0 2 2 3");
    sim_do(sim, "abort");
    CHECK_TEXT(sim_ask(sim, "route 2 g1048575 1"), "err unknown group 1048575 is not declared");
    sim_commit(sim);
    make("udp", 0);
    CHECK_EQ(taken(sim), known[0].links[0] - '0');
    sim_free(sim);
}

void test_spread(void) {
    flows_take_the_links_that_plans_say();
    a_super_packet_is_one_flow();
    a_link_that_goes_moves_its_own_flows_only();
    broadcast_finds_its_neighbours();
    what_is_no_group_is_refused();
}
