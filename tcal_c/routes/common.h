/* Names shared by every part of the library. No behaviour lives here. */
#ifndef ROUTES_COMMON_H
#define ROUTES_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 u128;

#define ROW_LIMIT 65536u /* rows are 0 .. ROW_LIMIT-1 */
#define PPB 1000000000u

/* How far it is to a destination: delay in ns times 2^16, plus hops, so that one comparison decides
 * by delay, then by hops. With METRIC_HOPS it is hops times 2^80, plus delay. A path visits each
 * row once: its hops fit in 16 bits, its delay (each at most 2^64-1) in 80. With METRIC_DIRECT it
 * is the first again, and rows without a link to the destination have AROUND beside it: they are
 * farther than all that have one. */
typedef u128 distance;
#define HOP 1u
#define DELAY_SHIFT 16
#define HOPS_SHIFT 80
#define AROUND ((distance)1 << 96)
#define FAR ((distance)1 << 97) /* more than any distance; twice of it still fits beside a row */

#endif
