/* Fuzzes the line protocol and staging: any bytes as lines, with commits applied as they come. The
 * first byte chooses whether it begins with links or with paths.
 *
 * Fails on anything the sanitizers see, on an answer that is not exactly one `ok` or `err` per
 * line, and on a refused command that staged something.
 */
#include "common/tests/driver.h"
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static struct test_frame probe;

static size_t staged(const struct sim *sim) {
    const struct batch *batch = sim->stage.batch;
    return batch->op_count + batch->node_count + batch->link_count + batch->group_count;
}

static void one_line(struct sim *sim, const uint8_t *bytes, size_t length) {
    char *line = malloc(length + 1);
    REQUIRE(line);
    memcpy(line, bytes, length);
    line[length] = '\0';
    size_t before = staged(sim);
    session_line(&sim->proto.session, line, length);
    free(line);
    const char *answer = sim->out.bytes + sim->out.begin;
    size_t left = text_left(&sim->out);
    REQUIRE(left >= 3 && answer[left - 1] == '\n');
    REQUIRE(!memcmp(answer, "ok", 2) || !memcmp(answer, "err ", 4));
    REQUIRE(answer[0] == 'o' || staged(sim) == before);
    text_take(&sim->out, left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sim *sim = sim_new(4 << 20);
    if (size && data[0] % 2) {
        sim_paths(sim, "rate=1000000 delay=1000 jitter=10 loss=1000 queue=3000 up=1");
    } else {
        sim_pair(sim, "rate=1000000 delay=1000 jitter=10 loss=1000 queue=3000 dist=normal up=1");
    }
    sim->engine->transit.digests = DIGESTS_TIMES;
    make_packet(&probe, 0, 1, 200);
    data += size > 0;
    size -= size > 0;
    while (size && !sim->proto.session.quit) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t length = newline ? (size_t)(newline - data) : size;
        if (length <= PROTO_LINE_LIMIT) {
            one_line(sim, data, length);
        }
        sim_send(sim, 0, &probe);
        sim_run(sim, sim->now_ns + 100000);
        length += newline != NULL;
        data += length;
        size -= length;
    }
    sim_run(sim, sim->now_ns + 1000000000);
    sim_free(sim);
    return 0;
}

const char *const fuzz_words[] = {
    "hello 1",
    "open ",
    "close ",
    "node ",
    "bind ",
    "unbind ",
    "link ",
    "set ",
    "route ",
    "routes ",
    "group 0 2 1 3",
    "group ",
    " g0 1",
    "commit ",
    "abort",
    "epoch ",
    "burden ",
    "digests",
    "await",
    "capture ",
    "trace 1 begin=0 period=3000000",
    "steps 1 1x2 2 end",
    "set 0 trace=1",
    "delays m 7 0 5",
    "delays m end",
    "set 0 dist=m jitter=1000",
    "captures",
    "capture a 0=x 1=y",
    " unix=",
    "stats ",
    "links",
    "pairs",
    "engine",
    "clock",
    "quit",
    "sync ",
    "attach ",
    "detach ",
    "ports",
    "path ",
    "usage",
    "all",
    "lease ",
    "prefix=",
    "10.0.0.0/8",
    "fd77::/16",
    ",",
    "remove=",
    "\n",
    " ",
    "rate=",
    "delay=",
    "jitter=",
    "loss=",
    "queue=",
    "dist=",
    "normal",
    "pareto",
    "seed=",
    "up=",
    "ip=",
    "ip6=",
    "netns=",
    "if=",
    "kind=",
    "mtu=",
    "flows=",
    "neck=a",
    "rtt=",
    "2:1:1;3:4:5",
    "10.77.0.",
    "fd77::",
    "-",
    "0",
    "1",
    "2",
    "3",
    "65534",
    "1048574",
    "18446744073709551615",
    "link 0 0 2 rate=0 delay=1 jitter=2 loss=3 queue=4 dist=uniform seed=5 up=1\n",
    "route 0 0 1\n",
    "attach 2 netns=/x if=eth0 prefix=10.0.0.0/8,::/0\n",
    "path 0 2 rate=0 delay=1 jitter=2 loss=3 queue=4 up=1\n",
    "path 0 1 up=0\n",
    "usage all\n",
    "commit 0\n",
    NULL};

const bool fuzz_frames = false;
