/* What a queue drops before it is full, as text: KIND;KEY:N;..., with every key of its kind in the
 * order below; nothing, or 0, for a drop-tail queue. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_LIMIT 255u

/* A key of the kinds whose bits are set. */
struct aqm_key {
    const char *key;
    unsigned kinds;
    uint64_t least;
    uint64_t most;
    size_t place; /* in struct aqm_config */
};

#define KIND(name) (1u << AQM_##name)
#define DELAYS (KIND(CODEL) | KIND(FQ_CODEL) | KIND(PIE))
#define PLACE(field) offsetof(struct aqm_config, field)

static const struct aqm_key keys[] = {
    {"target", DELAYS, 1, DAY_NS, PLACE(target_ns)},
    {"interval", KIND(CODEL) | KIND(FQ_CODEL), 1, DAY_NS, PLACE(interval_ns)},
    {"quantum", KIND(FQ_CODEL), 256, 1u << 20, PLACE(quantum)},
    {"flows", KIND(FQ_CODEL), 1, AQM_FLOWS_LIMIT, PLACE(flows)},
    {"tupdate", KIND(PIE), 1000000, DAY_NS, PLACE(tupdate_ns)},
    {"alpha", KIND(PIE), 0, 32, PLACE(alpha)},
    {"beta", KIND(PIE), 0, 32, PLACE(beta)},
    {"min", KIND(RED), 0, QUEUE_LIMIT_BYTES, PLACE(min_bytes)},
    {"max", KIND(RED), 0, QUEUE_LIMIT_BYTES, PLACE(max_bytes)},
    {"probability", KIND(RED), 1, PPB, PLACE(probability_ppb)},
    {"avpkt", KIND(RED), 1, MTU_LIMIT, PLACE(avpkt)},
    {"burst", KIND(RED), 0, QUEUE_LIMIT_PACKETS, PLACE(burst)},
    {"ecn", DELAYS | KIND(RED), 0, 1, PLACE(ecn)},
};

static enum aqm_kind kind_named(const char *name) {
    static const char *const names[AQM_COUNT] = {
        [AQM_CODEL] = "codel", [AQM_FQ_CODEL] = "fq_codel", [AQM_PIE] = "pie", [AQM_RED] = "red"};
    for (unsigned kind = AQM_CODEL; kind < AQM_COUNT; kind++) {
        if (name && strcmp(name, names[kind]) == 0) {
            return (enum aqm_kind)kind;
        }
    }
    return AQM_NONE;
}

/* KEY:N, of this key. */
static bool take_key(struct aqm_config *c, const struct aqm_key *key, char *word) {
    char *colon = word ? strchr(word, ':') : NULL;
    if (!colon) {
        return false;
    }
    *colon = '\0';
    uint64_t *to = (uint64_t *)(void *)((char *)c + key->place);
    return strcmp(word, key->key) == 0 && word_number(colon + 1, key->most, to) &&
           *to >= key->least;
}

bool take_aqm(struct aqm_config *c, const char *value, struct refusal *r) {
    char text[TEXT_LIMIT + 1];
    char *rest = NULL;
    *c = (struct aqm_config){0};
    if (!value[0] || strcmp(value, "0") == 0) {
        return true;
    }
    snprintf(text, sizeof text, "%s", value);
    c->kind = strlen(value) <= TEXT_LIMIT ? kind_named(strtok_r(text, ";", &rest)) : AQM_NONE;
    bool good = c->kind != AQM_NONE;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && good; i++) {
        good =
            !(keys[i].kinds & 1u << c->kind) || take_key(c, &keys[i], strtok_r(NULL, ";", &rest));
    }
    return (good && !strtok_r(NULL, ";", &rest) &&
            (c->max_bytes == 0 ? c->min_bytes == 0 : c->min_bytes < c->max_bytes)) ||
           refuse(r, "range", "aqm '%.128s' is none", value);
}
