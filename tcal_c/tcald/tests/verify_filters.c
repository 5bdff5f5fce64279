/* The filters that the kernel has: each must be what the message for it makes. */
#include "verify.h"

#include <string.h>

#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>

/* What a filter was made with, out of the message that made it. */
struct filter {
    struct nl_attr selector;
    uint32_t class;
    uint32_t link;
};

static struct filter filter_of(const struct nl_attr *options) {
    struct nl_attr class = nl_find(options->bytes, options->length, TCA_U32_CLASSID);
    struct nl_attr link = nl_find(options->bytes, options->length, TCA_U32_LINK);
    return (struct filter){nl_find(options->bytes, options->length, TCA_U32_SEL),
                           nl_get_u32(&class), nl_get_u32(&link)};
}

static bool same_filter(const struct filter *a, const struct filter *b) {
    return a->class == b->class && a->link == b->link && a->selector.length == b->selector.length &&
           a->selector.length &&
           memcmp(a->selector.bytes, b->selector.bytes, a->selector.length) == 0;
}

/* Whether the kernel's filter is what the message in the buffer makes. Empties it. */
static bool made_by(struct nl_buffer *b, const struct filter *is) {
    size_t skip = NLMSG_HDRLEN + sizeof(struct tcmsg);
    struct nl_attr options = nl_find(b->bytes + skip, b->used - skip, TCA_OPTIONS);
    struct filter shall = filter_of(&options);
    bool same = same_filter(is, &shall);
    b->used = 0;
    return same;
}

/* In the root tables: those of neighbour discovery, and the prefixes. */
static void check_root_filter(struct check *c, const struct filter *is) {
    struct nl_buffer b = {0};
    struct tcal_mail m = {&b, 0, 0};
    bool found = false;
    for (uint32_t i = 0; i < TCAL_ND_FILTERS && !found; i++) {
        tcal_mail_nd(&m, i);
        found = !c->nd[i] && !b.failed && made_by(&b, is);
        c->nd[i] = c->nd[i] || found;
        b.used = 0;
    }
    for (uint32_t i = 0; i < c->tree->prefixes && !found; i++) {
        tcal_mail_prefix(&m, &c->tree->prefix[i]);
        found = !c->prefix[i] && !b.failed && made_by(&b, is);
        c->prefix[i] = c->prefix[i] || found;
        b.used = 0;
    }
    nl_buffer_free(&b);
    if (!found) {
        verify_differs(c, "a filter at the root is not ours");
    }
}

static void check_link(struct check *c, uint32_t handle, uint32_t family, const struct filter *is) {
    struct nl_buffer b = {0};
    struct tcal_mail m = {&b, 0, 0};
    uint32_t octet = handle >> 12 & 0xff;
    tcal_mail_link(&m, family, octet);
    if ((handle & 0xfff) != 1 || b.failed || !made_by(&b, is)) {
        verify_differs(c, "filter %x is not ours or leads elsewhere", handle);
    }
    c->link[family][octet] = true;
    nl_buffer_free(&b);
}

static void check_address(struct check *c, uint32_t handle, uint32_t family,
                          const struct filter *is) {
    struct nl_buffer b = {0};
    struct tcal_mail m = {&b, 0, 0};
    uint32_t slot = (is->class & 0xffff) - 0x10u;
    if (slot >= c->tree->slots) {
        verify_differs(c, "filter %x leads to class %x, which is not ours", handle, is->class);
        return;
    }
    uint32_t index = c->tree->slot[slot];
    const struct tcal_filter *filter = &c->tree->peer[index].filter[family];
    if (!filter->addr.version || filter->handle != handle) {
        verify_differs(c, "filter %x of node %u is not ours", handle, c->tree->peer[index].node);
        return;
    }
    tcal_mail_filter(&m, &filter->addr, handle, tcal_class_of(slot));
    if (b.failed || !made_by(&b, is)) {
        verify_differs(c, "the filter of node %u matches something else",
                       c->tree->peer[index].node);
    }
    c->seen[index].filter[family] = true;
    nl_buffer_free(&b);
}

static void check_table(struct check *c, uint32_t table) {
    for (uint32_t family = 0; family < TCAL_FAMILIES; family++) {
        if (table == TCAL_TABLE(family)) {
            c->table[family] = true;
            c->objects++;
        }
        if (table >= TCAL_SUBTABLE(family, 0) && table <= TCAL_SUBTABLE(family, 255)) {
            c->subtable[family][table & 0xff] = true;
            c->objects++;
        }
    }
}

void verify_filter(void *context, uint16_t type, const char *body, size_t length) {
    struct check *c = context;
    struct tcmsg tc;
    if (type != RTM_NEWTFILTER || length < sizeof tc) {
        return;
    }
    memcpy(&tc, body, sizeof tc);
    uint32_t table = tc.tcm_handle >> 20;
    struct nl_attr options = nl_find(body + sizeof tc, length - sizeof tc, TCA_OPTIONS);
    if (tc.tcm_handle == 0 || !options.bytes) {
        return; /* the head of a list of filters */
    }
    if ((tc.tcm_handle & 0xfff) == 0) {
        check_table(c, table);
        return;
    }
    struct filter is = filter_of(&options);
    c->objects++;
    if (table >= 0x800) {
        check_root_filter(c, &is);
    } else if (table == 0) {
        verify_differs(c, "filter %x is not ours", tc.tcm_handle);
    } else if (table <= TCAL_FAMILIES) {
        check_link(c, tc.tcm_handle, table - 1, &is);
    } else {
        check_address(c, tc.tcm_handle, table >= TCAL_SUBTABLE(1, 0), &is);
    }
}
