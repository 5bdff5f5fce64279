/* The devices and the data thread, as the protocol asks for them. */
#include "host.h"

#include "common/clock.h"
#include "pktd/ports/closer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t host_clock(void *context) {
    (void)context;
    return clock_now();
}

static void host_describe(void *context, struct text *out) {
    struct host *h = context;
    static const char *const digests[] = {"off", "contents", "times"};
    text_add(out,
             "version=%s sched=%s stamp=%s lock=%d spin_ns=%llu paths=1 digests=%s threads=%u"
             " steering=%s",
             VERSION, h->loop->may_fifo ? "fifo" : "other", h->program >= 0 ? "bpf" : "read",
             h->loop->is_locked, (unsigned long long)counter_get(&h->loop->pace.spin_ns),
             digests[h->loop->engine->transit.digests], 1 + h->loop->io_threads.count,
             h->loop->steers.may ? "auto" : "off");
}

static struct message *new_message(enum message_kind kind) {
    struct message *message = calloc(1, sizeof *message);
    if (!message) {
        /* Nothing can be promised to the client any more. */
        perror("pktd: out of memory");
        exit(1);
    }
    message->kind = kind;
    return message;
}

static bool host_open(void *context, const struct port_request *request, struct text *out,
                      struct refusal *r) {
    struct host *h = context;
    char why[240];
    struct port_request own = *request;
    own.plain = h->loop->is_virtual;
    if (request->line && !h->loop->is_virtual) {
        return refuse(r, "conflict", "pktd was started without --virtual-time");
    }
    /* Asked before: what was in the way may be gone when the refusal is here. */
    bool closing = closer_busy();
    struct port *port = port_open(&own, h->program, why, sizeof why);
    if (!port && closing) {
        /* A device of that name may have been on its way out. */
        closer_wait();
        port = port_open(&own, h->program, why, sizeof why);
    }
    if (!port) {
        return refuse(r, "system", "%s", why);
    }
    h->port[request->number] = port;
    const uint8_t *mac = port->mac;
    text_add(out, "ok kind=%s mac=%02x:%02x:%02x:%02x:%02x:%02x stamp=%s\n",
             port_kind_name(port->kind), mac[0], mac[1], mac[2], mac[3], mac[4], mac[5],
             port_stamp_name(port->stamp));
    struct message *message = new_message(MESSAGE_OPEN);
    message->port = port;
    loop_post(h->loop, message);
    return true;
}

static void finish_message(struct host *h, struct message *message) {
    if (message == h->awaited) {
        h->awaited = NULL;
        return;
    }
    switch (message->kind) {
    case MESSAGE_BATCH:
        proto_applied(h->proto, message->batch);
        batch_free(message->batch);
        break;
    case MESSAGE_RESERVE:
        free(message->room.heap);
        free(message->room.slots);
        break;
    default:
        break;
    }
    free(message);
}

void host_collect(struct host *h) {
    uint64_t count;
    if (read(h->loop->report, &count, sizeof count) < 0) {
        return;
    }
    if (loop_moved(h->loop)) {
        proto_moved(h->proto);
    }
    steers_apply(h->loop, h->port, h->proto->stage->port_end);
    for (struct message *m = loop_collect(h->loop), *next; m; m = next) {
        next = m->next;
        finish_message(h, m);
    }
}

/* What the port's socket has lost since it was last asked. */
static void count_lost(struct host *h, struct port *port) {
    uint64_t before = port->lost;
    h->lost += port_lost(port) - before;
}

/* Hands the message over and waits until it is done; it is the caller's again. */
static void post_and_wait(struct host *h, struct message *message) {
    h->awaited = message;
    loop_post(h->loop, message);
    while (h->awaited) {
        host_collect(h);
    }
}

static void host_close(void *context, uint32_t number) {
    struct host *h = context;
    struct message *message = new_message(MESSAGE_CLOSE);
    message->port = h->port[number];
    post_and_wait(h, message);
    h->port[number] = NULL;
    count_lost(h, message->port);
    closer_close(message->port);
    free(message);
}

/* The port at the same interface, PORT_NONE when there is none. */
static uint32_t attached_as(const struct host *h, const struct attach_request *request) {
    struct stat status;
    if (stat(request->port.netns, &status)) {
        return PORT_NONE;
    }
    for (uint32_t i = 0; i < h->proto->stage->port_end; i++) {
        const struct port *port = h->port[i];
        if (port && port->netns_inode == status.st_ino &&
            strcmp(port->target, request->target) == 0) {
            return i;
        }
    }
    return PORT_NONE;
}

static bool host_attach(void *context, const struct attach_request *request, struct text *out,
                        struct refusal *r) {
    struct host *h = context;
    char why[240];
    uint32_t other = attached_as(h, request);
    if (other != PORT_NONE) {
        return refuse(r, "conflict", "%s of that namespace is attached as port %u", request->target,
                      other);
    }
    struct attach_request own = *request;
    own.port.plain = h->loop->is_virtual;
    struct port *port = port_attach(&own, h->program, why, sizeof why);
    if (!port) {
        return refuse(r, "system", "%s", why);
    }
    h->port[port->number] = port;
    text_add(out, "ok kind=%s mac=%02x:%02x:%02x:%02x:%02x:%02x stamp=%s\n",
             port_kind_name(port->kind), port->mac[0], port->mac[1], port->mac[2], port->mac[3],
             port->mac[4], port->mac[5], port_stamp_name(port->stamp));
    struct message *message = new_message(MESSAGE_OPEN);
    message->port = port;
    loop_post(h->loop, message);
    return true;
}

/* The interface first: nothing is sent to a device that is not read any more. */
static bool host_detach(void *context, uint32_t number, struct refusal *r) {
    struct host *h = context;
    struct port *port = h->port[number];
    char target[IFNAMSIZ];
    struct nl_why why = {0};
    memcpy(target, port->target, sizeof target);
    int error = port_restore(port, &why);
    host_close(h, number);
    return error == 0 || refuse(r, "system", "restore %s: %s%s%s", target, strerror(-error),
                                *why.text ? ": " : "", why.text);
}

static void host_describe_port(void *context, uint32_t number, struct text *out) {
    struct host *h = context;
    const struct port *port = h->port[number];
    text_add(out, "%s %llu %s", port->target, (unsigned long long)port->netns_inode,
             port_kind_name(port->kind));
}

static void host_close_paths(void *context, bool closed) {
    struct message *message = new_message(MESSAGE_LEASE);
    message->expired = closed;
    post_and_wait(context, message);
    free(message);
}

void host_restore_ports(struct host *h) {
    for (uint32_t i = 0; i < PORT_LIMIT; i++) {
        struct nl_why why = {0};
        int error = h->port[i] ? port_restore(h->port[i], &why) : 0;
        if (error) {
            fprintf(stderr, "pktd: restore %s of port %u: %s%s%s\n", h->port[i]->target, i,
                    strerror(-error), *why.text ? ": " : "", why.text);
        }
    }
}

void host_close_ports(struct host *h) {
    for (uint32_t i = 0; i < PORT_LIMIT; i++) {
        if (h->port[i]) {
            closer_close(h->port[i]);
        }
    }
    closer_wait();
}

static void host_reserve(void *context, const struct engine_room *room) {
    struct host *h = context;
    struct message *message = new_message(MESSAGE_RESERVE);
    message->room = *room;
    loop_post(h->loop, message);
}

static void host_commit(void *context, struct batch *batch) {
    struct host *h = context;
    struct message *message = new_message(MESSAGE_BATCH);
    message->batch = batch;
    loop_post(h->loop, message);
}

static void host_await(void *context) {
    struct host *h = context;
    loop_await(h->loop);
}

static uint64_t data_cpu_ns(const struct loop *loop) {
    clockid_t id;
    struct timespec t;
    if (pthread_getcpuclockid(loop->thread, &id) || clock_gettime(id, &t)) {
        return 0;
    }
    return clock_ns(&t) + io_threads_cpu_ns(&loop->io_threads);
}

static bool host_is_gone(void *context, uint32_t number) {
    const struct host *h = context;
    return h->port[number] && port_is_gone(h->port[number]);
}

static uint64_t lost_by_sockets(struct host *h) {
    for (uint32_t i = 0; i < h->proto->stage->port_end; i++) {
        if (h->port[i]) {
            count_lost(h, h->port[i]);
        }
    }
    return h->lost;
}

static void host_engine_stats(void *context, struct text *out) {
    struct host *h = context;
    const struct loop *loop = h->loop;
    text_add(out, "drop_input=%llu late_p50_ns=%llu late_p99_ns=%llu late_max_ns=%llu cpu_ns=%llu",
             (unsigned long long)lost_by_sockets(h),
             (unsigned long long)histogram_quantile(&loop->late, 500),
             (unsigned long long)histogram_quantile(&loop->late, 990),
             (unsigned long long)counter_get(&loop->late.highest),
             (unsigned long long)data_cpu_ns(loop));
    text_add(out, " spin_ns=%llu class=%s class_left=%llu class_left_ns=%llu busy_ppm=%llu",
             (unsigned long long)counter_get(&loop->pace.spin_ns),
             atomic_load(&loop->is_fifo) ? "fifo" : "other",
             (unsigned long long)counter_get(&loop->load.class_left),
             (unsigned long long)counter_get(&loop->load.class_left_ns),
             (unsigned long long)counter_get(&loop->load.busy_ppm));
    text_add(out, " longest_slice_ns=%llu coalesced_frames=%llu coalesced_max_ns=%llu",
             (unsigned long long)counter_get(&loop->longest_slice_ns),
             (unsigned long long)counter_get(&loop->load.coalesced_frames),
             (unsigned long long)counter_get(&loop->load.coalesced_max_ns));
    text_add(out, " handed_frames=%llu", (unsigned long long)counter_get(&loop->io_threads.frames));
    text_add(out, " steered=%llu steered_ns=%llu steered_ports=%llu steered_refused=%llu",
             (unsigned long long)counter_get(&loop->steers.steer.times),
             (unsigned long long)counter_get(&loop->steers.steer.on_ns),
             (unsigned long long)counter_get(&loop->steers.ports_steered),
             (unsigned long long)counter_get(&loop->steers.refused));
}

static bool host_burden(void *context, uint32_t permille, struct refusal *r) {
    struct host *h = context;
    if (h->loop->is_virtual) {
        return refuse(r, "conflict", "in virtual time nothing takes time");
    }
    struct message *message = new_message(MESSAGE_BURDEN);
    message->burden_permille = permille;
    post_and_wait(h, message);
    free(message);
    return true;
}

static void host_epoch(void *context, uint64_t epoch_ns, uint64_t unix_ns) {
    struct captures *c = &((struct host *)context)->loop->captures;
    atomic_store(&c->epoch_ns, epoch_ns);
    atomic_store(&c->epoch_unix_ns, unix_ns);
}

static bool host_capture(void *context, struct capture_request *request, struct refusal *r) {
    struct loop *loop = ((struct host *)context)->loop;
    if (!loop->has_captures) {
        return refuse(r, "conflict", "pktd was started without --captures");
    }
    int error = captures_open(&loop->captures, request);
    if (error == -EBUSY) {
        return refuse(r, "conflict", "%.200s is captured already", request->name[request->taken]);
    }
    return error == 0 || refuse(r, "system", "%s %.255s: %s", request->is_pipe ? "open" : "create",
                                request->file, strerror(-error));
}

static void host_captures(void *context, struct text *out) {
    struct loop *loop = ((struct host *)context)->loop;
    struct captures *c = &loop->captures;
    if (loop->has_captures) {
        captures_flush(c);
    }
    int error = atomic_load(&c->error);
    text_add(out, "written=%llu lost=%llu unwritten=%llu errno=%d",
             (unsigned long long)atomic_load(&c->written),
             (unsigned long long)(loop->has_captures ? captures_lost(c) : 0),
             (unsigned long long)atomic_load(&c->unwritten), error);
}

const struct proto_host host_functions = {
    .clock = host_clock,
    .describe = host_describe,
    .open = host_open,
    .close = host_close,
    .reserve = host_reserve,
    .commit = host_commit,
    .attach = host_attach,
    .detach = host_detach,
    .describe_port = host_describe_port,
    .is_gone = host_is_gone,
    .close_paths = host_close_paths,
    .await = host_await,
    .engine_stats = host_engine_stats,
    .burden = host_burden,
    .epoch = host_epoch,
    .capture = host_capture,
    .captures = host_captures,
};
