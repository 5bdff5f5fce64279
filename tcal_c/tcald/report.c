/* Commands that tell: counters and totals. */
#include "proto.h"

#include <stdlib.h>
#include <string.h>

/* Lines that are counted before they are written: the answer begins with their number. */
struct list {
    struct text lines;
    uint64_t count;
};

static void usage_line(void *context, const struct tcal_usage *u) {
    struct list *list = context;
    list->count++;
    text_add(&list->lines, "%u %u %llu %llu %llu %llu %llu\n", u->source, u->dest,
             (unsigned long long)u->sent_packets, (unsigned long long)u->sent_bytes,
             (unsigned long long)u->drop_queue, (unsigned long long)u->drop_loss,
             (unsigned long long)u->backlog_bytes);
}

/* Bytes of dropped packets are not known: `offered_bytes` is those that were sent. */
static void pair_line(void *context, const struct tcal_usage *u) {
    struct list *list = context;
    uint64_t drops = u->drop_queue + u->drop_loss + u->drop_down + u->drop_route;
    list->count++;
    text_add(&list->lines, "%u %u %llu %llu %llu %llu %llu %llu %llu %llu\n", u->source, u->dest,
             (unsigned long long)(u->sent_packets + drops), (unsigned long long)u->sent_bytes,
             (unsigned long long)u->sent_packets, (unsigned long long)u->sent_bytes,
             (unsigned long long)u->drop_queue, (unsigned long long)u->drop_loss,
             (unsigned long long)u->drop_down, (unsigned long long)u->drop_route);
}

static bool list_usage(struct proto *p, enum tcal_reading reading,
                       void (*line)(void *context, const struct tcal_usage *usage),
                       struct refusal *r) {
    struct list list = {0};
    struct tcal_error error;
    bool good = tcal_read(p->tcal, reading, line, &list, &error);
    if (!good) {
        refuse(r, "system", "%s", error.text);
    } else if (list.lines.failed) {
        good = refuse(r, "limit", "out of memory");
    } else {
        text_add(p->session.out, "ok %llu\n", (unsigned long long)list.count);
        text_add(p->session.out, "%.*s", (int)text_left(&list.lines),
                 list.count ? list.lines.bytes + list.lines.begin : "");
    }
    text_free(&list.lines);
    return good;
}

bool do_usage(struct proto *p, struct words *w, struct refusal *r) {
    const char *what = words_next(w);
    if ((what && strcmp(what, "all") != 0) || !take_end(w, "usage [all]", r)) {
        return syntax(r, "usage [all]");
    }
    return list_usage(p, what ? TCAL_READ_ALL : TCAL_READ_MOVED, usage_line, r);
}

static bool engine(struct proto *p) {
    struct tcal_totals t;
    tcal_totals(p->tcal, &t);
    text_add(p->session.out,
             "ok commits=%llu applied=%llu failed=%llu messages=%llu sends=%llu dumps=%llu "
             "apply_max_ns=%llu\n",
             (unsigned long long)p->stage->commits, (unsigned long long)t.applied,
             (unsigned long long)t.failed, (unsigned long long)t.messages,
             (unsigned long long)t.sends, (unsigned long long)t.dumps,
             (unsigned long long)p->slowest_ns);
    return true;
}

bool do_stats(struct proto *p, struct words *w, struct refusal *r) {
    const char *what = words_next(w);
    if (!what || !take_end(w, "stats links|pairs|engine", r)) {
        return syntax(r, "stats links|pairs|engine");
    }
    if (strcmp(what, "links") == 0) {
        text_add(p->session.out, "ok 0\n");
        return true;
    }
    if (strcmp(what, "pairs") == 0) {
        return list_usage(p, TCAL_READ_PAIRS, pair_line, r);
    }
    return strcmp(what, "engine") == 0 ? engine(p) : syntax(r, "stats links|pairs|engine");
}
