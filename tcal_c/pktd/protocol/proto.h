/* The line protocol of docs/pktd.md: a line in, one answer out. Control thread. */
#ifndef PKTD_PROTO_H
#define PKTD_PROTO_H

#include "pktd/ports/port.h"
#include "stage.h"
#include "common/session.h"
#include "pktd/record/capture_request.h"

/* What the protocol needs of the world; tests and fuzzers bring their own. */
struct proto_host {
    void *context;
    uint64_t (*clock)(void *context);
    void (*describe)(void *context, struct text *out); /* KEY=VALUE… of hello */
    bool (*open)(void *context, const struct port_request *request, struct text *out,
                 struct refusal *r);
    void (*close)(void *context, uint32_t port);
    void (*reserve)(void *context, const struct engine_room *room);
    void (*commit)(void *context, struct batch *batch);
    /* Attaches to somebody else's device; `out` gets the whole answer. */
    bool (*attach)(void *context, const struct attach_request *request, struct text *out,
                   struct refusal *r);
    bool (*detach)(void *context, uint32_t port, struct refusal *r);
    void (*describe_port)(void *context, uint32_t port, struct text *out); /* IF INODE KIND */
    bool (*is_gone)(void *context, uint32_t port);         /* somebody has removed its device */
    void (*close_paths)(void *context, bool closed);       /* done when it returns */
    void (*await)(void *context);                          /* proto_moved is to be called, once */
    void (*engine_stats)(void *context, struct text *out); /* KEY=VALUE… of the loop */
    bool (*burden)(void *context, uint32_t permille, struct refusal *r); /* done on return */
    /* What day and time `epoch_ns` was. */
    void (*epoch)(void *context, uint64_t epoch_ns, uint64_t unix_ns);
    /* Makes a file for packets of the named interfaces; `to` gets where they go. */
    bool (*capture)(void *context, struct capture_request *request, struct refusal *r);
    void (*captures)(void *context, struct text *out); /* writes all; KEY=VALUE… of them */
};

struct proto {
    struct session session;
    struct stage *stage;
    struct engine *engine;
    const struct proto_host *host;
    struct dest_range *range; /* scratch for one line */
    size_t range_room;
};

/* For the session. */
extern const struct session_program proto_program;

void proto_applied(struct proto *p, const struct batch *batch);
void proto_moved(struct proto *p);
void proto_destroy(struct proto *p);

/* stats.c */
void stats_links(struct proto *p);
void stats_pairs(struct proto *p);
void stats_ports(struct proto *p);
void stats_engine(struct proto *p);
void stats_usage(struct proto *p, bool all);

#endif
