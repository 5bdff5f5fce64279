/* Formatted appending to a buffer that grows and is emptied from its front. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct text *t, size_t more) {
    if (t->end + more <= t->room) {
        return true;
    }
    if (t->begin) {
        memmove(t->bytes, t->bytes + t->begin, t->end - t->begin);
        t->end -= t->begin;
        t->begin = 0;
    }
    size_t room = t->room ? t->room : 4096;
    while (t->end + more > room) {
        room *= 2;
    }
    char *bytes = room == t->room ? t->bytes : realloc(t->bytes, room);
    if (!bytes) {
        return false;
    }
    t->bytes = bytes;
    t->room = room;
    return true;
}

void text_add(struct text *t, const char *format, ...) {
    va_list args;
    for (size_t need = 256;;) {
        if (!make_room(t, need)) {
            t->failed = true;
            return;
        }
        va_start(args, format);
        int length = vsnprintf(t->bytes + t->end, t->room - t->end, format, args);
        va_end(args);
        if (length < 0) {
            t->failed = true;
            return;
        }
        if ((size_t)length < t->room - t->end) {
            t->end += (size_t)length;
            return;
        }
        need = (size_t)length + 1;
    }
}

void text_take(struct text *t, size_t bytes) {
    t->begin += bytes;
    if (t->begin == t->end) {
        t->begin = t->end = 0;
    }
}

void text_free(struct text *t) {
    free(t->bytes);
    *t = (struct text){0};
}
