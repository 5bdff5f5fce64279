/* The lexical side of the protocol; strict, so that a mistake is never taken for something else. */
#include "words.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

char *words_next(struct words *w) {
    char *word = w->rest;
    if (word) {
        char *space = strchr(word, ' ');
        if (space) {
            *space = '\0';
        }
        w->rest = space ? space + 1 : NULL;
    }
    return word;
}

bool words_well_formed(const char *line, size_t length) {
    if (length == 0 || line[0] == ' ' || line[length - 1] == ' ') {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (line[i] < ' ' || line[i] > '~' || (line[i] == ' ' && line[i + 1] == ' ')) {
            return false;
        }
    }
    return true;
}

/* Digits up to `end`; false for anything else or above the limit. */
static bool digits(const char *from, const char *end, uint64_t limit, uint64_t *value) {
    if (from == end) {
        return false;
    }
    uint64_t v = 0;
    for (; from < end; from++) {
        if (*from < '0' || *from > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(*from - '0');
        if (v > (UINT64_MAX - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    *value = v;
    return v <= limit;
}

bool word_number(const char *word, uint64_t limit, uint64_t *value) {
    return digits(word, word + strlen(word), limit, value);
}

bool word_range(const char *word, uint64_t limit, uint32_t *first, uint32_t *last) {
    const char *dash = strchr(word, '-');
    uint64_t a;
    uint64_t b;
    if (!dash || limit > UINT32_MAX || !digits(word, dash, limit, &a) ||
        !word_number(dash + 1, limit, &b)) {
        return false;
    }
    *first = (uint32_t)a;
    *last = (uint32_t)b;
    return true;
}

bool word_ipv4(const char *word, struct addr *addr) {
    *addr = (struct addr){.version = 4};
    return inet_pton(AF_INET, word, addr->bytes) == 1;
}

bool word_ipv6(const char *word, struct addr *addr) {
    *addr = (struct addr){.version = 6};
    return inet_pton(AF_INET6, word, addr->bytes) == 1;
}

/* Sets the bits beyond the prefix's length to 0; false when they were not all 0. */
static bool clear_beyond(struct prefix *prefix) {
    bool clean = true;
    for (uint32_t bit = prefix->bits; bit < 128; bit++) {
        uint8_t mask = (uint8_t)(0x80u >> bit % 8);
        clean &= !(prefix->addr.bytes[bit / 8] & mask);
        prefix->addr.bytes[bit / 8] &= (uint8_t)~mask;
    }
    return clean;
}

bool word_prefix(char *word, struct prefix *prefix, bool *strayed) {
    char *slash = strchr(word, '/');
    uint64_t bits;
    *strayed = false;
    if (!slash) {
        return false;
    }
    *slash = '\0';
    bool good = word_ipv4(word, &prefix->addr) || word_ipv6(word, &prefix->addr);
    *slash = '/';
    if (!good || !word_number(slash + 1, prefix->addr.version == 4 ? 32 : 128, &bits)) {
        return false;
    }
    prefix->bits = (uint8_t)bits;
    *strayed = !clear_beyond(prefix);
    return !*strayed;
}

char *word_value(char *word) {
    char *equals = strchr(word, '=');
    if (!equals) {
        return NULL;
    }
    *equals = '\0';
    return equals + 1;
}

bool word_mac(const char *word, uint8_t *mac) {
    unsigned byte[6];
    int end = 0;
    if (sscanf(word, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4],
               &byte[5], &end) != 6 ||
        word[end] || byte[0] & 1) {
        return false;
    }
    for (int i = 0; i < 6; i++) {
        mac[i] = (uint8_t)byte[i];
    }
    return true;
}
