/* A growing run of bytes: answers on their way out. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *bytes;
    size_t begin; /* what was taken already */
    size_t end;
    size_t room;
    bool failed; /* out of memory: something is missing */
};

void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *t);

static inline size_t text_left(const struct text *t) {
    return t->end - t->begin;
}

void text_take(struct text *t, size_t bytes);

#endif
