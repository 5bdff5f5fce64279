/* Counters as text. They are written by the data thread while they are read here: each is right,
 * but two of them may be a packet apart. */
#include "proto.h"

struct report {
    struct proto *proto;
    struct text lines;
    uint64_t count;
    uint64_t now_ns; /* read once: in virtual time each reading takes some */
};

static void finish(struct report *report) {
    struct text *lines = &report->lines;
    text_add(report->proto->session.out, "ok %llu\n", (unsigned long long)report->count);
    if (lines->end) {
        text_add(report->proto->session.out, "%.*s", (int)lines->end, lines->bytes);
    }
    report->proto->session.out->failed |= lines->failed;
    text_free(lines);
}

static uint64_t link_packets(const struct link_counters *c) {
    return counter_get(&c->pkts) + counter_get(&c->out_pkts) + counter_get(&c->drop_queue) +
           counter_get(&c->drop_loss) + counter_get(&c->drop_down);
}

/* What waits in the neck, in packets of this link. */
static uint64_t neck_backlog(const struct flows *neck, const struct link_counters *c,
                             uint64_t now_ns, uint64_t *packets) {
    uint64_t backlog =
        queue_backlog(counter_get(&neck->rate_bps), counter_get(&neck->free_ns), now_ns);
    uint64_t bytes = max_u64(counter_get(&c->burst_bytes), 1);
    *packets = (uint64_t)(((u128)backlog * counter_get(&c->burst_pkts) + bytes - 1) / bytes);
    return backlog;
}

static void report_link(struct report *report, uint32_t number, struct link *link) {
    uint64_t waiting;
    const struct link_counters *c = &link->count;
    const struct flows *neck = stage_neck(report->proto->stage, number);
    uint64_t backlog = neck ? neck_backlog(neck, c, report->now_ns, &waiting)
                            : link_backlog(c, report->now_ns, &waiting);
    uint64_t own = backlog;
    if (neck) { /* in the moment in which a queue becomes shorter it may still have what is gone */
        const struct flow_share *share = stage_share(report->proto->stage, number);
        own = min_u64(flows_own_bytes(share, report->now_ns), backlog);
    }
    link->neck_waited = neck && backlog;
    report->count++;
    text_add(&report->lines, "%u %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu\n", number,
             (unsigned long long)counter_get(&c->pkts), (unsigned long long)counter_get(&c->bytes),
             (unsigned long long)counter_get(&c->out_pkts),
             (unsigned long long)counter_get(&c->out_bytes),
             (unsigned long long)counter_get(&c->drop_queue),
             (unsigned long long)counter_get(&c->drop_loss),
             (unsigned long long)counter_get(&c->drop_down), (unsigned long long)backlog,
             (unsigned long long)waiting, (unsigned long long)own);
}

/* Of a link of a neck, without a packet of its own: while anything waits there, and once more. */
static bool queue_changes(const struct report *report, uint32_t number, const struct link *link) {
    uint64_t waiting;
    const struct flows *neck = stage_neck(report->proto->stage, number);
    return neck &&
           (link->neck_waited || neck_backlog(neck, &link->count, report->now_ns, &waiting) > 0);
}

void stats_links(struct proto *p) {
    struct report report = {.proto = p, .now_ns = p->host->clock(p->host->context)};
    uint32_t links = p->stage->mode == MODE_PATHS ? 0 : p->stage->link_end;
    for (uint32_t i = 0; i < links; i++) {
        struct link *link = engine_link(p->engine, i);
        uint64_t now = link ? link_packets(&link->count) : 0;
        if (now && (now != link->reported || queue_changes(&report, i, link))) {
            link->reported = now;
            report_link(&report, i, link);
        }
    }
    finish(&report);
}

static void visit_pair(void *context, uint32_t source, uint32_t dest, const struct pair *pair) {
    struct report *report = context;
    report->count++;
    text_add(&report->lines, "%u %u %llu %llu %llu %llu %llu %llu %llu %llu\n", source, dest,
             (unsigned long long)counter_get(&pair->offered_pkts),
             (unsigned long long)counter_get(&pair->offered_bytes),
             (unsigned long long)counter_get(&pair->delivered_pkts),
             (unsigned long long)counter_get(&pair->delivered_bytes),
             (unsigned long long)counter_get(&pair->drop_queue),
             (unsigned long long)counter_get(&pair->drop_loss),
             (unsigned long long)counter_get(&pair->drop_down),
             (unsigned long long)counter_get(&pair->drop_route));
}

void stats_pairs(struct proto *p) {
    struct report report = {.proto = p};
    pairs_report(&p->engine->pairs, p->stage->node_end, visit_pair, &report);
    finish(&report);
}

void stats_ports(struct proto *p) {
    struct report report = {.proto = p};
    for (uint32_t i = 0; i < p->stage->port_end; i++) {
        struct port_counters *c = &p->engine->port[i];
        uint64_t spoofed = counter_get(&c->spoofed), group = counter_get(&c->group);
        bool gone = p->host->is_gone(p->host->context, i);
        if (spoofed != c->told_spoofed || group != c->told_group || gone != c->told_gone) {
            c->told_spoofed = spoofed;
            c->told_group = group;
            c->told_gone = gone;
            report.count++;
            text_add(&report.lines, "%u %llu %d %llu\n", i, (unsigned long long)spoofed, gone,
                     (unsigned long long)group);
        }
    }
    finish(&report);
}

void stats_engine(struct proto *p) {
    const struct engine_counters *c = &p->engine->count;
    const struct {
        const char *name;
        const counter *value;
    } counters[] = {{"rx", &c->rx},
                    {"tx", &c->tx},
                    {"rx_frames", &c->rx_frames},
                    {"tx_frames", &c->tx_frames},
                    {"drop_unknown", &c->drop_unknown},
                    {"drop_malformed", &c->drop_malformed},
                    {"drop_nobuf", &p->engine->transit.drop_nobuf},
                    {"drop_write", &c->drop_write},
                    {"drop_spoofed", &c->drop_spoofed},
                    {"in_flight", &p->engine->transit.in_flight},
                    {"pool_bytes", &p->engine->transit.pool.bytes},
                    {"commits", &c->commits},
                    {"passed", &c->passed},
                    {"expired", &c->expired},
                    {"withheld", &c->withheld},
                    {"group_sent", &c->group_sent},
                    {"group_delivered", &c->group_delivered},
                    {"group_unwanted", &c->group_unwanted},
                    {"group_filtered", &c->group_filtered},
                    {"group_refused", &c->group_refused},
                    {"duplicated", &p->engine->transit.duplicated},
                    {"corrupted", &p->engine->transit.corrupted},
                    {"reordered", &p->engine->transit.reordered},
                    {"rejected", &p->engine->transit.rejected},
                    {"too_large", &p->engine->transit.too_large},
                    {"marked", &p->engine->transit.marked}};
    text_add(p->session.out, "ok");
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        text_add(p->session.out, " %s=%llu", counters[i].name,
                 (unsigned long long)counter_get(counters[i].value));
    }
    text_add(p->session.out, " ");
    p->host->engine_stats(p->host->context, p->session.out);
    text_add(p->session.out, "\n");
}

/* The numbers of a path now. Two counters may be a packet apart, so that a difference of them could
 * fall back by one: it stays at what was told instead. */
static struct link_usage usage_of(const struct link *link, uint64_t now_ns) {
    const struct link_counters *c = &link->count;
    uint64_t waiting;
    struct link_usage u = {.drop_queue = counter_get(&c->drop_queue),
                           .drop_loss = counter_get(&c->drop_loss),
                           .backlog_bytes = link_backlog(c, now_ns, &waiting)};
    uint64_t packets = counter_get(&c->accepted_pkts);
    uint64_t bytes = counter_get(&c->accepted_bytes);
    u.sent_pkts = max_u64(packets - min_u64(waiting, packets), link->told.sent_pkts);
    u.sent_bytes = max_u64(bytes - min_u64(u.backlog_bytes, bytes), link->told.sent_bytes);
    return u;
}

static bool usage_equal(const struct link_usage *a, const struct link_usage *b) {
    return a->sent_pkts == b->sent_pkts && a->sent_bytes == b->sent_bytes &&
           a->drop_queue == b->drop_queue && a->drop_loss == b->drop_loss &&
           a->backlog_bytes == b->backlog_bytes;
}

struct usage_report {
    struct report report;
    bool all;
};

static bool visit_path(void *context, uint32_t source, uint32_t dest) {
    struct usage_report *usage = context;
    struct proto *p = usage->report.proto;
    uint32_t number = stage_path_link(p->stage, source, dest);
    struct link *link = number == LINK_NONE ? NULL : engine_link(p->engine, number);
    if (!link || counter_get(&link->count.pkts) == 0) {
        return false;
    }
    struct link_usage now = usage_of(link, usage->report.now_ns);
    if (usage->all || !usage_equal(&now, &link->told)) {
        usage->report.count++;
        text_add(&usage->report.lines, "%u %u %llu %llu %llu %llu %llu\n", source, dest,
                 (unsigned long long)now.sent_pkts, (unsigned long long)now.sent_bytes,
                 (unsigned long long)now.drop_queue, (unsigned long long)now.drop_loss,
                 (unsigned long long)now.backlog_bytes);
    }
    link->told = now;
    return now.backlog_bytes > 0;
}

void stats_usage(struct proto *p, bool all) {
    struct usage_report usage = {.report = {.proto = p, .now_ns = p->host->clock(p->host->context)},
                                 .all = all};
    pairs_usage(&p->engine->pairs, p->stage->node_end, all, visit_path, &usage);
    finish(&usage.report);
}
