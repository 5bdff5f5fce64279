/* Links by the level at which they fill, lowest first (equal ones by number): a binary heap.
 *
 * Levels only ever rise, so an entry may be too low but never too high: who takes one out computes
 * the level anew and puts it back if it has risen. Its memory is the owner's.
 */
#ifndef SHARE_SOLVE_HEAP_H
#define SHARE_SOLVE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry {
    long double level;
    uint32_t number;
};

struct heap {
    struct entry *entry;
    size_t count;
};

static inline bool entry_before(const struct entry *a, const struct entry *b) {
    return a->level < b->level || (a->level == b->level && a->number < b->number);
}

static inline void heap_push(struct heap *heap, struct entry entry) {
    size_t at = heap->count++;
    while (at > 0 && entry_before(&entry, &heap->entry[(at - 1) / 2])) {
        heap->entry[at] = heap->entry[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->entry[at] = entry;
}

/* The heap must not be empty. */
static inline struct entry heap_pop(struct heap *heap) {
    struct entry top = heap->entry[0];
    struct entry last = heap->entry[--heap->count];
    size_t at = 0;
    for (size_t child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && entry_before(&heap->entry[child + 1], &heap->entry[child])) {
            child++;
        }
        if (!entry_before(&heap->entry[child], &last)) {
            break;
        }
        heap->entry[at] = heap->entry[child];
        at = child;
    }
    heap->entry[at] = last;
    return top;
}

#endif
