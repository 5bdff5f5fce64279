/* Parameters of classes and queueing disciplines (docs/tcal.md, "Parameters"). */
#include "derive.h"

#include "dist.h"

#define BURST_FRAMES 2
#define SMALL_PACKET_BYTES 64u
#define LIMIT_MIN 1024u
#define LIMIT_MAX (1u << 20)
#define FAST_BYTES_PS (NS_PER_S * 10 / 8) /* what is assumed of paths without a rate */
#define FIFO_MAX 0x7fffffffu              /* the kernel counts a backlog in 32 bits */
#define JITTER_MAX_NS 0x7fffffffull       /* netem's draw takes 31 bits */
#define DELAY_SPREAD 4u                   /* jitters a delay may be above its mean, mostly */

static uint64_t bytes_in(uint64_t bytes_ps, uint64_t ns) {
    u128 bytes = (u128)bytes_ps * ns / NS_PER_S;
    return bytes > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)bytes;
}

static uint32_t burst_ticks(uint64_t bytes_ps, uint64_t burst_ns, uint32_t mtu) {
    u128 frames_ns = (u128)BURST_FRAMES * mtu * NS_PER_S / bytes_ps + 1;
    u128 ns = frames_ns > burst_ns ? frames_ns : burst_ns;
    u128 ticks = (ns + TCAL_TICK_NS - 1) / TCAL_TICK_NS;
    return ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}

static uint32_t power_above(uint64_t n) {
    uint32_t power = LIMIT_MIN;
    while (power < n && power < LIMIT_MAX) {
        power *= 2;
    }
    return power;
}

static uint32_t packet_limit(const struct tcal_path *path, uint32_t limit) {
    uint64_t speed = path->rate_bps ? (path->rate_bps + 7) / 8 : FAST_BYTES_PS;
    uint64_t ns = path->delay_ns + DELAY_SPREAD * path->jitter_ns;
    uint64_t bytes = bytes_in(speed, ns) + path->queue_bytes;
    uint32_t need = power_above(2 * (bytes / SMALL_PACKET_BYTES));
    return need > limit ? need : limit;
}

bool tcal_same_netem(const struct tcal_netem *a, const struct tcal_netem *b) {
    return a->latency_ns == b->latency_ns && a->jitter_ns == b->jitter_ns && a->loss == b->loss &&
           a->limit == b->limit;
}

struct tcal_params tcal_derive(const struct tcal_path *path, const struct tcal_options *options,
                               uint32_t mtu, uint32_t limit) {
    struct tcal_params p = {.open = path->up, .dist = path->dist};
    uint64_t rate = (path->rate_bps + 4) / 8;
    p.rate_bytes_ps = path->rate_bps == 0 ? TCAL_UNLIMITED_BYTES_PS : rate ? rate : 1;
    p.burst_ticks = burst_ticks(p.rate_bytes_ps, options->burst_ns, mtu);
    p.netem.latency_ns = path->delay_ns;
    p.netem.jitter_ns = path->jitter_ns * tcal_dist_scale(path->dist);
    p.netem.loss = (uint32_t)(((u128)path->loss_ppb * UINT32_MAX + NS_PER_S / 2) / NS_PER_S);
    p.netem.limit = packet_limit(path, limit);
    /* An empty queue must take any packet. The kernel counts on it: a drop by the queue that leaves
     * nothing behind takes the class away from under htb, which then stops the machine (fixed in
     * Linux 6.16). */
    uint64_t least = mtu + TCAL_FRAME_EXTRA;
    uint64_t bytes = path->queue_bytes > least ? path->queue_bytes : least;
    p.queue_bytes = path->rate_bps == 0 || bytes > FIFO_MAX ? FIFO_MAX : (uint32_t)bytes;
    return p;
}

const char *tcal_unfit(const struct tcal_path *path) {
    if (path->jitter_ns > JITTER_MAX_NS / tcal_dist_scale(path->dist)) {
        return tcal_dist_scale(path->dist) > 1
                   ? "netem takes a jitter of at most 357913941 ns with a Pareto distribution"
                   : "netem takes a jitter of at most 2147483647 ns";
    }
    return NULL;
}

uint64_t tcal_seed(uint64_t seed, uint64_t generation) {
    /* SplitMix64's output function over both. */
    uint64_t x = seed + (generation + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}
