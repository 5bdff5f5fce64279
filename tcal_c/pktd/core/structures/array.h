/* Arrays that grow. */
#ifndef PKTD_ARRAY_H
#define PKTD_ARRAY_H

#include <stdbool.h>
#include <stdlib.h>

/* Room for one more element than `count`: it doubles. False without memory; then it is as before.
 */
static inline bool array_room(void **array, size_t *room, size_t count, size_t element) {
    if (count < *room) {
        return true;
    }
    size_t bigger = *room ? *room * 2 : 64;
    void *memory = realloc(*array, bigger * element);
    if (!memory) {
        return false;
    }
    *array = memory;
    *room = bigger;
    return true;
}

#endif
