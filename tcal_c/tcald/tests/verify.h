/* A comparison of a port's tree with what the kernel has. */
#ifndef TCALD_TESTS_VERIFY_H
#define TCALD_TESTS_VERIFY_H

#include "tcal/model.h"

#define VERIFY_TEXT 240

/* Whether the kernel has what the port's tree says it has taken, and nothing else: the number of
 * its objects, or false with the first difference. The port is attached. */
bool verify(const struct tcal *t, uint32_t port, uint64_t *objects, char why[VERIFY_TEXT]);

/* As verify.c and verify_filters.c share it. */
struct seen {
    bool class;
    bool part[4];
    bool filter[TCAL_FAMILIES];
};

struct check {
    struct tcal_tree *tree;
    struct seen *seen; /* by peer */
    bool root;
    bool htb;
    bool table[TCAL_FAMILIES]; /* the first ones */
    bool subtable[TCAL_FAMILIES][256];
    bool link[TCAL_FAMILIES][256];
    bool prefix[TCAL_PREFIX_LIMIT];
    bool nd[TCAL_ND_FILTERS];
    uint64_t objects;
    char *why; /* empty: as it shall be, so far */
};

/* The first difference is the one that is told. */
void verify_differs(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Of a dump of filters; `context` is the struct check. */
void verify_filter(void *context, uint16_t type, const char *body, size_t length);

#endif
