/* Counters as text. They are written by the data thread while they are read here: each is right,
 * but two of them may be a packet apart. */
#include "proto.h"

struct report {
    struct proto *proto;
    struct text lines;
    uint64_t count;
};

static void finish(struct report *report) {
    struct text *lines = &report->lines;
    text_add(report->proto->out, "ok %llu\n", (unsigned long long)report->count);
    if (lines->end) {
        text_add(report->proto->out, "%.*s", (int)lines->end, lines->bytes);
    }
    report->proto->out->failed |= lines->failed;
    text_free(lines);
}

static uint64_t link_packets(const struct link_counters *c) {
    return counter_get(&c->pkts) + counter_get(&c->out_pkts) + counter_get(&c->drop_queue) +
           counter_get(&c->drop_loss) + counter_get(&c->drop_down);
}

/* The packets of the backlog are estimated from the mean size since the queue was last empty. */
static uint64_t backlog_packets(const struct link_counters *c, uint64_t backlog_bytes) {
    uint64_t bytes = counter_get(&c->burst_bytes);
    uint64_t packets = counter_get(&c->burst_pkts);
    if (backlog_bytes == 0 || bytes == 0) {
        return 0;
    }
    return (uint64_t)(((u128)backlog_bytes * packets + bytes - 1) / bytes);
}

static void report_link(struct report *report, uint32_t number, const struct link_counters *c) {
    struct proto *p = report->proto;
    uint64_t backlog = queue_backlog(counter_get(&c->rate_bps), counter_get(&c->busy_until_ns),
                                     p->host->clock(p->host->context));
    report->count++;
    text_add(&report->lines, "%u %llu %llu %llu %llu %llu %llu %llu %llu %llu\n", number,
             (unsigned long long)counter_get(&c->pkts), (unsigned long long)counter_get(&c->bytes),
             (unsigned long long)counter_get(&c->out_pkts),
             (unsigned long long)counter_get(&c->out_bytes),
             (unsigned long long)counter_get(&c->drop_queue),
             (unsigned long long)counter_get(&c->drop_loss),
             (unsigned long long)counter_get(&c->drop_down), (unsigned long long)backlog,
             (unsigned long long)backlog_packets(c, backlog));
}

void stats_links(struct proto *p) {
    struct report report = {.proto = p};
    for (uint32_t i = 0; i < p->stage->link_end; i++) {
        struct link *link = engine_link(p->engine, i);
        uint64_t now = link ? link_packets(&link->count) : 0;
        if (link && now != link->reported) {
            link->reported = now;
            report_link(&report, i, &link->count);
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
                    {"drop_nobuf", &c->drop_nobuf},
                    {"drop_write", &c->drop_write},
                    {"in_flight", &c->in_flight},
                    {"pool_bytes", &p->engine->pool.bytes},
                    {"commits", &c->commits}};
    text_add(p->out, "ok");
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        text_add(p->out, " %s=%llu", counters[i].name,
                 (unsigned long long)counter_get(counters[i].value));
    }
    text_add(p->out, " ");
    p->host->engine_stats(p->host->context, p->out);
    text_add(p->out, "\n");
}
