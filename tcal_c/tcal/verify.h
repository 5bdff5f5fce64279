/* A comparison of a tree with what the kernel has, as verify.c and verify_filters.c share it. */
#ifndef TCAL_VERIFY_H
#define TCAL_VERIFY_H

#include "tree.h"

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
    char *why;
    size_t room;
    bool differs;
};

/* The first difference is the one that is told. */
void tcal_differ(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Of a dump of filters; `context` is the struct check. */
void tcal_hear_filter(void *context, uint16_t type, const char *body, size_t length);

#endif
