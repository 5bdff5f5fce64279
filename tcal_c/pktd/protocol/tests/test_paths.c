/* Paths: declared, changed, refused; what they let through, where it leaves, what is counted. */
#include "common/tests/check.h"
#include "pktd/tests/sim.h"

#include <errno.h>

#define T0 1000000000ull /* when a sim begins */
#define MS 1000000ull
#define POOL (64u << 20)
#define ALL "rate=0 delay=5000000 jitter=0 loss=0 queue=0 up=1"

static struct test_frame frame;

static void offer(struct sim *sim, unsigned source, unsigned dest, size_t bytes) {
    make_packet(&frame, source, dest, bytes);
    sim_send(sim, source, &frame);
}

static void a_packet_leaves_where_it_came_from(void) {
    struct sim *sim = sim_new(POOL);
    sim_paths(sim, ALL);
    offer(sim, 0, 1, 1500);
    sim_run(sim, T0 + 5 * MS - 1);
    CHECK_EQ(sim->count, 0);
    sim_run(sim, T0 + 5 * MS);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].port, 0);
    CHECK_EQ(sim->delivery[0].bytes, 1514);
    CHECK(memcmp(sim->delivery[0].data, frame.data, 1514) == 0);
    /* Node 2 is elsewhere: it has no port, and needs none. */
    offer(sim, 1, 2, 100);
    sim_run(sim, T0 + 20 * MS);
    CHECK_EQ(sim->count, 2);
    CHECK_EQ(sim->delivery[1].port, 1);
    CHECK_TEXT(sim_ask(sim, "stats pairs"),
               "ok 2\n0 1 1 1500 1 1500 0 0 0 0\n1 2 1 100 1 100 0 0 0 0");
    CHECK_TEXT(sim_ask(sim, "stats links"), "ok 0");
    sim_free(sim);
}

static void super_packets_are_cut_as_on_links(void) {
    struct sim *sim = sim_new(POOL);
    sim_paths(sim, "rate=100000000 delay=0 jitter=0 loss=0 queue=1000000 up=1");
    make_frame(&frame, 6, TEST_TCP, 0, 1, 40 * 1448, 1448);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 1000 * MS);
    uint32_t segments = 0;
    for (size_t i = 0; i < sim->count; i++) {
        struct delivery *d = &sim->delivery[i];
        segments += d->segments;
        CHECK_EQ(d->port, 0);
        check_sums(&d->vnet, d->data, d->bytes);
    }
    CHECK_EQ(segments, 40);
    CHECK(sim->count < 8);
    CHECK_EQ(sim_stat(sim, "usage", "0 1 ", 2), 40);
    sim_free(sim);
}

static void what_has_no_path_is_dropped(void) {
    struct sim *sim = sim_new(POOL);
    sim_paths(sim, ALL);
    offer(sim, 0, 2, 100); /* never declared */
    sim_do(sim, "path 0 1 up=0");
    sim_commit(sim);
    offer(sim, 0, 1, 100);
    sim_do(sim, "unbind 1");
    sim_commit(sim);
    offer(sim, 1, 2, 100);
    sim_run(sim, T0 + 50 * MS);
    CHECK_EQ(sim->count, 0);
    CHECK_TEXT(sim_ask(sim, "stats pairs"), "ok 2\n0 1 1 100 0 0 0 0 1 0\n0 2 1 100 0 0 0 0 0 1");
    CHECK_EQ(counter_get(&sim->engine->count.drop_unknown), 1);
    sim_free(sim);
}

static void an_address_nobody_has_passes(void) {
    struct sim *sim = sim_new(POOL);
    sim_paths(sim, ALL);
    make_frame(&frame, 4, TEST_TCP, 0, 77, 14480, 1448);
    sim_send(sim, 0, &frame);
    CHECK_EQ(sim->count, 1);
    CHECK_EQ(sim->delivery[0].port, 0);
    CHECK_EQ(sim->delivery[0].segments, 10);
    CHECK_EQ(counter_get(&sim->engine->count.passed), 10);
    /* Also of a port that is nobody's. */
    sim_do(sim, "attach 7 netns=/x if=eth0 prefix=10.0.0.0/8");
    sim_send(sim, 7, &frame);
    CHECK_EQ(sim->count, 2);
    CHECK_EQ(sim->delivery[1].port, 7);
    /* What the kernel says to a group on pktd's own device is not for anybody. */
    frame.data[0] |= 1;
    sim_send(sim, 0, &frame);
    CHECK_EQ(sim->count, 2);
    CHECK_EQ(counter_get(&sim->engine->count.drop_unknown), 10);
    frame.data[0] &= 0xFE;
    sim->deliver_error = -ENODEV;
    sim_send(sim, 0, &frame);
    CHECK_EQ(counter_get(&sim->engine->count.drop_write), 10);
    CHECK_TEXT(sim_ask(sim, "usage all"), "ok 0");
    sim_free(sim);
}

static void changes_keep_the_rest(void) {
    struct sim *sim = sim_new(POOL);
    sim_paths(sim, "rate=8000000 delay=1000000 jitter=0 loss=0 queue=100000 up=1");
    sim_do(sim, "path 0 1 delay=3000000");
    sim_commit(sim);
    offer(sim, 0, 1, 1000);
    sim_run(sim, T0 + 100 * MS);
    CHECK_EQ(sim->delivery[0].at_ns, T0 + 1 * MS + 3 * MS);
    sim_do(sim, "path 0 1 rate=0 delay=0");
    sim_do(sim, "abort");
    sim_commit(sim);
    offer(sim, 0, 1, 1000);
    sim_run(sim, T0 + 200 * MS);
    CHECK_EQ(sim->delivery[1].at_ns, T0 + 100 * MS + 4 * MS);
    sim_free(sim);
}

/* The n-th packet after the first declaration is lost or not by the seed, whenever that is stated.
 */
static uint32_t survivors(const char *seed, const char *later) {
    struct sim *sim = sim_new(POOL);
    char properties[160];
    snprintf(properties, sizeof properties, "rate=0 delay=0 jitter=0 loss=500000000 queue=0 up=1%s",
             seed);
    sim_paths(sim, properties);
    sim_do(sim, "path 0 1 up=1%s", later);
    sim_commit(sim);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 32; i++) {
        size_t before = sim->count;
        offer(sim, 0, 1, 100);
        sim_run(sim, sim->now_ns + 1);
        bits |= (uint32_t)(sim->count - before) << i;
    }
    sim_free(sim);
    return bits;
}

static void seeds_may_be_stated_early_or_late(void) {
    CHECK_EQ(survivors("", ""), survivors(" seed=0", ""));
    CHECK_EQ(survivors("", " seed=18446744073709551615"),
             survivors(" seed=18446744073709551615", ""));
    CHECK(survivors(" seed=1", "") != survivors(" seed=2", ""));
}

static void refusals(void) {
    static const char *const bad[][2] = {
        {"path 0 1", "err syntax usage: path SRC DST KEY=VALUE..."},
        {"path 0", "err syntax usage: path"},
        {"path 0 1 up", "err syntax usage: path"},
        {"path 0 1 color=1", "err syntax usage: path"},
        {"path 0 1 rate=10000000000001", "err range rate '10000000000001'"},
        {"path 0 1 seed=18446744073709551616", "err range seed"},
        {"path 0 65535 up=1", "err range node '65535'"},
        {"path 0 9 " ALL, "err unknown node 9 is not declared"},
        {"path 9 0 " ALL, "err unknown node 9 is not declared"},
        {"path 1 1 " ALL, "err conflict path from node 1 to itself"},
        {"path 0 2 up=1", "err unknown path from node 0 to node 2 is not declared: first it needs"},
        {"path 0 2 delay=0 jitter=0 loss=0 queue=0 up=1", "err unknown path"},
        {"link 0 0 1 " ALL " dist=normal seed=1", "err conflict 'link' after 'attach' or 'path'"},
        {"open 5 netns=/x if=e", "err conflict 'open' after 'attach' or 'path'"},
        {"close 0", "err conflict 'close' after"},
        {"set 0 up=1", "err conflict 'set' after"},
        {"route 0 0 1", "err conflict 'route' after"},
        {"routes 0 0 1-1", "err conflict 'routes' after"},
        {"usage some", "err syntax usage: usage [all]"},
        {"usage all all", "err syntax usage: usage [all]"},
        {"lease", "err syntax usage: lease NS"},
        {"lease 3600000000001", "err range lease"},
        {"ports 1", "err syntax usage: ports"},
        {"sync", "err syntax usage: sync TOKEN"},
        {"sync a b", "err syntax usage: sync TOKEN"},
        {"sync a-b", "err range token 'a-b' is not 1 to 32 letters and digits"},
        {"sync 012345678901234567890123456789012", "err range token"}};
    struct sim *sim = sim_new(POOL);
    sim_paths(sim, ALL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *answer = sim_ask(sim, "%s", bad[i][0]);
        if (strncmp(answer, bad[i][1], strlen(bad[i][1])) != 0) {
            fprintf(stderr, "'%s' was answered with '%s'\n", bad[i][0], answer);
            abort();
        }
    }
    CHECK_EQ(sim->stage.batch->op_count, 0);
    sim_free(sim);
    sim = sim_new(POOL);
    sim_pair(sim, ALL " dist=normal");
    CHECK_TEXT(sim_ask(sim, "path 0 1 " ALL),
               "err conflict 'path' after 'open' or 'link': links and paths cannot be mixed");
    CHECK_TEXT(sim_ask(sim, "ports"), "ok 0");
    CHECK_TEXT(sim_ask(sim, "usage all"), "ok 0");
    sim_free(sim);
}

/* What was declared in a batch that is forgotten must be declared in full again. */
static void abort_takes_declarations_back(void) {
    struct sim *sim = sim_new(POOL);
    sim_paths(sim, ALL);
    sim_do(sim, "path 0 2 " ALL);
    sim_do(sim, "path 0 2 delay=0");
    CHECK_TEXT(sim_ask(sim, "sync 7Up"), "ok sync 7Up");
    CHECK(strncmp(sim_ask(sim, "path 0 2 delay=0"), "err unknown path from node 0", 28) == 0);
    sim_do(sim, "path 0 2 " ALL);
    sim_do(sim, "path 0 2 delay=1000000");
    sim_commit(sim);
    offer(sim, 0, 2, 100);
    sim_run(sim, T0 + MS);
    CHECK_EQ(sim->count, 1);
    sim_free(sim);
}

static void sync_works_at_any_time(void) {
    struct sim *sim = sim_new(POOL);
    sim->proto.session.greeted = false;
    CHECK_TEXT(sim_ask(sim, "sync a"), "ok sync a");
    CHECK_TEXT(sim_ask(sim, "commit 1\x18"),
               "err syntax a line is printable words separated by one space");
    CHECK_TEXT(sim_ask(sim, "sync 01234567890123456789012345678901"),
               "ok sync 01234567890123456789012345678901");
    CHECK_TEXT(sim_ask(sim, "ports"), "err order 'ports' before 'hello'");
    CHECK_TEXT(sim_ask(sim, "hello 1"), "ok pktd 1 version=test");
    CHECK_TEXT(sim_ask(sim, "hello 1"), "ok pktd 1 version=test");
    sim_free(sim);
}

static void usage_tells_what_moved(void) {
    struct sim *sim = sim_new(POOL);
    /* A packet of 1000 bytes takes 1 ms; two fit beside the one being sent. */
    sim_paths(sim, "rate=8000000 delay=10000000 jitter=0 loss=0 queue=3000 up=1");
    CHECK_TEXT(sim_ask(sim, "usage"), "ok 0");
    for (int i = 0; i < 5; i++) {
        offer(sim, 0, 1, 1000);
    }
    CHECK_TEXT(sim_ask(sim, "usage"), "ok 1\n0 1 0 0 2 0 3000");
    sim_run(sim, T0 + MS);
    CHECK_TEXT(sim_ask(sim, "usage"), "ok 1\n0 1 1 1000 2 0 2000");
    sim_run(sim, T0 + 5 * MS);
    CHECK_TEXT(sim_ask(sim, "usage"), "ok 1\n0 1 3 3000 2 0 0");
    CHECK_TEXT(sim_ask(sim, "usage"), "ok 0");
    CHECK_TEXT(sim_ask(sim, "usage all"), "ok 1\n0 1 3 3000 2 0 0");
    /* What waits when the path closes was never sent. */
    for (int i = 0; i < 3; i++) {
        offer(sim, 0, 1, 1000);
    }
    sim_run(sim, T0 + 6 * MS);
    sim_do(sim, "path 0 1 up=0");
    sim_commit(sim);
    CHECK_TEXT(sim_ask(sim, "usage"), "ok 1\n0 1 4 4000 2 0 0");
    sim_do(sim, "path 0 1 up=1 rate=0 loss=1000000000");
    sim_do(sim, "path 1 0 rate=0");
    sim_commit(sim);
    offer(sim, 1, 0, 500);
    offer(sim, 0, 1, 500);
    CHECK_TEXT(sim_ask(sim, "usage"), "ok 2\n0 1 4 4000 2 1 0\n1 0 1 500 0 0 0");
    sim_free(sim);
}

/* Under random changes and traffic the counters never fall and end at what left. */
static void usage_never_falls(void) {
    struct sim *sim = sim_new(POOL);
    uint64_t random = 99;
    uint64_t last[5] = {0};
    sim_paths(sim, "rate=10000000 delay=100000 jitter=0 loss=1000000 queue=20000 up=1");
    for (int i = 0; i < 3000; i++) {
        make_frame(&frame, 4, TEST_TCP, 0, 1, 1 + next_random(&random) % 20000, 1448);
        sim_send(sim, 0, &frame);
        if (i % 5 == 0) {
            sim_do(sim, "path 0 1 rate=%llu up=%u",
                   (unsigned long long)(next_random(&random) % 3 ? next_random(&random) % 100000000
                                                                 : 0),
                   next_random(&random) % 8 != 0);
            sim_commit(sim);
        }
        sim_run(sim, sim->now_ns + next_random(&random) % 3000000);
        sim_forget(sim);
        for (int field = 2; field < 6; field++) {
            uint64_t now = sim_stat(sim, "usage all", "0 1 ", field);
            CHECK(now >= last[field - 2]);
            last[field - 2] = now;
        }
    }
    sim_do(sim, "path 0 1 rate=0 up=1");
    sim_commit(sim);
    const struct link_counters *c = &engine_link(sim->engine, 0)->count;
    CHECK_EQ(sim_stat(sim, "usage all", "0 1 ", 6), 0);
    CHECK(last[0] > 1000 && last[2] > 1000 && last[3] > 10);
    CHECK(sim_stat(sim, "usage all", "0 1 ", 2) <= counter_get(&c->pkts));
    sim_free(sim);
}

static void ports_are_listed_with_their_nodes(void) {
    struct sim *sim = sim_new(POOL);
    CHECK_TEXT(sim_ask(sim, "ports"), "ok 0");
    CHECK_TEXT(sim_ask(sim, "attach 3 netns=/x if=eth0 prefix=10.77.0.0/16,fd77::/16,0.0.0.0/0 "
                            "kind=tap remove=netns"),
               "ok kind=tap if=eth0 prefixes=3 leave=1");
    CHECK_TEXT(sim_ask(sim, "attach 3 netns=/x if=eth0 prefix=10.0.0.0/8"),
               "err conflict port 3 is attached already");
    sim_do(sim, "attach 1 netns=/x if=eth0 prefix=10.77.1.2/32");
    sim_do(sim, "node 5 ip=10.77.0.5");
    sim_do(sim, "node 6");
    sim_do(sim, "bind 5 3");
    CHECK_TEXT(sim_ask(sim, "ports"), "ok 2\n1 - eth1 4711 tap\n3 - eth3 4711 tap");
    sim_commit(sim);
    CHECK_TEXT(sim_ask(sim, "ports"), "ok 2\n1 - eth1 4711 tap\n3 5 eth3 4711 tap");
    sim_do(sim, "bind 6 3");
    sim_do(sim, "bind 5 1");
    sim_commit(sim);
    CHECK_TEXT(sim_ask(sim, "ports"), "ok 2\n1 5 eth1 4711 tap\n3 6 eth3 4711 tap");
    sim_do(sim, "bind 6 1");
    sim_commit(sim);
    CHECK_TEXT(sim_ask(sim, "ports"), "ok 2\n1 6 eth1 4711 tap\n3 - eth3 4711 tap");
    sim_do(sim, "unbind 5");
    sim_do(sim, "detach 1");
    CHECK_TEXT(sim_ask(sim, "detach 1"), "err unknown port 1 is not attached");
    CHECK_TEXT(sim_ask(sim, "ports"), "ok 1\n3 - eth3 4711 tap");
    sim->detach_error = -ENODEV;
    CHECK_TEXT(sim_ask(sim, "detach 3"), "err system restore eth0: it is gone");
    CHECK_TEXT(sim_ask(sim, "ports"), "ok 0");
    sim_free(sim);
}

static void prefixes_are_strict(void) {
    static const char *const bad[][2] = {
        {"10.0.0.0", "prefix '10.0.0.0' is not ADDRESS/LENGTH"},
        {"10.0.0.0/33", "prefix '10.0.0.0/33' is not ADDRESS/LENGTH"},
        {"10.0.0/8", "prefix '10.0.0/8' is not ADDRESS/LENGTH"},
        {"fd00::/129", "prefix 'fd00::/129' is not ADDRESS/LENGTH"},
        {"10.0.0.0/8,", "prefix '' is not ADDRESS/LENGTH"},
        {"/8", "prefix '/8' is not ADDRESS/LENGTH"},
        {"10.77.0.1/16", "prefix '10.77.0.1/16' has bits beyond its length; 10.77.0.0/16 has none"},
        {"fd77:1::/16", "prefix 'fd77:1::/16' has bits beyond its length; fd77::/16 has none"}};
    struct sim *sim = sim_new(POOL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *answer = sim_ask(sim, "attach 0 netns=/x if=eth0 prefix=%s", bad[i][0]);
        CHECK(strncmp(answer, "err range ", 10) == 0);
        CHECK_TEXT(answer + 10, bad[i][1]);
    }
    char many[33 * 12 + 1] = "";
    for (int i = 0; i < 33; i++) {
        strcat(many, i ? ",10.0.0.0/8" : "10.0.0.0/8");
    }
    CHECK_TEXT(sim_ask(sim, "attach 0 netns=/x if=eth0 prefix=%s", many),
               "err range more than 32 prefixes");
    static const char *const lacking[] = {
        "attach 0 netns=/x if=eth0",          "attach 0 netns=/x prefix=10.0.0.0/8",
        "attach 0 if=eth0 prefix=10.0.0.0/8", "attach 0 netns=/x if=eth0 prefix=10.0.0.0/8 mtu=99",
        "attach 0 netns=/x if=eth0 prefix",   "attach"};
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        CHECK(strncmp(sim_ask(sim, "%s", lacking[i]), "err syntax usage: attach PORT", 29) == 0);
    }
    CHECK_TEXT(sim_ask(sim, "attach 0 netns=/refused if=eth0 prefix=10.0.0.0/8"),
               "err system open /refused: no such thing");
    /* Nothing of it has decided what this pktd is for. */
    sim_do(sim, "open 0 netns=/x if=eth0");
    sim_free(sim);
}

static void a_lease_that_lapsed_closes_every_path(void) {
    struct sim *sim = sim_new(POOL);
    sim_paths(sim, ALL);
    struct session *session = &sim->proto.session;
    CHECK_EQ(session_next(session), TIME_NEVER);
    sim_do(sim, "lease 250000000");
    uint64_t end_ns = sim->now_ns + 250000000;
    CHECK_EQ(session_next(session), end_ns);
    offer(sim, 0, 1, 100); /* on its way when it lapses */
    session_judge(session, end_ns - 1);
    CHECK_EQ(text_left(&sim->out), 0);
    session_judge(session, end_ns);
    CHECK_EQ(session_next(session), TIME_NEVER);
    offer(sim, 0, 1, 100);
    make_packet(&frame, 0, 77, 100);
    sim_send(sim, 0, &frame);
    sim_run(sim, T0 + 20 * MS);
    CHECK_EQ(sim->count, 1); /* to the address that nobody has */
    CHECK_TEXT(sim_ask(sim, "lease 0"), "! lease expired\n! lease renewed\nok");
    CHECK_EQ(sim_stat(sim, "stats pairs", "0 1 ", 8), 2);
    offer(sim, 0, 1, 100);
    sim_run(sim, T0 + 40 * MS);
    CHECK_EQ(sim->count, 2);
    sim_free(sim);
}

void test_paths(void) {
    a_packet_leaves_where_it_came_from();
    super_packets_are_cut_as_on_links();
    what_has_no_path_is_dropped();
    an_address_nobody_has_passes();
    changes_keep_the_rest();
    seeds_may_be_stated_early_or_late();
    refusals();
    abort_takes_declarations_back();
    sync_works_at_any_time();
    usage_tells_what_moved();
    usage_never_falls();
    ports_are_listed_with_their_nodes();
    prefixes_are_strict();
    a_lease_that_lapsed_closes_every_path();
}
