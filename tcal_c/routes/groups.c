/* A set is found by hashing what is stored of it (FNV-1a, 64 bits), with open addressing. */
#include "groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64u

struct group {
    size_t at;       /* its place in `number` */
    uint32_t in_row; /* its number there */
};

int groups_init(struct groups *groups, uint32_t rows) {
    *groups = (struct groups){.slots = FIRST_SLOTS};
    groups->slot = calloc(FIRST_SLOTS, sizeof *groups->slot);
    groups->of_row = calloc((size_t)rows + 1, sizeof *groups->of_row);
    return groups->slot && groups->of_row ? 0 : -ENOMEM;
}

void groups_destroy(struct groups *groups) {
    free(groups->number);
    free(groups->group);
    free(groups->slot);
    free(groups->of_row);
    *groups = (struct groups){0};
}

static uint64_t hash(const uint16_t *numbers, size_t count) {
    uint64_t found = 0xCBF29CE484222325ull;
    for (size_t i = 0; i < count; i++) {
        found = (found ^ numbers[i]) * 0x100000001B3ull;
    }
    return found ^ found >> 32;
}

/* The slot of what has these numbers, or the empty one that it would have. */
static uint32_t *find(const struct groups *groups, const uint16_t *numbers, size_t count) {
    uint32_t at = (uint32_t)hash(numbers, count);
    for (;; at++) {
        uint32_t *slot = &groups->slot[at & (groups->slots - 1)];
        if (!*slot || memcmp(groups->number + groups->group[*slot - 1].at, numbers,
                             count * sizeof *numbers) == 0) {
            return slot;
        }
    }
}

static bool more_slots(struct groups *groups) {
    uint32_t *old = groups->slot;
    uint32_t *more = calloc((size_t)groups->slots * 2, sizeof *more);
    if (!more) {
        return false;
    }
    groups->slot = more;
    groups->slots *= 2;
    for (uint32_t i = 0; i < groups->group_count; i++) {
        const uint16_t *numbers = groups->number + groups->group[i].at;
        *find(groups, numbers, 2u + numbers[1]) = i + 1;
    }
    free(old);
    return true;
}

/* Room for one more set. */
static bool make_room(struct groups *groups) {
    if (groups->count + 2 + GROUP_MOST > groups->room) {
        size_t room = 2 * (groups->room + 2 + GROUP_MOST);
        uint16_t *more = realloc(groups->number, room * sizeof *more);
        if (!more) {
            return false;
        }
        groups->number = more;
        groups->room = room;
    }
    if (groups->group_count == groups->group_room) {
        uint32_t room = groups->group_room ? 2 * groups->group_room : FIRST_SLOTS;
        struct group *more = realloc(groups->group, room * sizeof *more);
        if (!more) {
            return false;
        }
        groups->group = more;
        groups->group_room = room;
    }
    return groups->group_count * 2 < groups->slots || more_slots(groups);
}

int32_t groups_number(struct groups *groups, uint32_t row, const uint16_t *links, uint32_t count,
                      uint32_t most) {
    if (!make_room(groups)) {
        return -ENOMEM;
    }
    uint16_t *numbers = groups->number + groups->count; /* kept if it is new */
    numbers[0] = (uint16_t)row;
    numbers[1] = (uint16_t)count;
    memcpy(numbers + 2, links, count * sizeof *links);
    uint32_t *slot = find(groups, numbers, 2u + count);
    if (!*slot) {
        if (groups->of_row[row] >= most) {
            return -ERANGE;
        }
        groups->group[groups->group_count] = (struct group){groups->count, ++groups->of_row[row]};
        groups->count += 2u + count;
        *slot = ++groups->group_count;
    }
    return (int32_t)groups->group[*slot - 1].in_row;
}
