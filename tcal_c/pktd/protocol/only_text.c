/* Which packets are of a link's further class, and what that has of its own, as text: words with a
 * ';' between them, `tcp`, `udp:53`, `from:NODE`, `to:NODE`, and then `loss:PPB`, `delay:NS`,
 * `jitter:NS`, `reject:PPB`; 0 for no class. */
#include "stage.h"

#include "common/words.h"

#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#define TEXT_LIMIT 4095u

void stage_free_classes(struct stage *s) {
    while (s->classes) {
        struct staged_class *next = s->classes->next;
        free(s->classes);
        s->classes = next;
    }
}

static bool take_node(uint16_t *nodes, uint32_t *count, const char *value) {
    uint64_t node;
    if (!value || *count == ONLY_NODES || !word_number(value, NODE_LIMIT - 1, &node)) {
        return false;
    }
    nodes[(*count)++] = (uint16_t)node;
    return true;
}

static bool take_term(struct only *only, const char *name, const char *value) {
    static const struct {
        const char *name;
        uint8_t protocol;
    } known[] = {
        {"icmp", IPPROTO_ICMP}, {"sctp", IPPROTO_SCTP}, {"tcp", IPPROTO_TCP}, {"udp", IPPROTO_UDP}};
    uint64_t port = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known && only->terms < ONLY_TERMS; i++) {
        if (strcmp(name, known[i].name) == 0) {
            bool portless = known[i].protocol == IPPROTO_ICMP;
            only->term[only->terms].protocol = known[i].protocol;
            bool good = !value || (!portless && word_number(value, UINT16_MAX, &port) && port);
            only->term[only->terms++].port = (uint16_t)port;
            return good;
        }
    }
    return false;
}

static bool take_value(struct only *only, const char *name, const char *value) {
    const struct {
        const char *name;
        uint32_t stated;
        uint64_t limit;
        uint64_t *to;
    } values[] = {{"loss", ONLY_LOSS, PPB, &only->loss_ppb},
                  {"delay", ONLY_DELAY, DELAY_LIMIT_NS, &only->delay_ns},
                  {"jitter", ONLY_JITTER, JITTER_LIMIT_NS, &only->jitter_ns},
                  {"reject", ONLY_REJECT, PPB, &only->reject_ppb}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strcmp(name, values[i].name) == 0) {
            bool again = only->stated & values[i].stated;
            only->stated |= values[i].stated;
            return !again && value && word_number(value, values[i].limit, values[i].to);
        }
    }
    return false;
}

static bool take_word(struct only *only, char *word) {
    char *value = strchr(word, ':');
    if (value) {
        *value++ = '\0';
    }
    if (strcmp(word, "from") == 0) {
        return take_node(only->from, &only->froms, value);
    }
    if (strcmp(word, "to") == 0) {
        return take_node(only->to, &only->tos, value);
    }
    return take_value(only, word, value) || (!only->stated && take_term(only, word, value));
}

bool only_parse(const char *text, struct only *only) {
    char copy[TEXT_LIMIT + 1];
    char *rest = copy;
    memset(only, 0, sizeof *only); /* with its gaps, since classes are compared as bytes */
    if (strlen(text) > TEXT_LIMIT) {
        return false;
    }
    memcpy(copy, text, strlen(text) + 1);
    for (char *word; (word = strsep(&rest, ";"));) {
        if (!take_word(only, word)) {
            return false;
        }
    }
    return only->stated && only->terms + only->froms + only->tos;
}

bool stage_class(struct stage *s, const char *text, struct link_config *config, struct refusal *r) {
    struct only only;
    config->fields |= LINK_ONLY;
    config->only = NULL;
    if (strcmp(text, "0") == 0) {
        return true;
    }
    if (!only_parse(text, &only)) {
        return refuse(r, "range", "only '%.64s' is no class of packets", text);
    }
    struct staged_class *known = s->classes;
    while (known && memcmp(&known->only, &only, sizeof only) != 0) {
        known = known->next;
    }
    if (!known) {
        known = malloc(sizeof *known);
        if (!known) {
            return stage_no_memory(r);
        }
        known->next = s->classes;
        memcpy(&known->only, &only, sizeof only);
        s->classes = known;
    }
    config->only = &known->only;
    return true;
}
