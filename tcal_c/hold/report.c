/* What happened, as one line of JSON on stderr, and the last line also in a file.
 *
 * {"tstorm_hold":EVENT,"unix_ns":TIME,NAME:VALUE,…}: strings are ASCII with \u escapes, and a byte
 * that is not ASCII is taken for Latin-1, since nothing says how the kernel's paths are encoded. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "hold.h"

static const char *status_path;

void report_to(const char *status_file) {
    status_path = status_file;
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

size_t report_format(char *line, size_t size, const char *event, int64_t unix_ns,
                     const struct field *fields, size_t count) {
    struct text out = {.at = line, .left = size};
    put(&out, "{\"tstorm_hold\":");
    put_string(&out, event);
    put(&out, ",\"unix_ns\":%lld", (long long)unix_ns);
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

/* Beside the file and renamed, so that a reader never sees half a line. The file may be refused (a
 * read-only volume, another user): stderr has said it all, so one line says so and that is all. */
static void write_status(const char *line, size_t length) {
    char partial[4096];
    int used = snprintf(partial, sizeof partial, "%s.new", status_path);
    int file = -1;
    errno = ENAMETOOLONG;
    if (used > 0 && (size_t)used < sizeof partial) {
        file = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    }
    bool whole = file >= 0 && write(file, line, length) == (ssize_t)length;
    if (whole && rename(partial, status_path) == 0) {
        close(file);
        return;
    }
    say("%s is not kept", status_path);
    if (file >= 0) {
        unlink(partial);
        close(file);
    }
    status_path = NULL;
}

void report(const char *event, const struct field *fields, size_t count) {
    char line[STATUS_BYTES];
    size_t length = report_format(line, sizeof line, event, (int64_t)clock_wall(), fields, count);
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* there is nobody left to tell */
    if (status_path) {
        write_status(line, length);
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
