#include "life.h"

#include <errno.h>
#include <signal.h>

#include "common/clock.h"

int64_t life_now_ms(void) {
    return (int64_t)(clock_now() / 1000000);
}

/* Nobody there to hear of it is no failure. */
static int to_all(int signal_number) {
    return kill(-1, signal_number) < 0 && errno != ESRCH ? -errno : 0;
}

int life_pause(struct life *self, bool paused) {
    int refused = to_all(paused ? SIGSTOP : SIGCONT);
    self->paused = refused ? self->paused : paused;
    return refused;
}

int life_kill(struct life *self) {
    self->paused = false;
    return to_all(SIGKILL);
}

void life_ask_to_end(struct life *self, int signal_number) {
    kill(self->program, signal_number);
    if (self->paused) {
        life_pause(self, false);
    }
}

void life_end_the_rest(struct life *self) {
    kill(-1, SIGTERM); /* one that is out of our reach may still end by itself */
    kill(-1, SIGCONT);
    self->kill_ms = life_now_ms() + REST_MS;
}

bool life_is_overdue(const struct life *self) {
    return self->kill_ms != 0 && life_now_ms() >= self->kill_ms;
}

int life_patience_ms(const struct life *self) {
    if (self->kill_ms == 0) {
        return -1;
    }
    int64_t left = self->kill_ms - life_now_ms();
    return left > 0 ? (int)left : 0;
}
