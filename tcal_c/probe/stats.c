/* A growing sample of nanoseconds and its percentiles (nearest rank). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "probe.h"

int sample_add(struct sample *s, int64_t value) {
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 1024;
        int64_t *values = realloc(s->values, room * sizeof *values);
        if (!values) {
            return say_error(ENOMEM, "keeping", "a sample");
        }
        s->values = values;
        s->room = room;
    }
    s->values[s->count++] = value;
    s->sorted = false;
    return 0;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t sample_at(struct sample *s, unsigned per_mille) {
    if (!s->count) {
        return 0;
    }
    if (!s->sorted) {
        qsort(s->values, s->count, sizeof *s->values, compare);
        s->sorted = true;
    }
    size_t rank = (s->count * per_mille + 999) / 1000;
    return s->values[rank ? rank - 1 : 0];
}

double sample_mean(const struct sample *s) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) {
        sum += (double)s->values[i];
    }
    return s->count ? sum / (double)s->count : 0;
}

void sample_free(struct sample *s) {
    free(s->values);
    *s = (struct sample){0};
}

void sample_json(struct sample *s) {
    if (!s->count) {
        printf(",\"min_us\":null,\"mean_us\":null,\"p50_us\":null,\"p99_us\":null,\"max_us\":null");
        return;
    }
    printf(",\"min_us\":%.3f,\"mean_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f",
           (double)sample_at(s, 0) / 1e3, sample_mean(s) / 1e3, (double)sample_at(s, 500) / 1e3,
           (double)sample_at(s, 990) / 1e3, (double)sample_at(s, 1000) / 1e3);
}
