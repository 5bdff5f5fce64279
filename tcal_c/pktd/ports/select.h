/* Which packets of an interface towards a prefix are pktd's, as keys of u32 filters. */
#ifndef PKTD_SELECT_H
#define PKTD_SELECT_H

#include "common/addr.h"

#include <linux/pkt_cls.h>

#define KEY_LIMIT 8
#define SELECTOR_LIMIT 16

/* One filter: all of its keys must match. Offsets count from the beginning of the IP header. */
struct selector {
    uint8_t keys;
    struct tc_u32_key key[KEY_LIMIT];
};

/* The filters of which one must match; how many. There is room for SELECTOR_LIMIT. */
uint32_t select_prefix(const struct prefix *prefix, struct selector *s);

#endif
