/* Proportional integral controller enhanced (RFC 8033).
 *
 * Every tupdate the probability changes by alpha times how far the delay is from its target, and
 * beta times by how much it has grown; both count less while the probability is small. The delay is
 * that of packets as they are sent, from their times of coming, as in Linux and as the RFC allows.
 * Updates are made up for when something comes or is sent; between such moments nothing changes
 * that they depend on. The first 150 ms of a burst are let through, and drops are neither too close
 * to each other nor too far apart: the sum of the probabilities since the last one is kept between
 * 0.85 and 8.5.
 */
#include "pie.h"

#include "aqm.h"
#include "pktd/core/draws/draw.h"

#define KEY_PIE 0x706965ull /* "pie" */
#define WHOLE ((1ull << 56) - 1)
#define BURST_NS 150000000ull
/* From such a delay on the probability grows by 2 % more an update. */
#define LONG_NS 250000000ull
#define FULL_BYTES 1500u

void pie_begin(struct pie *pie, uint64_t at_ns) {
    *pie = (struct pie){.burst_ns = BURST_NS, .updated_ns = at_ns};
}

/* By how much the probability changes: `sixteenths` of a second's worth, scaled down by `shift`. */
static i128 part(uint64_t sixteenths, uint32_t shift, uint64_t to_ns, uint64_t from_ns) {
    i128 ns = (i128)to_ns - (i128)from_ns;
    return ns * (i128)((u128)sixteenths * WHOLE / 16 >> shift) / (i128)NS_PER_S;
}

/* 2 where the probability is below 10 %, and 4 more for each further tenth of that down to 10^-6.
 */
static uint32_t damped(uint64_t drop) {
    uint32_t shift = drop < WHOLE / 10 ? 1 : 0;
    for (uint64_t power = 100; power <= 1000000 && drop < WHOLE / power; power *= 10) {
        shift += 2;
    }
    return shift;
}

static void update(struct aqm *aqm) {
    struct pie *pie = &aqm->pie;
    bool known = pie->delay_ns || aqm->bytes == 0; /* else no packet has been sent yet */
    uint32_t shift = damped(pie->drop);
    i128 step = part(aqm->is.alpha, shift, pie->delay_ns, aqm->is.target_ns) +
                part(aqm->is.beta, shift, pie->delay_ns, pie->before_ns);
    if (pie->drop >= WHOLE / 10 && step > WHOLE / 50) {
        step = WHOLE / 50;
    }
    step += pie->delay_ns > LONG_NS ? WHOLE / 50 : 0;
    i128 drop = (i128)pie->drop + step;
    pie->drop = drop < 0 ? 0 : drop > (i128)WHOLE ? WHOLE : (uint64_t)drop;
    if (pie->delay_ns == 0 && pie->before_ns == 0 && known) {
        pie->drop -= pie->drop / 64;
    }
    bool low = pie->delay_ns < aqm->is.target_ns / 2 && pie->before_ns < aqm->is.target_ns / 2;
    pie->before_ns = pie->delay_ns;
    if (low && pie->drop == 0) {
        pie->burst_ns = BURST_NS;
        pie->sent_ns = pie->sum = 0;
    }
}

/* Makes up for the updates until `at_ns`. Where one changes nothing, none of the next does. */
static void catch_up(struct aqm *aqm, uint64_t at_ns) {
    struct pie *pie = &aqm->pie;
    while (pie->updated_ns + aqm->is.tupdate_ns <= at_ns) {
        uint64_t drop = pie->drop, before_ns = pie->before_ns, burst_ns = pie->burst_ns;
        pie->updated_ns += aqm->is.tupdate_ns;
        update(aqm);
        if (pie->drop == drop && pie->before_ns == before_ns && pie->burst_ns == burst_ns) {
            pie->updated_ns += (at_ns - pie->updated_ns) / aqm->is.tupdate_ns * aqm->is.tupdate_ns;
        }
    }
}

bool pie_hits(struct aqm *aqm, const struct piece *piece, uint64_t n, uint64_t at_ns) {
    struct pie *pie = &aqm->pie;
    catch_up(aqm, at_ns);
    if (pie->burst_ns || (pie->delay_ns < aqm->is.target_ns / 2 && pie->drop < WHOLE / 5) ||
        aqm->bytes < 2 * FULL_BYTES) {
        return false;
    }
    pie->sum = pie->drop ? pie->sum + pie->drop : 0;
    if (pie->sum < WHOLE / 100 * 85) {
        return false;
    }
    uint64_t key = draw_key(aqm->seed, KEY_PIE, piece->frame->info.probe);
    bool hits = pie->sum >= WHOLE / 2 * 17 || draw_bits(key, n) >> 8 < pie->drop;
    pie->sum = hits ? 0 : pie->sum;
    return hits;
}

bool pie_marks(const struct pie *pie) {
    return pie->drop <= WHOLE / 10;
}

void pie_sent(struct aqm *aqm, const struct piece *piece, uint64_t at_ns) {
    struct pie *pie = &aqm->pie;
    catch_up(aqm, at_ns);
    uint64_t since_ns = pie->sent_ns ? at_ns - pie->sent_ns : 0;
    pie->delay_ns = aqm->bytes ? fifo_waited(piece, at_ns) : 0;
    pie->burst_ns -= min_u64(pie->burst_ns, since_ns);
    pie->sent_ns = at_ns;
}
