/* An engine with the protocol in front, a virtual clock, and a list of what was delivered. */
#ifndef TESTS_SIM_H
#define TESTS_SIM_H

#include "frames.h"
#include "pktd/capture/capture.h"
#include "pktd/protocol/proto.h"

struct delivery {
    uint64_t at_ns;
    uint32_t port;
    uint32_t segments; /* by the virtio header and the length */
    struct virtio_net_hdr vnet;
    size_t bytes;
    uint8_t *data;
};

struct sim {
    struct engine *engine;
    struct stage stage;
    struct proto proto;
    struct proto_host host;
    struct text out;
    uint64_t now_ns;
    uint32_t readings; /* of the clock */
    int deliver_error; /* what the next writes return */
    int detach_error;  /* whether the next detach fails */
    uint32_t burden_permille;
    int awaited;   /* how often it was asked to tell what moves */
    uint32_t gone; /* port + 1 whose device has been removed; 0 = none */
    struct batch *waiting;
    struct delivery *delivery;
    size_t count;
    size_t room;
    bool has_captures;
    struct captures captures;
    char answer[8192];
};

/* Greets pktd already. */
struct sim *sim_new(uint64_t pool_bytes);
void sim_free(struct sim *sim);

/* Files of packets are made in `directory`, which becomes the sim's. */
void sim_capture(struct sim *sim, int directory, uint64_t ring_bytes, bool waits);

/* All files are whole. */
void sim_end_captures(struct sim *sim);

/* The answer to one command, without its newline; of several lines all. */
const char *sim_ask(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Commands that must be answered with `ok`. */
void sim_do(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Commits and applies now. */
void sim_commit(struct sim *sim);

/* Forgets what was delivered. */
void sim_forget(struct sim *sim);

/* Everything due up to `until_ns`; then that is the time. */
void sim_run(struct sim *sim, uint64_t until_ns);

/* The frame enters at `port` now. */
void sim_send(struct sim *sim, uint32_t port, const struct test_frame *frame);

/* Nodes 0 and 1 with ports 0 and 1 and addresses, bridge 2; links 0: 0->2, 1: 2->1, 2: 1->2, 3:
 * 2->0 with the given properties, as the end of a link command. */
void sim_pair(struct sim *sim, const char *properties);

/* The same without properties, but for those of link 0. */
struct sim *sim_first_link(const char *properties);

/* Ports 0 and 1 attached, nodes 0 and 1 bound to them, node 2 elsewhere; a path from 0 to 1, 1 to 0
 * and 1 to 2 with the given properties, as the end of a path command. */
void sim_paths(struct sim *sim, const char *properties);

/* A number of a line `FIRST ...` of an answer, counted from 0. */
uint64_t sim_stat(struct sim *sim, const char *question, const char *line_start, int field);

/* A number of the answer to `stats engine`, which must be there. */
uint64_t sim_engine_stat(struct sim *sim, const char *key);

#endif
