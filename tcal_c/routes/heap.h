/* Rows by distance, nearest first (equal ones by row): a 4-ary heap of plain keys.
 *
 * A row may be in it several times; whoever takes one out sees by its distance whether it still
 * counts. That is faster than moving entries, and bounds the heap by the pushes. Its memory is the
 * owner's.
 */
#ifndef ROUTES_HEAP_H
#define ROUTES_HEAP_H

#include "common.h"

#define ROW_BITS 16

struct heap {
    u128 *key; /* distance * 2^16 + row */
    size_t count;
};

static inline void heap_push(struct heap *heap, distance have, uint32_t row) {
    u128 key = (u128)have << ROW_BITS | row;
    size_t at = heap->count++;
    while (at > 0) {
        size_t parent = (at - 1) / 4;
        if (key >= heap->key[parent]) {
            break;
        }
        heap->key[at] = heap->key[parent];
        at = parent;
    }
    heap->key[at] = key;
}

/* Of four children by three comparisons that decide no branch: which is less cannot be foreseen. */
static inline size_t heap_least_child(const struct heap *heap, size_t first) {
    const u128 *key = heap->key;
    if (first + 4 <= heap->count) {
        size_t left = first + (key[first + 1] < key[first]);
        size_t right = first + 2 + (key[first + 3] < key[first + 2]);
        return left + (right - left) * (key[right] < key[left]);
    }
    size_t least = first;
    for (size_t i = first + 1; i < heap->count; i++) {
        if (key[i] < key[least]) {
            least = i;
        }
    }
    return least;
}

/* The heap must not be empty. Returns the row and sets its distance. */
static inline uint32_t heap_pop(struct heap *heap, distance *have) {
    u128 top = heap->key[0];
    u128 last = heap->key[--heap->count];
    size_t at = 0;
    for (size_t child = 1; child < heap->count; child = 4 * at + 1) {
        size_t least = heap_least_child(heap, child);
        if (heap->key[least] >= last) {
            break;
        }
        heap->key[at] = heap->key[least];
        at = least;
    }
    heap->key[at] = last;
    *have = (distance)(top >> ROW_BITS);
    return (uint32_t)(top & (ROW_LIMIT - 1));
}

#endif
