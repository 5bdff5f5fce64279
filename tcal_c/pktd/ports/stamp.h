/* Arrival stamps: when the kernel sent a packet to a port, written into the packet by the kernel.
 */
#ifndef PKTD_STAMP_H
#define PKTD_STAMP_H

#include "common/limits.h"
#include "common/netlink/netlink.h"

#include <stddef.h>
#include <stdint.h>

/* Longest time a packet may wait in the device before pktd reads it and still count by its stamp.
 */
#define STAMP_AGE_LIMIT_NS (10 * NS_PER_S)

/* The same of a stamp by the wall clock: what seems to be older is a clock that was stepped. */
#define STAMP_WALL_LIMIT_NS NS_PER_S

/* Loads the program that stamps; a descriptor, or -errno where BPF is not allowed. */
int stamp_load(void);

/* Lets the program run on what leaves through interface `index` of the calling thread's network
 * namespace: 0 or -errno with the kernel's words in `why`. */
int stamp_attach(int program, int index, struct nl_why *why);

/* The time in a stamped frame's source address, which is restored. `now_ns` when there is none. */
uint64_t stamp_take(uint8_t *source_mac, const uint8_t *plain, uint64_t now_ns);

/* The same without the time now: the time that the stamp stands for, true. False, and the frame as
 * it was, when there is none, or none within STAMP_AGE_LIMIT_NS of `about_ns`: programs that send
 * past the queueing disciplines (PACKET_QDISC_BYPASS) choose their own source address. */
bool stamp_take_near(uint8_t *source_mac, const uint8_t *plain, uint64_t about_ns, uint64_t *at_ns);

/* When a packet came that has a stamp by the wall clock, which was read together with the time now:
 * as long ago on one clock as on the other. */
uint64_t stamp_of_wall(uint64_t stamp_ns, uint64_t wall_ns, uint64_t now_ns);

#endif
