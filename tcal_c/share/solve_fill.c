/* Flows and links stop one after another, by level: the next demand that is met or the next link
 * that is full, whichever is lower. A flow that stops can only make its links fill later, so the
 * links wait in a heap with levels that are corrected when they come up. */
#include "solve_fill.h"

#include "tsshare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WEIGHT_ONE ((u128)1 << 110)
/* A link with less than this left is full: far more than what rounding leaves, and nothing. */
#define NOTHING_BPS 0x1p-10L

long double fill_rtt(const struct problem *problem, uint32_t flow) {
    uint64_t rtt = problem->rtts_ns[flow];
    return (long double)(rtt < TSSHARE_LEAST_RTT_NS ? TSSHARE_LEAST_RTT_NS : rtt);
}

static u128 weight(const struct problem *problem, uint32_t flow) {
    uint64_t rtt = problem->rtts_ns[flow];
    return WEIGHT_ONE / (rtt < TSSHARE_LEAST_RTT_NS ? TSSHARE_LEAST_RTT_NS : rtt);
}

int fill_init(struct filling *fill, const struct problem *problem) {
    size_t flows = (size_t)problem->flows + 1;
    size_t links = (size_t)problem->link_count + 1;
    size_t uses = (size_t)problem->first[problem->flows] + 1;
    *fill = (struct filling){
        .rate = calloc(flows, sizeof *fill->rate),
        .level = calloc(flows, sizeof *fill->level),
        .rising = calloc(links, sizeof *fill->rising),
        .left = calloc(links, sizeof *fill->left),
        .height = calloc(links, sizeof *fill->height),
        .full = calloc(links, sizeof *fill->full),
        .member_first = calloc(links + 1, sizeof *fill->member_first),
        .members = calloc(uses, sizeof *fill->members),
        .demands = calloc(flows, sizeof *fill->demands),
        .heap.entry = calloc(links, sizeof *fill->heap.entry),
    };
    return fill->rate && fill->level && fill->rising && fill->left && fill->height && fill->full &&
                   fill->member_first && fill->members && fill->demands && fill->heap.entry
               ? 0
               : -ENOMEM;
}

void fill_destroy(struct filling *fill) {
    free(fill->rate);
    free(fill->level);
    free(fill->rising);
    free(fill->left);
    free(fill->height);
    free(fill->full);
    free(fill->member_first);
    free(fill->members);
    free(fill->demands);
    free(fill->heap.entry);
    *fill = (struct filling){0};
}

/* Which flows pass each link: counted, added up, then put in place. Entry i + 2 counts link i, so
 * that entry i + 1 can move on while places are taken and ends where it has to be. */
static void list_members(struct filling *fill, const struct problem *problem) {
    uint32_t *first = fill->member_first;
    for (uint32_t use = 0; use < problem->first[problem->flows]; use++) {
        if (problem->links[use] + 2 <= problem->link_count) {
            first[problem->links[use] + 2]++;
        }
    }
    for (uint32_t link = 1; link <= problem->link_count; link++) {
        first[link] += first[link - 1];
    }
    for (uint32_t flow = 0; flow < problem->flows; flow++) {
        for (uint32_t use = problem->first[flow]; use < problem->first[flow + 1]; use++) {
            fill->members[first[problem->links[use] + 1]++] = flow;
        }
    }
}

static int by_level(const void *a, const void *b) {
    const struct entry *left = a;
    const struct entry *right = b;
    return entry_before(right, left) - entry_before(left, right);
}

static long double link_level(const struct filling *fill, uint32_t link) {
    return fill->left[link] / ((long double)fill->rising[link] * 0x1p-110L);
}

static void begin(struct filling *fill, const struct problem *problem) {
    list_members(fill, problem);
    for (uint32_t flow = 0; flow < problem->flows; flow++) {
        uint64_t demand = problem->demands_bps[flow];
        fill->level[flow] = -1;
        if (demand != TSSHARE_UNLIMITED) {
            long double level = (long double)demand * fill_rtt(problem, flow);
            fill->demands[fill->demand_count++] = (struct entry){level, flow};
        }
        u128 one = weight(problem, flow);
        for (uint32_t use = problem->first[flow]; use < problem->first[flow + 1]; use++) {
            fill->rising[problem->links[use]] += one;
        }
    }
    qsort(fill->demands, fill->demand_count, sizeof *fill->demands, by_level);
    for (uint32_t link = 0; link < problem->link_count; link++) {
        fill->left[link] = (long double)problem->capacities_bps[link];
        if (problem->capacities_bps[link] && fill->rising[link]) {
            heap_push(&fill->heap, (struct entry){link_level(fill, link), link});
        }
    }
}

static void stop(struct filling *fill, const struct problem *problem, uint32_t flow,
                 long double level, long double rate) {
    u128 one = weight(problem, flow);
    fill->level[flow] = level;
    fill->rate[flow] = rate;
    for (uint32_t use = problem->first[flow]; use < problem->first[flow + 1]; use++) {
        uint32_t link = problem->links[use];
        fill->rising[link] -= one;
        fill->left[link] = fill->left[link] > rate ? fill->left[link] - rate : 0;
    }
}

/* The next link to fill, taken out of the heap only if `below` is not reached before. */
static bool next_link(struct filling *fill, long double below, struct entry *found) {
    while (fill->heap.count && fill->heap.entry[0].level < below) {
        *found = heap_pop(&fill->heap);
        if (!fill->rising[found->number]) {
            continue;
        }
        long double level = link_level(fill, found->number);
        if (level <= found->level) {
            return true;
        }
        found->level = level;
        heap_push(&fill->heap, *found);
    }
    return false;
}

static void fill_link(struct filling *fill, const struct problem *problem, struct entry link) {
    uint32_t end = fill->member_first[link.number + 1];
    fill->full[link.number] = 1;
    for (uint32_t at = fill->member_first[link.number]; at < end; at++) {
        uint32_t flow = fill->members[at];
        if (fill->level[flow] < 0) {
            stop(fill, problem, flow, link.level, link.level / fill_rtt(problem, flow));
        }
    }
}

static void find_heights(struct filling *fill, const struct problem *problem) {
    for (uint32_t link = 0; link < problem->link_count; link++) {
        uint32_t first = fill->member_first[link];
        uint32_t end = fill->member_first[link + 1];
        if (!problem->capacities_bps[link] || first == end ||
            (!fill->full[link] && fill->left[link] >= NOTHING_BPS)) {
            continue;
        }
        for (uint32_t at = first; at < end; at++) {
            fill->height[link] = larger(fill->height[link], fill->level[fill->members[at]]);
        }
    }
}

void fill_run(struct filling *fill, const struct problem *problem) {
    begin(fill, problem);
    uint32_t met = 0;
    struct entry link;
    for (;;) {
        while (met < fill->demand_count && fill->level[fill->demands[met].number] >= 0) {
            met++;
        }
        bool wanted = met < fill->demand_count;
        if (next_link(fill, wanted ? fill->demands[met].level : INFINITY, &link)) {
            fill_link(fill, problem, link);
        } else if (wanted) {
            struct entry demand = fill->demands[met++];
            stop(fill, problem, demand.number, demand.level,
                 (long double)problem->demands_bps[demand.number]);
        } else {
            break;
        }
    }
    find_heights(fill, problem);
}
