/* Traces: made step by step at once, and followed by links once they are whole. */
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#define TRACE_USAGE "trace TRACE begin=NS period=NS [fields=FIELD,...] [hold=0|1] | like=TRACE"
#define STEPS_USAGE "steps TRACE AFTER[xCOUNT]...|AFTER:VALUE...|end"

enum { FIELDS = 4 };
static const char *const field_names[FIELDS] = {"rate", "delay", "jitter", "loss"};
static const uint64_t field_limits[FIELDS] = {RATE_LIMIT_BPS, DELAY_LIMIT_NS, JITTER_LIMIT_NS, PPB};

/* What a `trace` command says. */
struct wanted {
    struct trace trace;
    uint64_t like; /* 0: none */
    uint64_t hold;
};

/* rate,delay,jitter,loss: some of them, in this order. */
static bool take_fields(char *value, uint32_t *fields) {
    uint32_t next = 0;
    for (char *word = value; word;) {
        char *comma = strchr(word, ',');
        if (comma) {
            *comma++ = '\0';
        }
        while (next < FIELDS && strcmp(word, field_names[next]) != 0) {
            next++;
        }
        if (next == FIELDS) {
            return false;
        }
        *fields |= 1u << next++;
        word = comma;
    }
    return true;
}

static bool take_option(struct wanted *wanted, const char *key, char *value, struct refusal *r) {
    const struct {
        const char *key;
        uint64_t limit;
        uint64_t *to;
    } numbers[] = {{"begin", UINT64_MAX, &wanted->trace.begin_ns},
                   {"period", INT64_MAX, &wanted->trace.period_ns},
                   {"hold", 1, &wanted->hold},
                   {"like", TRACE_LIMIT, &wanted->like}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            return take_number(key, value, numbers[i].limit, numbers[i].to, r);
        }
    }
    if (strcmp(key, "fields") != 0) {
        return syntax(r, TRACE_USAGE);
    }
    return take_fields(value, &wanted->trace.fields) ||
           refuse(r, "range", "fields are some of rate,delay,jitter,loss, in this order");
}

/* One that is not whole is made anew. */
static bool put(struct stage *s, uint32_t number, const struct trace *trace, struct refusal *r) {
    if (!stage_room_for_number((void **)&s->trace, &s->trace_room, number, sizeof *s->trace)) {
        return stage_no_memory(r);
    }
    struct trace *old = s->trace[number];
    if (old && old->whole) {
        return refuse(r, "conflict", "trace %u is whole already", number);
    }
    struct trace *to = old ? old : malloc(sizeof *to);
    if (!to) {
        return stage_no_memory(r);
    }
    if (old) {
        s->trace_steps -= old->count;
        trace_free(old);
    }
    *to = *trace;
    s->trace[number] = to;
    return true;
}

bool do_trace(struct proto *p, struct words *w, struct refusal *r) {
    struct wanted wanted = {0};
    uint32_t number;
    if (!take_index(w, "trace", TRACE_LIMIT, &number, TRACE_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        if (!value || !take_option(&wanted, word, value, r)) {
            return value ? false : syntax(r, TRACE_USAGE);
        }
    }
    struct trace trace = wanted.trace;
    const struct trace *like = stage_trace(p->stage, wanted.like);
    if (wanted.like && !like) {
        return refuse(r, "unknown", "trace %llu is not whole", (unsigned long long)wanted.like);
    }
    if (like) {
        trace = *like;
        trace.begin_ns = wanted.trace.begin_ns;
        trace.shares = true;
    } else if (trace.period_ns == 0 || (wanted.hold && !trace.fields)) {
        return refuse(r, "range", "a trace has a period, and only rows can hold");
    }
    trace.holds = like ? like->holds : wanted.hold;
    return number == 0 ? refuse(r, "range", "traces are numbered from 1 on")
                       : put(p->stage, number, &trace, r) && done(p);
}

/* AFTER:VALUE..., as many values as the trace has fields. */
static bool add_row(struct trace *trace, char *word) {
    uint64_t values[FIELDS] = {0}, after_ns;
    char *rest = strchr(word, ':');
    if (!rest) {
        return false;
    }
    *rest++ = '\0';
    for (uint32_t i = 0; i < FIELDS; i++) {
        if (!(trace->fields >> i & 1)) {
            continue;
        }
        char *value = rest;
        rest = value ? strchr(value, ':') : NULL;
        if (rest) {
            *rest++ = '\0';
        }
        if (!value || !word_number(value, field_limits[i], &values[i])) {
            return false;
        }
    }
    const struct trace_row row = {.rate_bps = values[0],
                                  .delay_ns = values[1],
                                  .jitter_ns = values[2],
                                  .loss_ppb = values[3]};
    return !rest && word_number(word, UINT64_MAX, &after_ns) &&
           trace_add_row(trace, after_ns, &row);
}

/* AFTER or AFTERxCOUNT. */
static bool add_instant(struct trace *trace, char *word) {
    uint64_t after_ms, count = 1;
    char *times = strchr(word, 'x');
    if (times) {
        *times++ = '\0';
    }
    return word_number(word, UINT32_MAX, &after_ms) &&
           (!times || word_number(times, UINT32_MAX, &count)) &&
           trace_add_instant(trace, after_ms, count);
}

bool do_steps(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t number;
    if (!take_index(w, "trace", TRACE_LIMIT, &number, STEPS_USAGE, r)) {
        return false;
    }
    struct stage *s = p->stage;
    struct trace *trace = number < s->trace_room ? s->trace[number] : NULL;
    if (!trace || trace->whole) {
        return refuse(r, "unknown", "trace %u is not being made", number);
    }
    for (char *word; (word = words_next(w));) {
        if (strcmp(word, "end") == 0) {
            return (trace_finish(trace) && take_end(w, STEPS_USAGE, r) && done(p)) ||
                   refuse(r, "range", "trace %u does not end with its period, or serves nothing",
                          number);
        }
        if (s->trace_steps == TRACE_STEPS_LIMIT) {
            return refuse(r, "limit", "more than %u steps", TRACE_STEPS_LIMIT);
        }
        bool added = trace->fields ? add_row(trace, word) : add_instant(trace, word);
        if (!added) {
            return refuse(r, "range", "trace %u cannot have the step '%.32s'", number, word);
        }
        s->trace_steps++;
    }
    return done(p);
}
