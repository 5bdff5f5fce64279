/* The words of a failure. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool tcal_fail(struct tcal_error *error, int code, const char *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    if (code && length >= 0 && (size_t)length < sizeof error->text) {
        snprintf(error->text + length, sizeof error->text - (size_t)length, ": %s%s%s",
                 strerror(-code), text && *text ? ": " : "", text ? text : "");
    }
    return false;
}
