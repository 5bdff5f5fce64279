/* The record of packets: when there is more of it, from when its times count, digests of links,
 * files of packets. */
#include "commands.h"

#include <string.h>

#define EPOCH_USAGE "epoch NS [unix=NS]"
#define CAPTURE_USAGE "capture FILE LINK=NAME [LINK=NAME]"
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

bool do_epoch(struct proto *p, struct words *w, struct refusal *r) {
    const char *word = words_next(w);
    char *more = words_next(w);
    char *value = more ? word_value(more) : NULL;
    uint64_t ns;
    uint64_t unix_ns = 0;
    if (!word || (more && (!value || strcmp(more, "unix") != 0)) || !take_end(w, EPOCH_USAGE, r)) {
        return syntax(r, EPOCH_USAGE);
    }
    if (!take_time(word, "epoch", &ns, r) || (value && !take_time(value, "unix", &unix_ns, r))) {
        return false;
    }
    counter_set(&p->engine->transit.epoch_ns, ns);
    p->host->epoch(p->host->context, ns, unix_ns);
    return done(p);
}

/* A plain name: the file can be nowhere but in the folder. */
static bool take_file(const char *file, struct refusal *r) {
    bool good = file[0] != '.' && strlen(file) <= NAME_LIMIT && !strchr(file, '/');
    return good || refuse(r, "range", "'%.64s' is not the plain name of a file", file);
}

/* LINK=NAME. */
static bool take_interface(struct proto *p, char *word, struct link **link, const char **name,
                           struct refusal *r) {
    char *value = word_value(word);
    uint64_t number;
    if (!value || !*value || strlen(value) > NAME_LIMIT) {
        return syntax(r, CAPTURE_USAGE);
    }
    if (!word_number(word, LINK_LIMIT - 1, &number)) {
        return refuse(r, "range", "link '%.32s' is not a number below %u", word, LINK_LIMIT);
    }
    if (number >= p->stage->link_end || !p->stage->link[number].declared) {
        return refuse(r, "unknown", "link %llu is not declared", (unsigned long long)number);
    }
    *link = engine_link(p->engine, (uint32_t)number);
    *name = value;
    return !atomic_load(&(*link)->captured) ||
           refuse(r, "conflict", "link %llu is captured already", (unsigned long long)number);
}

bool do_capture(struct proto *p, struct words *w, struct refusal *r) {
    const char *file = words_next(w);
    struct link *link[2];
    const char *name[2];
    struct captured *to[2];
    uint32_t count = 0;
    for (char *word; file && (word = words_next(w)); count++) {
        if (count == 2) {
            return syntax(r, CAPTURE_USAGE);
        }
        if (!take_interface(p, word, &link[count], &name[count], r)) {
            return false;
        }
    }
    if (count == 0) {
        return syntax(r, CAPTURE_USAGE);
    }
    if (count == 2 && link[0] == link[1]) {
        return refuse(r, "conflict", "both interfaces are of the same link");
    }
    if (!take_file(file, r) || !p->host->capture(p->host->context, file, name, count, to, r)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        atomic_store_explicit(&link[i]->captured, to[i], memory_order_release);
    }
    return done(p);
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
