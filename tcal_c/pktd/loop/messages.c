/* Messages travel on two lock-free stacks (push by one side, taken whole by the other) with an
 * eventfd each as the bell. Batches wait here until they are due.
 */
#include "messages.h"

#include "arrivals.h"
#include "common/bell.h"
#include "common/clock.h"
#include "reading.h"
#include "turns.h"
#include "wait.h"

#include <stdlib.h>
#include <unistd.h>

static void push(_Atomic(struct message *) *stack, struct message *message) {
    struct message *top = atomic_load_explicit(stack, memory_order_relaxed);
    do {
        message->next = top;
    } while (!atomic_compare_exchange_weak_explicit(stack, &top, message, memory_order_release,
                                                    memory_order_relaxed));
}

static struct message *take_all(_Atomic(struct message *) *stack) {
    struct message *top = atomic_exchange_explicit(stack, NULL, memory_order_acquire);
    struct message *first = NULL;
    while (top) {
        struct message *next = top->next;
        top->next = first;
        first = top;
        top = next;
    }
    return first;
}

void loop_post(struct loop *loop, struct message *message) {
    push(&loop->inbox, message);
    bell_ring(loop->wake);
}

struct message *loop_collect(struct loop *loop) {
    return take_all(&loop->outbox);
}

void loop_await(struct loop *loop) {
    /* Sequentially consistent: counters that are read after it have what is not told. */
    atomic_store(&loop->awaited, true);
}

bool loop_moved(struct loop *loop) {
    return atomic_exchange(&loop->moved, false);
}

/* The other half: counters were written before it is looked who waits for that. */
void messages_tell_moved(struct loop *loop) {
    if (!loop->worked) {
        return;
    }
    loop->worked = false;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&loop->awaited, memory_order_relaxed)) {
        atomic_store(&loop->awaited, false);
        atomic_store(&loop->moved, true);
        bell_ring(loop->report);
    }
}

static void hand_back(struct loop *loop, struct message *message) {
    push(&loop->outbox, message);
    bell_ring(loop->report);
}

static void add_pending(struct loop *loop, struct message *message) {
    struct batch *batch = message->batch;
    /* A time that has passed means now: the past cannot be changed any more. */
    batch->due_ns = max_u64(batch->at_ns, clock_now());
    struct message **slot = &loop->pending;
    while (*slot && (*slot)->batch->due_ns <= batch->due_ns) {
        slot = &(*slot)->next;
    }
    message->next = *slot;
    *slot = message;
}

static void add_port(struct loop *loop, struct port *port) {
    loop->port[port->number] = port;
    steers_add(loop, port);
    if (port->out >= 0) {
        engine_use_paths(loop->engine);
    }
    if (port->kind == PORT_LINE) {
        arrivals_add(loop, port);
    }
    if (wait_add(loop, port)) {
        reading_end(loop, port);
    }
}

static void remove_port(struct loop *loop, struct port *port) {
    turns_recall(loop); /* none of them may be using it */
    engine_close_port(loop->engine, port->number);
    wait_remove(loop, port);
    if (port->kind == PORT_LINE) {
        arrivals_remove(loop, port);
    }
    loop->port[port->number] = NULL;
}

static void handle(struct loop *loop, struct message *message) {
    switch (message->kind) {
    case MESSAGE_BATCH:
        add_pending(loop, message);
        return;
    case MESSAGE_RESERVE:
        engine_reserve(loop->engine, &message->room);
        break;
    case MESSAGE_OPEN:
        add_port(loop, message->port);
        break;
    case MESSAGE_CLOSE:
        remove_port(loop, message->port);
        break;
    case MESSAGE_LEASE:
        engine_close_paths(loop->engine, message->expired);
        break;
    case MESSAGE_BURDEN:
        loop->burden = (struct burden){message->burden_permille, 0};
        break;
    case MESSAGE_STOP:
        loop->stop = true;
        break;
    }
    hand_back(loop, message);
}

void messages_read(struct loop *loop) {
    uint64_t count;
    if (loop->is_virtual) {
        virtual_again(loop, WAKE_TAG);
    } else if (read(loop->wake, &count, sizeof count) < 0) {
        return;
    }
    bool were_given = loop->io_threads.are_given;
    for (struct message *m = take_all(&loop->inbox), *next; m; m = next) {
        next = m->next;
        handle(loop, m);
    }
    if (were_given && !loop->io_threads.are_given) {
        io_threads_give(
            &loop->io_threads); /* ports were removed, but there is as much to do as before */
    }
}

void messages_apply_first(struct loop *loop) {
    struct message *message = loop->pending;
    struct batch *batch = message->batch;
    loop->pending = message->next;
    batch->applied_ns = clock_now();
    loop->worked = true;
    engine_apply(loop->engine, batch, batch->due_ns);
    hand_back(loop, message);
}

static void free_messages(struct message *first) {
    for (struct message *m = first, *next; m; m = next) {
        next = m->next;
        if (m->kind == MESSAGE_BATCH) {
            batch_free(m->batch);
        } else if (m->kind == MESSAGE_RESERVE) {
            free(m->room.heap);
            free(m->room.slots);
        }
        free(m);
    }
}

void messages_free(struct loop *loop) {
    free_messages(loop->pending);
    free_messages(take_all(&loop->inbox));
    free_messages(take_all(&loop->outbox));
}
