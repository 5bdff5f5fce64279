/* Words and values of a protocol line. */
#ifndef COMMON_WORDS_H
#define COMMON_WORDS_H

#include "addr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rest of a line. Words are cut off its front, in place. */
struct words {
    char *rest; /* NULL: no more words */
};

/* The next word, NULL at the end. */
char *words_next(struct words *w);

/* Words separated by exactly one space, printable ASCII only. */
bool words_well_formed(const char *line, size_t length);

/* An unsigned decimal of at most `limit`. */
bool word_number(const char *word, uint64_t limit, uint64_t *value);

/* FIRST-LAST. */
bool word_range(const char *word, uint64_t limit, uint32_t *first, uint32_t *last);

bool word_ipv4(const char *word, struct addr *addr);

/* The address of a device, six bytes in hexadecimal with colons; not a group's. */
bool word_mac(const char *word, uint8_t *mac);
bool word_ipv6(const char *word, struct addr *addr);

/* ADDR/BITS of either family. `strayed` tells that only bits beyond the length are wrong; then the
 * prefix is the one that was probably meant. */
bool word_prefix(char *word, struct prefix *prefix, bool *strayed);

/* Splits KEY=VALUE in place; NULL when there is no '='. */
char *word_value(char *word);

#endif
