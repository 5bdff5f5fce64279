/* What happened, as one line of JSON on stderr and at the end of a file.
 *
 * {"tstorm_hold":EVENT,"unix_ns":TIME,"monotonic_ns":TIME,NAME:VALUE,…}: strings are ASCII with \u
 * escapes, and a byte that is not ASCII is taken for Latin-1, since nothing says how the kernel's
 * paths are encoded. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "hold.h"

static int file = -1;
static const char *file_path;

/* The file may be refused (a read-only volume, another user) or full: stderr has it all, so one
 * line says so and that is all. */
static void give_up(void) {
    say("%s is not kept", file_path);
    if (file >= 0) {
        close(file);
    }
    file = -1;
}

/* Appended to what a container before this one has reported. An earlier program may have put
 * something else in its place, which must neither be followed nor waited for. */
void report_to(const char *path) {
    struct stat found;
    file_path = path;
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (file < 0) {
        give_up();
    } else if (fstat(file, &found) < 0 || !S_ISREG(found.st_mode)) {
        errno = EINVAL;
        give_up();
    }
}

struct text {
    char *at;
    size_t left; /* without the room of the end */
};

static void put(struct text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All of it or nothing, so that what is too long never ends inside an escape. */
static void put(struct text *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int used = vsnprintf(out->at, out->left, format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= out->left) {
        *out->at = '\0';
        return;
    }
    out->at += used;
    out->left -= (size_t)used;
}

static void put_string(struct text *out, const char *string) {
    put(out, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
        if (*c == '"' || *c == '\\') {
            put(out, "\\%c", *c);
        } else if (*c >= 0x20 && *c < 0x7f) {
            put(out, "%c", *c);
        } else {
            put(out, "\\u%04x", *c);
        }
        if (out->left < 64) {
            break; /* cut, so that the rest of the line still fits */
        }
    }
    put(out, "\"");
}

size_t report_format(char *line, size_t size, const char *event, struct moment at,
                     const struct field *fields, size_t count) {
    struct text out = {.at = line, .left = size};
    put(&out, "{\"tstorm_hold\":");
    put_string(&out, event);
    put(&out, ",\"unix_ns\":%lld", (long long)at.unix_ns);
    put(&out, ",\"monotonic_ns\":%lld", (long long)at.monotonic_ns);
    for (size_t i = 0; i < count && out.left > 128; i++) {
        put(&out, ",\"%s\":", fields[i].name);
        if (fields[i].text) {
            put_string(&out, fields[i].text);
        } else {
            put(&out, "%lld", fields[i].number);
        }
    }
    put(&out, "}\n");
    return (size_t)(out.at - line);
}

void report(const char *event, const struct field *fields, size_t count) {
    char line[REPORT_BYTES];
    struct moment now = {.unix_ns = (int64_t)clock_wall(), .monotonic_ns = (int64_t)clock_now()};
    size_t length = report_format(line, sizeof line, event, now, fields, count);
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* there is nobody left to tell */
    if (file >= 0 && write(file, line, length) != (ssize_t)length) {
        give_up();
    }
}

void report_text(const char *event, const char *name, const char *text) {
    struct field field = {.name = name, .text = text};
    report(event, &field, 1);
}

void report_number(const char *event, const char *name, long long number) {
    struct field field = {.name = name, .number = number};
    report(event, &field, 1);
}
