/* Errors on stderr, JSON strings on stdout. */
#include <stdio.h>
#include <string.h>

#include "probe.h"

int say_error(int err, const char *attempt, const char *object) {
    if (err) {
        fprintf(stderr, "tprobe: %s %s: %s\n", attempt, object, strerror(err));
    } else {
        fprintf(stderr, "tprobe: %s %s\n", attempt, object);
    }
    return -1;
}

void json_string(const char *text) {
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\') {
            printf("\\%c", *p);
        } else if (*p < 0x20) {
            printf("\\u%04x", *p);
        } else {
            putchar(*p);
        }
    }
    putchar('"');
}
