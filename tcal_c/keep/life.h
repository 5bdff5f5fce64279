/* The program of an instance, and what it has started, as process 1 of their PID namespace sees
 * them: pausing, killing, and an end that is asked for. Functions that return int return 0, or
 * -errno, which is also in errno. */
#ifndef KEEP_LIFE_H
#define KEEP_LIFE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { REST_MS = 1000 }; /* from SIGTERM to SIGKILL for what outlives its program */

struct life {
    pid_t program; /* 0: none */
    bool paused;
    int64_t kill_ms; /* when SIGKILL comes for what is left then (CLOCK_MONOTONIC); 0: not asked */
};

int64_t life_now_ms(void);

/* Everything but us. One that forks meanwhile is stopped with its child: the kernel looks for
 * signals before a fork is done. */
int life_pause(struct life *self, bool paused);
int life_kill(struct life *self); /* SIGKILL to everything but us */

/* An end has two parts: the signal to the program, and when that has ended SIGTERM to what is left,
 * with REST_MS to obey. What is paused goes on, to hear of it. */
void life_ask_to_end(struct life *self, int signal_number);
void life_end_the_rest(struct life *self);

bool life_is_overdue(const struct life *self); /* SIGKILL is due */
int life_patience_ms(const struct life *self); /* until then, for poll(2); -1: for ever */

#endif
