/* Measured delays: made point by point at once, and drawn from by links once they are whole. */
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#define DELAYS_USAGE "delays NAME [BELOW] WIDTH...|end"

/* One that is not whole is added to. */
static struct staged_delays *being_made(struct stage *s, const char *name, struct refusal *r) {
    for (struct staged_delays *one = s->delays; one; one = one->next) {
        if (strcmp(one->name, name) == 0) {
            if (one->whole) {
                refuse(r, "conflict", "delays %s are whole already", name);
            }
            return one->whole ? NULL : one;
        }
    }
    if (strlen(name) >= DELAYS_NAME_LIMIT || s->delays_count == DELAYS_LIMIT) {
        refuse(r, "limit", "names of delays have up to %u letters, and there are up to %u of them",
               DELAYS_NAME_LIMIT - 1, DELAYS_LIMIT);
        return NULL;
    }
    struct staged_delays *one = calloc(1, sizeof *one);
    if (!one) {
        stage_no_memory(r);
        return NULL;
    }
    memcpy(one->name, name, strlen(name));
    one->next = s->delays;
    s->delays = one;
    s->delays_count++;
    return one;
}

/* How far below 0 the first point lies, or one from the point before. */
static bool add_point(struct staged_delays *one, const char *word) {
    const uint64_t most = (uint64_t)2 * JITTER_DEVIATIONS << 20;
    uint64_t apart;
    if (one->count > DRAW_PARTS || !word_number(word, most, &apart)) {
        return false;
    }
    int64_t at =
        one->count ? (int64_t)one->measured.at[one->count - 1] + (int64_t)apart : -(int64_t)apart;
    if (at > (int64_t)most) {
        return false;
    }
    one->measured.at[one->count++] = (int32_t)at;
    return true;
}

bool do_delays(struct proto *p, struct words *w, struct refusal *r) {
    const char *name = words_next(w);
    if (!name || !w->rest) {
        return syntax(r, DELAYS_USAGE);
    }
    struct staged_delays *one = being_made(p->stage, name, r);
    if (!one) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        if (strcmp(word, "end") == 0) {
            one->whole = one->count == DRAW_PARTS + 1 && measured_finish(&one->measured);
            return (one->whole && take_end(w, DELAYS_USAGE, r) && done(p)) ||
                   refuse(r, "range", "delays %s are not %u points up to %u jitters from 0", name,
                          DRAW_PARTS + 1, JITTER_DEVIATIONS);
        }
        if (!add_point(one, word)) {
            return refuse(r, "range", "delays %s cannot have the point '%.32s'", name, word);
        }
    }
    return done(p);
}
