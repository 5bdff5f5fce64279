/* To write a packet to a device is to do the receiver's protocol work, and to wake the program that
 * receives, on another processor more often than not. Where many flows make the data thread busy
 * that is what keeps it from more packets, and the kernel can do it elsewhere: receive packet
 * steering (Documentation/networking/scaling.rst). A single fast flow loses by that, and a packet
 * that comes alone waits longer. So it is on only while the thread is busy and many ports receive,
 * none of them most of the packets, and only for ports that receive many.
 *
 * Steering lowers the load, so the load says nothing about whether it is still needed: it ends when
 * there are far fewer packets than when it began, or far fewer ports, for WINDOWS_AWAY windows.
 */
#include "steer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_PPM 600000u
#define ACTIVE_ON 8u
#define ACTIVE_OFF 4u
#define WINDOWS_AWAY 5u
#define RECEIVED_NS 1000000u /* after so long a packet is where it was sent to */
#define PATIENCE_NS NS_PER_S /* with a port that is written to all the time */

static bool is_wanted(const struct steer_window *w) {
    return w->load_ppm >= BUSY_PPM && w->active >= ACTIVE_ON && w->most_frames * 2 <= w->frames;
}

static bool is_needed(const struct steer *s, const struct steer_window *w) {
    return w->frames * 2 >= s->on_frames && w->active >= ACTIVE_OFF &&
           w->most_frames * 4 <= w->frames * 3;
}

bool steer_look(struct steer *s, const struct steer_window *w, uint64_t length_ns) {
    if (s->is_on) {
        counter_add(&s->on_ns, length_ns);
        s->away = is_needed(s, w) ? 0 : s->away + 1;
        s->is_on = s->away < WINDOWS_AWAY;
    } else if (is_wanted(w)) {
        s->is_on = true;
        s->away = 0;
        s->on_frames = w->frames;
        counter_add(&s->times, 1);
    }
    return s->is_on;
}

bool steer_port(const struct steer_window *w, uint64_t frames) {
    return frames >= STEER_ACTIVE_FRAMES && frames * w->active * 2 >= w->frames;
}

/* The 12th number of each line is how many wait (Linux 5.10). */
bool steer_is_drained(const char *text) {
    const char *line = text;
    while (*line) {
        unsigned long waiting = 0;
        const char *at = line;
        for (int i = 0; i < 12 && *at && *at != '\n'; i++) {
            char *end;
            waiting = strtoul(at, &end, 16);
            waiting = i == 11 ? waiting : 0;
            at = end + (*end == ' ');
        }
        if (waiting) {
            return false;
        }
        const char *end = strchr(line, '\n');
        line = end ? end + 1 : "";
    }
    return true;
}

bool steer_is_over(uint64_t now_ns, uint64_t wrote_ns, uint64_t off_ns) {
    return now_ns - min_u64(wrote_ns, now_ns) >= RECEIVED_NS || now_ns - off_ns >= PATIENCE_NS;
}

/* The `turn`-th processor of `set` without `cpu`, begun again where there are fewer; -1: none. */
static int choose(const cpu_set_t *set, int cpu, uint32_t turn) {
    uint32_t others = (uint32_t)CPU_COUNT(set) - (CPU_ISSET(cpu, set) ? 1 : 0);
    uint32_t left = others ? turn % others : 0;
    for (int i = 0; others && i < CPU_SETSIZE; i++) {
        if (i != cpu && CPU_ISSET(i, set) && left-- == 0) {
            return i;
        }
    }
    return -1;
}

/* Words of 32 processors, the last ones first. */
bool steer_mask(const cpu_set_t *set, int cpu, uint32_t turn, char text[STEER_MASK_BYTES]) {
    int chosen = choose(set, cpu, turn);
    if (chosen < 0) {
        return false;
    }
    int used = snprintf(text, STEER_MASK_BYTES, "%x", 1u << (chosen % 32));
    for (int word = chosen / 32; word > 0; word--) {
        used += snprintf(text + used, STEER_MASK_BYTES - (size_t)used, ",00000000");
    }
    return true;
}
