/* From exact sums to whole numbers: halves up, as docs/plan.md says. */
#ifndef ROUTES_ROUNDING_H
#define ROUTES_ROUNDING_H

#include "stretch.h"

/* The square root, rounded; a tie cannot occur, (r + 1/2)^2 is no integer. False if it does not fit
 * (2^64). */
bool round_root(u128 square, uint64_t *root);

/* PPB * (1 - kept), rounded. False if `kept` is not exact enough to tell. */
bool round_loss(const struct stretch *stretch, uint64_t *loss_ppb);

#endif
