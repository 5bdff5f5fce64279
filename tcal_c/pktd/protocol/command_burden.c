/* A planted load: what tests and measurements do to see what overload does. */
#include "commands.h"

#define BURDEN_USAGE "burden PERMILLE"
#define PERMILLE_LIMIT 1000u

bool do_burden(struct proto *p, struct words *w, struct refusal *r) {
    const char *word = words_next(w);
    uint64_t permille;
    if (!word || !take_end(w, BURDEN_USAGE, r)) {
        return syntax(r, BURDEN_USAGE);
    }
    return take_number("burden", word, PERMILLE_LIMIT, &permille, r) &&
           p->host->burden(p->host->context, (uint32_t)permille, r) && done(p);
}
