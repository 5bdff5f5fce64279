/* What the kernel can do, found out over a channel to it; what only a real kernel has beside that.
 */
#ifndef TCAL_PROBE_H
#define TCAL_PROBE_H

#include "error.h"
#include "tcal.h"
#include "common/netlink/netlink.h"

#include <stdbool.h>
#include <stdint.h>

/* Nothing is tried yet. */
void probe_begin(struct tcal_ability ability[TCAL_ABILITIES]);

/* Tries everything on a new interface of the channel's network namespace. */
bool probe_kernel(const struct nl_channel *channel, struct tcal_ability ability[TCAL_ABILITIES],
                  struct tcal_error *error);

/* Sends so many frames by this interface into the class; whether it could. */
bool probe_send(uint32_t ifindex, uint32_t class, int frames);

/* CLOCK_MONOTONIC, and a millisecond of it. */
uint64_t probe_clock_ns(void);
void probe_pause(void);

#endif
