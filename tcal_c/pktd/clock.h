/* The one clock of pktd. */
#ifndef PKTD_CLOCK_H
#define PKTD_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in ns. */
uint64_t clock_now(void);

#endif
