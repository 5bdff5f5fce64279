/* The words of a failure. */
#ifndef TCAL_ERROR_H
#define TCAL_ERROR_H

#include "tcal.h"

/* Writes what the format says, then the system's word for `code` (negative; 0: none) and `text`,
 * the kernel's own (NULL or empty: none). Returns false, for the caller to return. */
bool tcal_fail(struct tcal_error *error, int code, const char *text, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
