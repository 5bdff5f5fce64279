/* The record of packets: when there is more of it, from when its times count, digests of links,
 * files of packets. */
#include "commands.h"

#include "pktd/record/capture_request.h"

#include <string.h>

#define EPOCH_USAGE "epoch NS [unix=NS] [reseed=NS:KEY…]"
#define CAPTURE_USAGE "capture FILE [pipe=1] [probes=0|1] [offered:]LINK|SRC>DST=NAME…"
#define OFFERED "offered:"
#define NAME_LIMIT 255u

bool do_await(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "await", r)) {
        return syntax(r, "await");
    }
    p->host->await(p->host->context);
    return done(p);
}

static bool take_time(const char *word, const char *what, uint64_t *ns, struct refusal *r) {
    return word_number(word, UINT64_MAX, ns) ||
           refuse(r, "range", "%s '%.32s' is not a 64-bit number", what, word);
}

/* NS:KEY, later than those before. */
static bool take_reseed(char *value, struct reseeds *all, struct refusal *r) {
    char *key = strchr(value, ':');
    uint32_t count = all->count;
    if (!key) {
        return syntax(r, EPOCH_USAGE);
    }
    *key++ = 0;
    if (count == RESEED_LIMIT) {
        return refuse(r, "range", "there are more than %u reseeds", RESEED_LIMIT);
    }
    if (!take_time(value, "reseed", &all->at[count].at_ns, r) ||
        !take_time(key, "reseed", &all->at[count].key, r)) {
        return false;
    }
    if (count && all->at[count].at_ns <= all->at[count - 1].at_ns) {
        return refuse(r, "range", "reseed '%.32s' is not later than the one before", value);
    }
    all->count = count + 1;
    return true;
}

bool do_epoch(struct proto *p, struct words *w, struct refusal *r) {
    const char *word = words_next(w);
    struct reseeds reseeds = {0};
    uint64_t ns;
    uint64_t unix_ns = 0;
    if (!word) {
        return syntax(r, EPOCH_USAGE);
    }
    if (!take_time(word, "epoch", &ns, r)) {
        return false;
    }
    for (char *more; (more = words_next(w));) {
        char *value = word_value(more);
        bool is_unix = value && strcmp(more, "unix") == 0;
        if (!value || (!is_unix && strcmp(more, "reseed") != 0)) {
            return syntax(r, EPOCH_USAGE);
        }
        if (is_unix ? !take_time(value, "unix", &unix_ns, r) : !take_reseed(value, &reseeds, r)) {
            return false;
        }
    }
    reseeds_set(&p->engine->transit.reseeds, &reseeds);
    counter_set(&p->engine->transit.epoch_ns, ns);
    p->host->epoch(p->host->context, ns, unix_ns);
    return done(p);
}

/* A plain name: the file can be nowhere but in the folder. */
static bool take_file(const char *file, struct refusal *r) {
    bool good = file[0] != '.' && strlen(file) <= NAME_LIMIT && !strchr(file, '/');
    return good || refuse(r, "range", "'%.64s' is not the plain name of a file", file);
}

/* Whether it was one of the words that say how, not what. */
static bool take_manner(const char *word, struct capture_request *request) {
    bool known = strcmp(word, "pipe=1") == 0 || strcmp(word, "probes=0") == 0 ||
                 strcmp(word, "probes=1") == 0;
    request->is_pipe |= strcmp(word, "pipe=1") == 0;
    request->programs |= strcmp(word, "probes=0") == 0;
    return known;
}

/* The link that a word names: by its number, or as the path SRC>DST. */
static bool find_captured(struct proto *p, char *word, uint64_t *number, struct refusal *r) {
    char *second = strchr(word, '>');
    uint64_t end[2];
    if (!second) {
        return word_number(word, LINK_LIMIT - 1, number) ||
               refuse(r, "range", "link '%.32s' is not a number below %u", word, LINK_LIMIT);
    }
    *second++ = 0;
    if (!word_number(word, NODE_LIMIT - 1, &end[0]) ||
        !word_number(second, NODE_LIMIT - 1, &end[1])) {
        return refuse(r, "range", "path '%.32s>%.32s' is not of two nodes below %u", word, second,
                      NODE_LIMIT);
    }
    *number = stage_path_link(p->stage, (uint32_t)end[0], (uint32_t)end[1]);
    return *number != LINK_NONE || refuse(r, "unknown", "path %llu>%llu is not declared",
                                          (unsigned long long)end[0], (unsigned long long)end[1]);
}

/* LINK=NAME or SRC>DST=NAME, behind `offered:` if it is to be before the queue. */
static bool take_interface(struct proto *p, char *word, struct capture_request *request,
                           struct refusal *r) {
    bool offered = strncmp(word, OFFERED, sizeof OFFERED - 1) == 0;
    char *which = offered ? word + sizeof OFFERED - 1 : word;
    char *value = word_value(which);
    uint64_t number;
    if (!value || !*value || strlen(value) > NAME_LIMIT) {
        return syntax(r, CAPTURE_USAGE);
    }
    if (!find_captured(p, which, &number, r)) {
        return false;
    }
    if (number >= p->stage->link_end || !p->stage->link[number].declared) {
        return refuse(r, "unknown", "link %llu is not declared", (unsigned long long)number);
    }
    struct link *link = engine_link(p->engine, (uint32_t)number);
    uint32_t n = request->count++;
    request->name[n] = value;
    request->place[n] = offered ? &link->offered : &link->captured;
    for (uint32_t i = 0; i < n; i++) {
        if (request->place[i] == request->place[n]) {
            return refuse(r, "conflict", "two interfaces are of the same link");
        }
    }
    return true;
}

bool do_capture(struct proto *p, struct words *w, struct refusal *r) {
    struct capture_request request = {.file = words_next(w)};
    for (char *word; request.file && (word = words_next(w));) {
        if (request.count == 0 && take_manner(word, &request)) {
            continue;
        }
        if (request.count == CAPTURE_PLACES) {
            return refuse(r, "range", "a capture has at most %u interfaces", CAPTURE_PLACES);
        }
        if (!take_interface(p, word, &request, r)) {
            return false;
        }
    }
    if (request.count == 0) {
        return syntax(r, CAPTURE_USAGE);
    }
    return take_file(request.file, r) && p->host->capture(p->host->context, &request, r) && done(p);
}

bool do_captures(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "captures", r)) {
        return syntax(r, "captures");
    }
    text_add(p->session.out, "ok ");
    p->host->captures(p->host->context, p->session.out);
    text_add(p->session.out, "\n");
    return true;
}

/* What names link `number` in an answer: a path is known by its ends. */
static void add_name(const struct proto *p, struct text *out, uint32_t number) {
    const struct staged_link *link = &p->stage->link[number];
    if (p->stage->mode == MODE_PATHS) {
        text_add(out, "%u %u", link->source, link->dest);
    } else {
        text_add(out, "%u", number);
    }
}

bool do_digests(struct proto *p, struct words *w, struct refusal *r) {
    if (!take_end(w, "digests", r)) {
        return syntax(r, "digests");
    }
    struct text lines = {0};
    uint64_t count = 0;
    for (uint32_t i = 0; i < p->stage->link_end; i++) {
        struct link *link = engine_link(p->engine, i);
        uint64_t digest = link ? counter_get(&link->digest) : 0;
        if (link && digest != link->digest_told) {
            link->digest_told = digest;
            count++;
            add_name(p, &lines, i);
            text_add(&lines, " %016llx\n", (unsigned long long)digest);
        }
    }
    text_add(p->session.out, "ok %llu\n", (unsigned long long)count);
    if (lines.end) {
        text_add(p->session.out, "%.*s", (int)lines.end, lines.bytes);
    }
    p->session.out->failed |= lines.failed;
    text_free(&lines);
    return true;
}
