/* Paths from node to node, and what has moved on them. */
#include "commands.h"

#include <string.h>

#define PATH_USAGE "path SRC DST KEY=VALUE... (" PATH_KEYS " seed up)"

static bool path_option(struct proto *p, struct op_link *op, const char *key, const char *value,
                        struct refusal *r) {
    if (strcmp(key, "seed") != 0) {
        const char *none = strcmp(key, "trace") == 0 ? "0" : value; /* whether there is that one */
        return link_option(p, &op->config, key, none, PATH_USAGE, r) &&
               (!(op->config.fields & LINK_OPTIONAL) || !value[0] || strcmp(value, "0") == 0 ||
                refuse(r, "range", "%s '%.32s' is not a number from 0 to 0: a path has none", key,
                       value));
    }
    op->config.fields |= LINK_SEED;
    return word_number(value, UINT64_MAX, &op->seed) ||
           refuse(r, "range", "seed '%.32s' is not a 64-bit number", value);
}

bool do_path(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t source;
    uint32_t dest;
    struct op_link op = {0};
    if (!take_index(w, "node", NODE_LIMIT, &source, PATH_USAGE, r) ||
        !take_index(w, "node", NODE_LIMIT, &dest, PATH_USAGE, r)) {
        return false;
    }
    for (char *word; (word = words_next(w));) {
        char *value = word_value(word);
        if (!value) {
            return syntax(r, PATH_USAGE);
        }
        if (!path_option(p, &op, word, value, r)) {
            return false;
        }
    }
    if (op.config.fields == 0) {
        return syntax(r, PATH_USAGE);
    }
    op.source = (uint16_t)source;
    op.dest = (uint16_t)dest;
    return stage_path(p->stage, &op, r) && done(p);
}

bool do_usage(struct proto *p, struct words *w, struct refusal *r) {
    const char *what = words_next(w);
    if ((what && strcmp(what, "all") != 0) || !take_end(w, "usage [all]", r)) {
        return syntax(r, "usage [all]");
    }
    stats_usage(p, what != NULL);
    return true;
}
