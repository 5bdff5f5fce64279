/* Whose turn it is to read and to write, the data thread's or that of its hands. */
#include "turns.h"

#include "common/clock.h"
#include "due.h"
#include "reading.h"
#include "wait.h"

#include <sys/epoll.h>

#define INPUTS_PER_FINISH 64u

/* Everything that hands have read, each port's frames in their order. What they have written is
 * taken note of in between: when nobody does they have no room to write more. */
static void take_inputs(struct loop *loop) {
    struct hand_input input;
    bool lost;
    for (uint32_t i = 0; i < loop->hands.count; i++) {
        for (uint32_t n = 0; n < HAND_SLOTS; n++) {
            if (!hands_input(&loop->hands, &loop->hands.hand[i], &input, &lost)) {
                break;
            }
            loop->worked = true;
            if (input.frame) {
                reading_input(loop, input.port, input.frame,
                              &(struct port_frame){input.bytes, input.at_ns});
                due_work(loop);
            } else if (input.port && !lost) {
                reading_end(loop, input.port);
            }
            if (n % INPUTS_PER_FINISH == INPUTS_PER_FINISH - 1) {
                loop->worked |= hands_finish(&loop->hands);
            }
        }
    }
}

/* The ports of a hand while they are the core's. */
void turns_read(struct loop *loop, struct hand *hand) {
    struct epoll_event event[WAIT_EVENTS];
    int count = hand->is_given ? 0 : epoll_wait(hand->ports, event, WAIT_EVENTS, 0);
    reading_take_turns(loop, count);
    for (int i = 0; i < count; i++) {
        reading_port(loop, event[i].data.ptr, event[i].events);
    }
}

/* What hands have done, and whether they are to go on. */
void turns_look(struct loop *loop) {
    struct hands *hands = &loop->hands;
    if (hands->count == 0) {
        return;
    }
    loop->worked |= hands_finish(hands);
    take_inputs(loop);
    uint64_t now_ns = clock_now();
    if (now_ns - hands->look.at_ns < HANDS_LOOK_NS) {
        return;
    }
    bool were_given = hands->are_given;
    const struct engine_counters *c = &loop->engine->count;
    uint64_t cpu_ns = clock_thread();
    hands_look(hands, now_ns, cpu_ns - min_u64(loop->spun_ns, cpu_ns),
               counter_get(&c->rx_frames) + counter_get(&c->tx_frames));
    if (were_given != hands->are_given) {
        loop->worked = true;
        take_inputs(loop); /* before the core reads any more itself */
    }
}

/* Every port is the core's again, and what hands had read of it is in the engine. */
void turns_recall(struct loop *loop) {
    if (loop->hands.are_given) {
        hands_recall(&loop->hands);
        loop->worked = true; /* the last of what they had to write */
        take_inputs(loop);
    }
}
