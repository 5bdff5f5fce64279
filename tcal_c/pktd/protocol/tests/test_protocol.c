/* Every command: what it answers when it is right and when it is not. */
#include "common/tests/check.h"
#include "pktd/tests/sim.h"

#define LINK "rate=1 delay=2 jitter=3 loss=4 queue=5 dist=pareto seed=6 up=1"

static void greets_first(void) {
    struct sim *sim = sim_new(8 << 20);
    sim->proto.session.greeted = false;
    CHECK_TEXT(sim_ask(sim, "clock"), "err order 'clock' before 'hello'");
    CHECK_TEXT(sim_ask(sim, "hello 2"),
               "err version this pktd speaks version 1 of the protocol, not 2");
    CHECK_TEXT(sim_ask(sim, "hello"), "err syntax usage: hello 1");
    CHECK_TEXT(sim_ask(sim, "hello 1 2"), "err syntax usage: hello 1");
    CHECK_TEXT(sim_ask(sim, "hello 1"), "ok pktd 1 version=test");
    CHECK_TEXT(sim_ask(sim, "clock"), "ok 1000000000");
    CHECK_TEXT(sim_ask(sim, "quit"), "ok");
    CHECK(sim->proto.session.quit);
    sim_free(sim);
}

static void lines_are_strict(void) {
    static const char *const bad[] = {"",       " ",       " clock",  "clock ",
                                      "set  1", "cl\tock", "clock\r", "\x80"};
    struct sim *sim = sim_new(8 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_TEXT(sim_ask(sim, "%s", bad[i]),
                   "err syntax a line is printable words separated by one space");
    }
    CHECK_TEXT(sim_ask(sim, "Clock"), "err syntax unknown command 'Clock'");
    CHECK_TEXT(sim_ask(sim, "stats"), "err syntax usage: stats links|pairs|ports|engine");
    CHECK_TEXT(sim_ask(sim, "stats all"), "err syntax usage: stats links|pairs|ports|engine");
    sim_free(sim);
}

static void ports(void) {
    struct sim *sim = sim_new(8 << 20);
    CHECK_TEXT(sim_ask(sim, "open 3 netns=/x if=eth0"), "ok kind=auto mtu=1500 if=eth0");
    CHECK_TEXT(sim_ask(sim, "open 3 netns=/x if=eth0"), "err conflict port 3 is open already");
    CHECK_TEXT(sim_ask(sim, "open 4 netns=/x if=e kind=tap mtu=9000"), "ok kind=tap mtu=9000 if=e");
    CHECK_TEXT(sim_ask(sim, "open 6 line=/dev/ttyS1 delay=10"), "ok kind=line delay=10");
    CHECK_TEXT(sim_ask(sim, "open 5 netns=/refused if=e"),
               "err system open /refused: no such thing");
    static const char *const bad[] = {"open 5",
                                      "open 5 netns=/x",
                                      "open 5 if=e",
                                      "open 5 netns= if=e",
                                      "open 5 netns=/x if=e mtu",
                                      "open 5 netns=/x if=e color=red",
                                      "open 5 netns=/x if=e delay=1",
                                      "open 5 line=/x",
                                      "open 5 line=/x delay=0",
                                      "open 5 line=/x delay=1 if=e",
                                      "open 5 line= delay=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(strncmp(sim_ask(sim, "%s", bad[i]), "err syntax usage: open", 22) == 0);
    }
    static const char *const out[] = {
        "open 65535 netns=/x if=e",      "open -1 netns=/x if=e",
        "open 5 netns=/x if=",           "open 5 netns=/x if=a/b",
        "open 5 netns=/x if=..",         "open 5 line=/x delay=1ms",
        "open 5 netns=/x if=e mtu=67",   "open 5 netns=/x if=e mtu=1e3",
        "open 5 netns=/x if=e kind=tun", "open 5 netns=/x if=abcdefghijklmnop"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        CHECK(strncmp(sim_ask(sim, "%s", out[i]), "err range ", 10) == 0);
    }
    CHECK_TEXT(sim_ask(sim, "close 9"), "err unknown port 9 is not open");
    CHECK_TEXT(sim_ask(sim, "close 3"), "ok");
    CHECK_TEXT(sim_ask(sim, "close 3"), "err unknown port 3 is not open");
    sim_free(sim);
}

static void nodes(void) {
    struct sim *sim = sim_new(8 << 20);
    CHECK_TEXT(sim_ask(sim, "node 0 ip=10.0.0.1 ip6=fd00::1"), "ok");
    CHECK_TEXT(sim_ask(sim, "node 1 ip=10.0.0.1"),
               "err conflict node 1: its IPv4 address belongs to node 0 already");
    CHECK_TEXT(sim_ask(sim, "node 1 ip6=fd00::1"),
               "err conflict node 1: its IPv6 address belongs to node 0 already");
    CHECK_TEXT(sim_ask(sim, "node 0"), "ok");
    CHECK_TEXT(sim_ask(sim, "node 1 ip=10.0.0.1"), "ok");
    CHECK_TEXT(sim_ask(sim, "node 2 ip=10.0.0"), "err range '10.0.0' is no IPv4 address");
    CHECK_TEXT(sim_ask(sim, "node 2 ip6=1.2.3.4"), "err range '1.2.3.4' is no IPv6 address");
    CHECK_TEXT(sim_ask(sim, "node 2 mac=1"), "err range mac '1' is no address of a device");
    CHECK_TEXT(sim_ask(sim, "node 2 hop=1 mac=02:00:00:00:00:01"),
               "err syntax usage: node NODE [ip=A.B.C.D] [ip6=ADDR] [hop=0|1] [behind=CIDR] "
               "[mac=MAC], or node NODE frames=end|lan|air");
    CHECK_TEXT(sim_ask(sim, "node 65535"),
               "err range node '65535' is not a number from 0 to 65534");
    CHECK_TEXT(sim_ask(sim, "bind 7 0"), "err unknown node 7 is not declared");
    CHECK_TEXT(sim_ask(sim, "bind 0 0"), "err unknown port 0 is not open");
    CHECK_TEXT(sim_ask(sim, "bind 0"), "err syntax usage: bind NODE PORT");
    CHECK_TEXT(sim_ask(sim, "unbind 0 0"), "err syntax usage: unbind NODE");
    CHECK_TEXT(sim_ask(sim, "unbind 0"), "ok");
    sim_free(sim);
}

static void links_and_routes(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_do(sim, "node 0");
    sim_do(sim, "node 1");
    CHECK_TEXT(sim_ask(sim, "link 0 0 1 " LINK), "ok");
    CHECK_TEXT(sim_ask(sim, "link 0 0 1 " LINK), "ok");
    CHECK_TEXT(sim_ask(sim, "link 0 1 0 " LINK),
               "err conflict link 0 goes from node 0 to node 1; its ends cannot change");
    CHECK_TEXT(sim_ask(sim, "link 1 0 0 " LINK), "err conflict link 1: from node 0 to itself");
    CHECK_TEXT(sim_ask(sim, "link 1 0 9 " LINK), "err unknown node 9 is not declared");
    CHECK(strncmp(sim_ask(sim, "link 1 0 1 rate=1"), "err syntax usage: link", 22) == 0);
    CHECK(strncmp(sim_ask(sim, "link 1 0 1 " LINK " x=1"), "err syntax usage: link", 22) == 0);
    static const char *const out[] = {
        "rate=-1",   "rate=10000000000001", "delay=x", "jitter=", "loss=1000000001",
        "queue=1.5", "dist=gauss",          "up=2",    "up=",     "rate=99999999999999999999999"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        CHECK(strncmp(sim_ask(sim, "set 0 %s", out[i]), "err range ", 10) == 0);
    }
    CHECK_TEXT(sim_ask(sim, "set 5 up=1"), "err unknown link 5 is not declared");
    CHECK(strncmp(sim_ask(sim, "set 0"), "err syntax usage: set", 21) == 0);
    CHECK(strncmp(sim_ask(sim, "set 0 seed=1"), "err syntax usage: set", 21) == 0);
    CHECK_TEXT(sim_ask(sim, "route 0 0 1"), "ok");
    CHECK_TEXT(sim_ask(sim, "route 0 - 1 0"), "ok");
    CHECK_TEXT(sim_ask(sim, "route 1 0 0"), "err conflict link 0 leaves node 0, not node 1");
    CHECK_TEXT(sim_ask(sim, "route 0 0 7"), "err unknown node 7 is not declared");
    CHECK_TEXT(sim_ask(sim, "route 0 3 1"), "err unknown link 3 is not declared");
    CHECK_TEXT(sim_ask(sim, "route 0 0"), "err syntax usage: route NODE LINK|gGROUP|- DEST...");
    CHECK_TEXT(sim_ask(sim, "route 0 -"), "err range link '-' is not a number from 0 to 1048574");
    CHECK_TEXT(sim_ask(sim, "routes 0 0 0-1 1-1"), "ok");
    CHECK_TEXT(sim_ask(sim, "routes 0 0 1-0"),
               "err range destinations 1-0: the first is above the last");
    CHECK_TEXT(sim_ask(sim, "routes 0 0 1"),
               "err range destination '1' is not FIRST-LAST from 0 to 65534");
    CHECK_TEXT(sim_ask(sim, "routes 0 0 0-9"), "err unknown node 2 is not declared");
    sim_free(sim);
}

static void measured_delays_are_read(void) {
    struct sim *sim = sim_new(8 << 20);
    sim_do(sim, "node 0");
    sim_do(sim, "node 1");
    sim_do(sim, "link 0 0 1 " LINK);
    CHECK(strncmp(sim_ask(sim, "delays m"), "err syntax usage: delays", 24) == 0);
    CHECK_TEXT(sim_ask(sim, "delays m 1048576 -1"),
               "err range delays m cannot have the point '-1'");
    CHECK_TEXT(sim_ask(sim, "delays m 268435457"),
               "err range delays m cannot have the point '268435457'");
    CHECK(strncmp(sim_ask(sim, "set 0 dist=m"), "err range dist 'm' is not", 25) == 0);
    CHECK(strncmp(sim_ask(sim, "delays m end"), "err range delays m are not 4097", 31) == 0);
    for (int i = 0; i < 4096; i++) { /* the first point is there */
        sim_do(sim, "delays m 512");
    }
    CHECK(strncmp(sim_ask(sim, "set 0 dist=m"), "err range dist 'm' is not", 25) == 0);
    CHECK_TEXT(sim_ask(sim, "delays m 1"), "err range delays m cannot have the point '1'");
    sim_do(sim, "delays m end");
    CHECK_TEXT(sim_ask(sim, "delays m 1"), "err conflict delays m are whole already");
    CHECK_TEXT(sim_ask(sim, "set 0 dist=m"), "ok");
    CHECK_TEXT(sim_ask(sim, "set 0 dist=pareto"), "ok");
    for (int i = 1; i < 1024; i++) {
        CHECK_TEXT(sim_ask(sim, "delays n%d 0", i), "ok");
    }
    CHECK(strncmp(sim_ask(sim, "delays more 0"), "err limit ", 10) == 0);
    sim_free(sim);
}

static void tables_of_flows_are_read(void) {
    struct flow_rates rates;
    CHECK(flow_rates_parse("0", &rates) && rates.count == 0);
    CHECK(flow_rates_parse("2:6000000:844000;40:8000000:900000", &rates) && rates.count == 2);
    CHECK_EQ(rates.row[1].flows, 40);
    CHECK_EQ(rates.row[1].rate_bps, 8000000);
    CHECK_EQ(rates.row[1].queue_bytes, 900000);
    static const char *const bad[] = {
        "",          "1:1:1",           "2:1",    "2:1:1;", "2:1:1;2:1:1", "3:1:1;2:1:1",
        "2:0:1",     "2:1:0",           "2:1:1 ", "-2:1:1", "2:+1:1",      "2:1:1;3",
        "70000:1:1", "2:1:99999999999", "2:x:1",  "2::1",   "2:1:1;;3:1:1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!flow_rates_parse(bad[i], &rates));
    }
    char text[40 * (FLOW_ROWS + 1)] = "2:1:1";
    for (unsigned n = 3; n < FLOW_ROWS + 2; n++) {
        sprintf(text + strlen(text), ";%u:1:1", n);
    }
    CHECK(flow_rates_parse(text, &rates) && rates.count == FLOW_ROWS);
    strcat(text, ";60:1:1");
    CHECK(!flow_rates_parse(text, &rates));
}

static void commits(void) {
    struct sim *sim = sim_new(8 << 20);
    CHECK_TEXT(sim_ask(sim, "commit 0"), "ok 1");
    CHECK_TEXT(sim_ask(sim, "commit 5"), "ok 2");
    CHECK_TEXT(sim_ask(sim, "commit"), "err syntax usage: commit AT");
    CHECK_TEXT(sim_ask(sim, "commit now"), "err range time 'now' is not a number of ns");
    CHECK_TEXT(sim_ask(sim, "commit 1 2"), "err syntax usage: commit AT");
    CHECK_TEXT(sim_ask(sim, "commit 7"), "ok 3");
    CHECK_TEXT(sim_ask(sim, "abort now"), "err syntax usage: abort");
    struct batch batch = {.number = 4, .at_ns = 5, .applied_ns = 6};
    proto_applied(&sim->proto, &batch);
    CHECK(strncmp(sim->out.bytes + sim->out.begin, "! applied 4 5 6\n", 16) == 0);
    text_take(&sim->out, text_left(&sim->out));
    session_too_long(&sim->proto.session);
    CHECK(strncmp(sim->out.bytes, "err syntax the line is longer than 65536 bytes\n", 47) == 0);
    sim_free(sim);
}

static void movement(void) {
    struct sim *sim = sim_new(8 << 20);
    CHECK_TEXT(sim_ask(sim, "await now"), "err syntax usage: await");
    CHECK_EQ(sim->awaited, 0);
    CHECK_TEXT(sim_ask(sim, "await"), "ok");
    CHECK_EQ(sim->awaited, 1);
    proto_moved(&sim->proto);
    CHECK(strncmp(sim->out.bytes + sim->out.begin, "! moved\n", 8) == 0);
    sim_free(sim);
}

void test_protocol(void) {
    greets_first();
    lines_are_strict();
    ports();
    nodes();
    links_and_routes();
    measured_delays_are_read();
    tables_of_flows_are_read();
    commits();
    movement();
}
