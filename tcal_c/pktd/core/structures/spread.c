/* Tables of groups that grow beside the data thread and change only in it. */
#include "spread.h"

#include <stdlib.h>
#include <string.h>

bool spread_prepare(struct spread *spread, uint32_t group) {
    _Atomic(struct spread_page *) *slot = &spread->page[group / SPREAD_FAN];
    if (atomic_load_explicit(slot, memory_order_relaxed)) {
        return true;
    }
    struct spread_page *page = calloc(1, sizeof *page);
    atomic_store_explicit(slot, page, memory_order_release);
    return page != NULL;
}

static struct spread_group *find(const struct spread *spread, uint32_t group) {
    struct spread_page *page =
        atomic_load_explicit(&spread->page[group / SPREAD_FAN], memory_order_acquire);
    return page ? &page->group[group % SPREAD_FAN] : NULL;
}

void spread_set(struct spread *spread, uint32_t group, const uint32_t *links, uint32_t count) {
    struct spread_group *to = find(spread, group);
    to->count = count;
    memcpy(to->link, links, count * sizeof *links);
}

const struct spread_group *spread_find(const struct spread *spread, uint32_t next) {
    const struct spread_group *group = next == LINK_NONE ? NULL : find(spread, next - SPREAD_FIRST);
    return group && group->count ? group : NULL;
}

void spread_destroy(struct spread *spread) {
    for (size_t i = 0; i < sizeof spread->page / sizeof *spread->page; i++) {
        free(atomic_load_explicit(&spread->page[i], memory_order_relaxed));
    }
}
