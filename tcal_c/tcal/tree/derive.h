/* From the properties of a path to the numbers the kernel's queueing disciplines take.
 * Each is explained in docs/tcal.md, "Parameters". */
#ifndef TCAL_DERIVE_H
#define TCAL_DERIVE_H

#include "tcal/tcal.h"

#define TCAL_ETHERNET_BYTES 14u
#define TCAL_TICK_NS 64u /* of htb's bursts */
/* What a frame may have beyond the interface's MTU: its header and a VLAN tag. */
#define TCAL_FRAME_EXTRA (TCAL_ETHERNET_BYTES + 4u)
#define TCAL_UNLIMITED_BYTES_PS 1250000000000ull /* 10 Tb/s */

/* What netem is told of one path, but for the table of its distribution. */
struct tcal_netem {
    uint64_t latency_ns;
    uint64_t jitter_ns; /* as netem takes it: times the scale of the table */
    uint32_t loss;      /* of 2^32 - 1 */
    uint32_t limit;     /* packets */
};

/* What the kernel has, or shall have, for one path. */
struct tcal_params {
    bool open; /* false: everything is dropped, and nothing else here counts */
    enum tcal_dist dist;
    uint64_t rate_bytes_ps;
    uint32_t burst_ticks; /* of 64 ns */
    struct tcal_netem netem;
    uint32_t queue_bytes;
};

bool tcal_same_netem(const struct tcal_netem *a, const struct tcal_netem *b);

/* `mtu` is the interface's. The packet limit never falls below `limit`, the one in force, so that a
 * change of the rate need not touch netem. */
struct tcal_params tcal_derive(const struct tcal_path *path, const struct tcal_options *options,
                               uint32_t mtu, uint32_t limit);

/* NULL when the kernel can carry it out, otherwise what it cannot. */
const char *tcal_unfit(const struct tcal_path *path);

/* A netem that is told its seed starts its draws anew at each change: with the same seed it would
 * repeat the same first draws. */
uint64_t tcal_seed(uint64_t seed, uint64_t generation);

#endif
