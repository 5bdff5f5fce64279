/* The test's stand-in for the loop: time moves only when told. */
#include "sim.h"

#include "common/tests/check.h"

#include <errno.h>
#include <stdarg.h>

static uint64_t now(void *context) {
    struct sim *sim = context;
    sim->readings++;
    return sim->now_ns;
}

static void describe(void *context, struct text *out) {
    (void)context;
    text_add(out, "version=test");
}

static bool open_port(void *context, const struct port_request *request, struct text *out,
                      struct refusal *r) {
    (void)context;
    if (request->line) {
        text_add(out, "ok kind=line delay=%llu\n", (unsigned long long)request->delay_ns);
        return true;
    }
    if (strcmp(request->netns, "/refused") == 0) {
        return refuse(r, "system", "open %s: no such thing", request->netns);
    }
    text_add(out, "ok kind=%s mtu=%u if=%s\n", port_kind_name(request->kind), request->mtu,
             request->name);
    return true;
}

static bool attach(void *context, const struct attach_request *request, struct text *out,
                   struct refusal *r) {
    if (strcmp(request->port.netns, "/refused") == 0) {
        return refuse(r, "system", "open %s: no such thing", request->port.netns);
    }
    engine_use_paths(((struct sim *)context)->engine);
    text_add(out, "ok kind=%s if=%s prefixes=%u leave=%d\n", port_kind_name(request->port.kind),
             request->target, request->prefix_count, request->port.leave);
    return true;
}

static bool detach(void *context, uint32_t port, struct refusal *r) {
    struct sim *sim = context;
    engine_close_port(sim->engine, port);
    return sim->detach_error == 0 || refuse(r, "system", "restore eth0: it is gone");
}

static void describe_port(void *context, uint32_t port, struct text *out) {
    (void)context;
    text_add(out, "eth%u 4711 tap", port);
}

static bool is_gone(void *context, uint32_t port) {
    return ((struct sim *)context)->gone == port + 1;
}

static void await(void *context) {
    ((struct sim *)context)->awaited++;
}

static void close_paths(void *context, bool closed) {
    engine_close_paths(((struct sim *)context)->engine, closed);
}

static void close_port(void *context, uint32_t port) {
    engine_close_port(((struct sim *)context)->engine, port);
}

static void reserve(void *context, const struct engine_room *room) {
    struct engine_room r = *room;
    engine_reserve(((struct sim *)context)->engine, &r);
    free(r.heap);
    free(r.slots);
}

static void commit(void *context, struct batch *batch) {
    struct sim *sim = context;
    struct batch **slot = &sim->waiting;
    while (*slot && (*slot)->at_ns <= batch->at_ns) {
        slot = &(*slot)->next;
    }
    batch->next = *slot;
    *slot = batch;
}

static void engine_stats(void *context, struct text *out) {
    (void)context;
    text_add(out, "late_p50_ns=0");
}

static bool burden(void *context, uint32_t permille, struct refusal *r) {
    (void)r;
    ((struct sim *)context)->burden_permille = permille;
    return true;
}

static void epoch(void *context, uint64_t epoch_ns, uint64_t unix_ns) {
    struct sim *sim = context;
    atomic_store(&sim->captures.epoch_ns, epoch_ns);
    atomic_store(&sim->captures.epoch_unix_ns, unix_ns);
}

static bool capture(void *context, struct capture_request *request, struct refusal *r) {
    struct sim *sim = context;
    if (!sim->has_captures) {
        return refuse(r, "conflict", "no captures");
    }
    int error = captures_open(&sim->captures, request);
    if (error == -EBUSY) {
        return refuse(r, "conflict", "%.200s is captured already", request->name[request->taken]);
    }
    return error == 0 || refuse(r, "system", "create %.200s: %s", request->file, strerror(-error));
}

static void captures(void *context, struct text *out) {
    struct sim *sim = context;
    if (sim->has_captures) {
        captures_flush(&sim->captures);
    }
    text_add(out, "written=%llu lost=%llu unwritten=%llu errno=%d",
             (unsigned long long)atomic_load(&sim->captures.written),
             (unsigned long long)(sim->has_captures ? captures_lost(&sim->captures) : 0),
             (unsigned long long)atomic_load(&sim->captures.unwritten),
             atomic_load(&sim->captures.error));
}

void sim_capture(struct sim *sim, int directory, uint64_t ring_bytes, bool waits) {
    CHECK_EQ(captures_start(&sim->captures, directory, ring_bytes, waits), 0);
    sim->has_captures = true;
    sim->engine->transit.ring = &sim->captures.ring;
}

void sim_end_captures(struct sim *sim) {
    sim->engine->transit.ring = NULL;
    sim->has_captures = false;
    captures_stop(&sim->captures);
}

static int deliver(void *context, uint32_t port, uint64_t at_ns, const struct iovec *io,
                   int count) {
    struct sim *sim = context;
    if (sim->deliver_error) {
        return sim->deliver_error;
    }
    if (sim->count == sim->room) {
        sim->room = sim->room ? sim->room * 2 : 64;
        sim->delivery = realloc(sim->delivery, sim->room * sizeof *sim->delivery);
        CHECK(sim->delivery);
    }
    struct delivery *d = &sim->delivery[sim->count++];
    *d = (struct delivery){.at_ns = at_ns, .port = port, .data = malloc(70000)};
    CHECK(d->data && io[0].iov_len == sizeof d->vnet);
    memcpy(&d->vnet, io[0].iov_base, sizeof d->vnet);
    for (int i = 1; i < count; i++) {
        memcpy(d->data + d->bytes, io[i].iov_base, io[i].iov_len);
        d->bytes += io[i].iov_len;
    }
    d->segments = 1;
    if (d->vnet.gso_size) {
        size_t payload = d->bytes - d->vnet.hdr_len;
        d->segments = (uint32_t)((payload + d->vnet.gso_size - 1) / d->vnet.gso_size);
    }
    return 0;
}

struct sim *sim_new(uint64_t pool_bytes) {
    struct sim *sim = calloc(1, sizeof *sim);
    CHECK(sim);
    sim->engine = engine_new(pool_bytes, deliver, sim);
    CHECK(sim->engine && stage_init(&sim->stage, sim->engine));
    sim->host = (struct proto_host){.context = sim,
                                    .clock = now,
                                    .describe = describe,
                                    .open = open_port,
                                    .close = close_port,
                                    .reserve = reserve,
                                    .commit = commit,
                                    .attach = attach,
                                    .detach = detach,
                                    .describe_port = describe_port,
                                    .is_gone = is_gone,
                                    .close_paths = close_paths,
                                    .await = await,
                                    .engine_stats = engine_stats,
                                    .burden = burden,
                                    .epoch = epoch,
                                    .capture = capture,
                                    .captures = captures};
    sim->proto = (struct proto){.session = {.program = &proto_program, .out = &sim->out},
                                .stage = &sim->stage,
                                .engine = sim->engine,
                                .host = &sim->host};
    sim->now_ns = 1000000000;
    CHECK_TEXT(sim_ask(sim, "hello 1"), "ok pktd 1 version=test");
    return sim;
}

void sim_forget(struct sim *sim) {
    for (size_t i = 0; i < sim->count; i++) {
        free(sim->delivery[i].data);
    }
    sim->count = 0;
}

void sim_free(struct sim *sim) {
    sim_forget(sim);
    while (sim->waiting) {
        struct batch *next = sim->waiting->next;
        batch_free(sim->waiting);
        sim->waiting = next;
    }
    free(sim->delivery);
    proto_destroy(&sim->proto);
    stage_destroy(&sim->stage);
    engine_free(sim->engine);
    text_free(&sim->out);
    free(sim);
}

static const char *ask(struct sim *sim, const char *format, va_list args) {
    char *line = malloc(PROTO_LINE_LIMIT + 1);
    CHECK(line);
    int length = vsnprintf(line, PROTO_LINE_LIMIT + 1, format, args);
    CHECK(length >= 0 && length <= (int)PROTO_LINE_LIMIT);
    session_line(&sim->proto.session, line, (size_t)length);
    free(line);
    size_t bytes = text_left(&sim->out);
    CHECK(bytes > 0 && bytes < sizeof sim->answer);
    memcpy(sim->answer, sim->out.bytes + sim->out.begin, bytes);
    CHECK(sim->answer[bytes - 1] == '\n');
    sim->answer[bytes - 1] = '\0';
    text_take(&sim->out, bytes);
    return sim->answer;
}

const char *sim_ask(struct sim *sim, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *answer = ask(sim, format, args);
    va_end(args);
    return answer;
}

void sim_do(struct sim *sim, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *answer = ask(sim, format, args);
    va_end(args);
    if (strncmp(answer, "ok", 2) != 0) {
        fprintf(stderr, "'%s' was answered with '%s'\n", format, answer);
        abort();
    }
}

static void apply_waiting(struct sim *sim) {
    struct batch *batch = sim->waiting;
    sim->waiting = batch->next;
    uint64_t at = batch->at_ns ? batch->at_ns : sim->now_ns;
    sim->now_ns = max_u64(sim->now_ns, at);
    engine_apply(sim->engine, batch, at);
    stage_applied(&sim->stage, batch);
    batch_free(batch);
}

void sim_commit(struct sim *sim) {
    sim_do(sim, "commit 0");
    apply_waiting(sim);
}

void sim_run(struct sim *sim, uint64_t until_ns) {
    for (;;) {
        uint64_t due = engine_next(sim->engine);
        uint64_t batch = sim->waiting ? sim->waiting->at_ns : TIME_NEVER;
        if (batch <= until_ns && batch < due) {
            apply_waiting(sim);
        } else if (due <= until_ns) {
            sim->now_ns = max_u64(sim->now_ns, due);
            engine_step(sim->engine);
        } else {
            break;
        }
    }
    sim->now_ns = max_u64(sim->now_ns, until_ns);
}

void sim_send(struct sim *sim, uint32_t port, const struct test_frame *from) {
    struct frame *frame = pool_frame(&sim->engine->transit.pool, from->bytes);
    if (!frame) {
        return;
    }
    memcpy(frame->data, &from->vnet, sizeof from->vnet);
    memcpy(frame_bytes(frame), from->data, from->bytes);
    engine_input(sim->engine, port, frame, from->bytes, sim->now_ns);
}

void sim_pair(struct sim *sim, const char *properties) {
    for (int i = 0; i < 2; i++) {
        sim_do(sim, "open %d netns=/x if=eth0", i);
        sim_do(sim, "node %d ip=10.77.0.%d ip6=fd77:7473::%d", i, i + 1, i + 1);
        sim_do(sim, "bind %d %d", i, i);
    }
    sim_do(sim, "node 2");
    sim_do(sim, "link 0 0 2 seed=1 %s", properties);
    sim_do(sim, "link 1 2 1 seed=2 %s", properties);
    sim_do(sim, "link 2 1 2 seed=3 %s", properties);
    sim_do(sim, "link 3 2 0 seed=4 %s", properties);
    sim_do(sim, "route 0 0 1");
    sim_do(sim, "route 2 1 1");
    sim_do(sim, "route 1 2 0");
    sim_do(sim, "route 2 3 0");
    sim_commit(sim);
}

struct sim *sim_first_link(const char *properties) {
    struct sim *sim = sim_new(64 << 20);
    sim_pair(sim, "rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal up=1");
    sim_do(sim, "set 0 %s", properties);
    sim_commit(sim);
    return sim;
}

void sim_paths(struct sim *sim, const char *properties) {
    for (int i = 0; i < 3; i++) {
        sim_do(sim, "node %d ip=10.77.0.%d ip6=fd77:7473::%d", i, i + 1, i + 1);
        if (i < 2) {
            sim_do(sim, "attach %d netns=/x if=eth0 prefix=10.77.0.0/16,fd77:7473::/64", i);
            sim_do(sim, "bind %d %d", i, i);
        }
    }
    sim_do(sim, "path 0 1 %s", properties);
    sim_do(sim, "path 1 0 %s", properties);
    sim_do(sim, "path 1 2 %s", properties);
    sim_commit(sim);
}

uint64_t sim_stat(struct sim *sim, const char *question, const char *line_start, int field) {
    const char *line = sim_ask(sim, "%s", question);
    while (line && strncmp(line, line_start, strlen(line_start)) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    if (!line) {
        return 0;
    }
    for (int i = 0; i < field; i++) {
        line = strchr(line, ' ');
        CHECK(line);
        line++;
    }
    return strtoull(line, NULL, 10);
}

uint64_t sim_engine_stat(struct sim *sim, const char *key) {
    char word[64];
    snprintf(word, sizeof word, " %s=", key);
    const char *found = strstr(sim_ask(sim, "stats engine"), word);
    CHECK(found);
    return strtoull(found + strlen(word), NULL, 10);
}
