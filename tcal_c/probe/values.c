/* Numbers with units. Decimal fractions are exact: the digits are scaled as integers, no floats. */
#include <ctype.h>
#include <string.h>

#include "probe.h"

struct unit {
    const char *name;
    int64_t factor;
};

/* Reads `123.45` into value * scale (scale a power of ten); leaves *rest behind the number. */
static int read_scaled(const char *text, int64_t factor, int64_t *out, const char *unit_at) {
    int64_t whole = 0, fraction = 0, divisor = 1;
    const char *p = text;
    bool dot = false, digits = false;
    for (; p < unit_at; p++) {
        if (*p == '.' && !dot) {
            dot = true;
            continue;
        }
        if (!isdigit((unsigned char)*p)) {
            return -1;
        }
        digits = true;
        int digit = *p - '0';
        if (dot) {
            if (divisor > INT64_C(100000000)) {
                return -1;
            }
            fraction = fraction * 10 + digit;
            divisor *= 10;
        } else if (__builtin_mul_overflow(whole, 10, &whole) ||
                   __builtin_add_overflow(whole, digit, &whole)) {
            return -1;
        }
    }
    int64_t scaled, part;
    if (!digits || __builtin_mul_overflow(whole, factor, &scaled) ||
        __builtin_mul_overflow(fraction, factor, &part) || part % divisor != 0 ||
        __builtin_add_overflow(scaled, part / divisor, out)) {
        return -1;
    }
    return 0;
}

static int parse_with(const char *text, const struct unit *units, size_t count, int64_t *out) {
    const char *unit = text;
    while (isdigit((unsigned char)*unit) || *unit == '.') {
        unit++;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(units[i].name, unit) == 0) {
            return read_scaled(text, units[i].factor, out, unit);
        }
    }
    return -1;
}

int parse_duration(const char *text, int64_t *ns) {
    static const struct unit units[] = {
        {"", NS_PER_S}, {"s", NS_PER_S},      {"ms", 1000000},        {"us", 1000},
        {"ns", 1},      {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S},
    };
    if (parse_with(text, units, sizeof units / sizeof *units, ns)) {
        return say_error(0, "not a duration (examples: 250ms, 1.5s, 2m):", text);
    }
    return 0;
}

int parse_rate(const char *text, int64_t *bps) {
    static const struct unit units[] = {
        {"", 1},      {"b", 1},        {"Kb", 1000},
        {"kb", 1000}, {"Mb", 1000000}, {"Gb", 1000000000},
        {"k", 1000},  {"M", 1000000},  {"G", 1000000000},
    };
    if (parse_with(text, units, sizeof units / sizeof *units, bps) || *bps <= 0) {
        return say_error(0, "not a rate in bits per second (examples: 128kb, 10Mb, 1Gb):", text);
    }
    return 0;
}

int parse_count(const char *text, int64_t low, int64_t high, int64_t *value) {
    static const struct unit plain[] = {{"", 1}};
    if (strchr(text, '.') || parse_with(text, plain, 1, value) || *value < low || *value > high) {
        return say_error(0, "not a whole number in range:", text);
    }
    return 0;
}
