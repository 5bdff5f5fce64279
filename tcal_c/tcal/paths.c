/* Pairs of nodes by their ends: an open-addressing table over the list of all. */
#include "model.h"

#include <stdlib.h>

static uint32_t bucket_of(const struct tcal *t, uint32_t source, uint32_t dest) {
    uint64_t key = ((uint64_t)source << 16 | dest) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(key >> 32) & (t->buckets - 1);
}

/* The bucket that has the path, or the free one where it would go. */
static uint32_t seek(const struct tcal *t, uint32_t source, uint32_t dest) {
    uint32_t at = bucket_of(t, source, dest);
    while (t->bucket[at]) {
        const struct path *path = &t->path[t->bucket[at] - 1];
        if (path->source == source && path->dest == dest) {
            break;
        }
        at = (at + 1) & (t->buckets - 1);
    }
    return at;
}

const struct path *tcal_find_path(const struct tcal *t, uint32_t source, uint32_t dest) {
    uint32_t index = t->bucket[seek(t, source, dest)];
    return index && t->path[index - 1].declared ? &t->path[index - 1] : NULL;
}

static bool grow_buckets(struct tcal *t) {
    uint32_t *memory = calloc(t->buckets * 2, sizeof *memory);
    if (!memory) {
        return false;
    }
    free(t->bucket);
    t->bucket = memory;
    t->buckets *= 2;
    for (uint32_t i = 0; i < t->paths; i++) {
        t->bucket[seek(t, t->path[i].source, t->path[i].dest)] = i + 1;
    }
    return true;
}

/* The path's entry, made when there is none; NULL: out of memory. */
struct path *tcal_take_path(struct tcal *t, uint32_t source, uint32_t dest) {
    uint32_t at = seek(t, source, dest);
    if (t->bucket[at]) {
        return &t->path[t->bucket[at] - 1];
    }
    if ((t->paths + 1) * 2 > t->buckets) {
        if (!grow_buckets(t)) {
            return NULL;
        }
        at = seek(t, source, dest);
    }
    if (t->paths == t->path_room) {
        uint32_t room = t->path_room ? t->path_room * 2 : 256;
        struct path *memory = realloc(t->path, room * sizeof *memory);
        if (!memory) {
            return NULL;
        }
        t->path = memory;
        t->path_room = room;
    }
    t->path[t->paths] =
        (struct path){.source = source, .dest = dest, .usage = {.source = source, .dest = dest}};
    t->bucket[at] = ++t->paths;
    return &t->path[t->paths - 1];
}
