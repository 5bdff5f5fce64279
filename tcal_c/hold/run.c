/* run: process 1 of a container; starts and ends the program as the agent orders.
 *
 * Input: orders (order.c), SIGTERM of the container engine, children that end. Output: the
 * program's life and reports of it (report.c). A life ends in three ways: the program ends by
 * itself, a leave (the stop signal to the program; when it has ended SIGTERM to what is left, and
 * SIGKILL a second later; SIGKILL to all when the grace is over), a crash (SIGKILL). Like in a
 * container of its own, everything that the program has started ends with it if it ends by itself.
 * Then the next join may come; the container itself stays.
 *
 *   HELD --join--> RUNNING --leave, SIGTERM--> LEAVING --grace, join, crash--> EMPTYING
 *    | ^              |                           |                              ^
 *    | |              +--program ended, crash-----|------------------------------+
 *    | +--- SETTING_UP --ended---------------------------------------------------+
 *    +-setup, join-^
 *   LEAVING, EMPTYING --no process left--> RUNNING if a join waits, end if told to, else HELD
 *
 * A setup runs once, before the first start: by an order of its own or with the first join. One
 * that fails is tried again with the next join, and that join fails.
 *
 * While EMPTYING, which takes as long as the kernel needs, orders stay queued in the kernel.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keep/life.h"
#include "hold.h"

enum phase { HELD, SETTING_UP, RUNNING, LEAVING, EMPTYING };

struct hold {
    struct options wanted;
    enum phase phase;
    struct life life;  /* of the program, or its setup */
    bool setting_up;   /* `program` is the setup, in whatever phase */
    bool set_up;       /* nothing is to be done before a start any more */
    bool joined;       /* a join waits for the setup */
    bool rejoin;       /* start again as soon as nothing is left */
    bool ending;       /* end as soon as nothing is left */
    int status;        /* to end with */
    const char *event; /* to report when nothing is left */
    struct readiness readiness;
};

static void failed(struct hold *self, const char *program, const char *error) {
    const struct field why[] = {{.name = "program", .text = program},
                                {.name = "error", .text = error}};
    report("failed", why, 2);
    self->joined = false;
}

static void not_started(struct hold *self, const char *program) {
    const char *reason = strerror(errno);
    self->phase = HELD;
    if (self->joined) {
        failed(self, program, reason);
    } else {
        report_text("set_up", "error", reason);
    }
}

/* The setup where that is still to be done, else the program. */
static void start(struct hold *self) {
    bool setup = self->wanted.setup && !self->set_up;
    char **argv = setup ? self->wanted.setup : self->wanted.argv;
    pid_t pid = program_start(argv, self->wanted.user, false);
    if (pid < 0) {
        not_started(self, argv[0]);
        return;
    }
    self->life.program = pid;
    self->setting_up = setup;
    self->phase = setup ? SETTING_UP : RUNNING;
    report_number(setup ? "setup" : "started", "pid", pid);
    if (!setup) {
        self->joined = false;
        readiness_begin(&self->readiness, &self->wanted, life_now_ms());
    }
}

/* Everything in the namespace but us; what its user put out of our reach is refused, and said. */
static void empty(struct hold *self, const char *event) {
    if (life_kill(&self->life) < 0) {
        say("cannot kill every process of the container");
    }
    readiness_end(&self->readiness);
    self->phase = EMPTYING;
    self->event = event;
    self->life.kill_ms = 0;
}

static void leave(struct hold *self) {
    life_ask_to_end(&self->life, self->phase == RUNNING ? self->wanted.stop : SIGTERM);
    readiness_end(&self->readiness);
    self->phase = LEAVING;
    self->event = "left";
    self->life.kill_ms = life_now_ms() + self->wanted.grace_ms;
}

/* The join that waits for the setup has its answer before all of it ends. */
static void forgo(struct hold *self) {
    if (self->phase == SETTING_UP) {
        failed(self, self->wanted.argv[0], "it was ended before its program ran");
    }
}

static bool pause_or_resume(struct hold *self, enum order order) {
    bool pausing = order == ORDER_PAUSE;
    if (self->life.paused == pausing || life_pause(&self->life, pausing) < 0) {
        return false;
    }
    report(pausing ? "paused" : "resumed", NULL, 0);
    return true;
}

/* Whether the order changes anything. */
static bool obey(struct hold *self, enum order order) {
    bool there = self->phase == RUNNING || (self->phase == SETTING_UP && self->joined);
    if (order == ORDER_JOIN && self->phase == HELD) {
        self->joined = true;
        start(self);
    } else if (order == ORDER_JOIN && self->phase == SETTING_UP && !self->joined) {
        self->joined = true;
    } else if (order == ORDER_JOIN && self->phase == LEAVING) {
        self->rejoin = self->joined = true; /* the timeline has priority over the grace */
        empty(self, "left");
    } else if (order == ORDER_LEAVE && there) {
        forgo(self);
        leave(self);
    } else if (order == ORDER_CRASH && (there || self->phase == LEAVING)) {
        forgo(self);
        empty(self, "crashed");
    } else if (order == ORDER_SETUP && self->phase == HELD && self->wanted.setup && !self->set_up) {
        start(self);
    } else if ((order == ORDER_PAUSE || order == ORDER_RESUME) && there) {
        return pause_or_resume(self, order);
    } else if (order == ORDER_KILL && there) {
        return life_kill(&self->life) == 0; /* its end is reported as any other */
    } else {
        return false;
    }
    return true;
}

static void terminate(struct hold *self) {
    self->ending = true;
    self->rejoin = false;
    if (self->phase == RUNNING || self->phase == SETTING_UP) {
        leave(self);
    }
}

static void report_end(const char *event, int wait_status) {
    if (WIFSIGNALED(wait_status)) {
        report_number(event, "signal", WTERMSIG(wait_status));
    } else {
        report_number(event, "status", WEXITSTATUS(wait_status));
    }
}

static void setup_ended(struct hold *self, int wait_status) {
    char reason[64];
    self->set_up = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    self->rejoin = self->set_up && self->joined;
    if (!self->set_up && self->joined) {
        snprintf(reason, sizeof reason, "setup ended %s %d",
                 WIFSIGNALED(wait_status) ? "by signal" : "with",
                 WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
        failed(self, self->wanted.setup[0], reason);
    }
    empty(self, NULL);
}

static void program_ended(struct hold *self, int wait_status) {
    self->life.program = 0;
    report_end(self->setting_up ? "set_up" : "ended", wait_status);
    if (!self->setting_up) {
        self->status = exit_status(wait_status);
    }
    if (self->phase == SETTING_UP) {
        setup_ended(self, wait_status);
    } else if (self->phase == RUNNING) {
        empty(self, NULL);
    } else if (self->phase == LEAVING) {
        life_end_the_rest(&self->life);
    }
}

/* Orphans become ours, since we are process 1: the last one reaped means that nothing is left. */
static void reap(struct hold *self) {
    int wait_status;
    pid_t ended;
    while ((ended = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        if (ended == self->life.program) {
            program_ended(self, wait_status);
        } else {
            readiness_reaped(&self->readiness, ended, wait_status, life_now_ms());
        }
    }
    if ((self->phase != EMPTYING && self->phase != LEAVING) || ended == 0) {
        return;
    }
    self->phase = HELD;
    self->life.kill_ms = 0;
    if (self->event) {
        report(self->event, NULL, 0);
    }
    if (self->rejoin) {
        self->rejoin = false;
        start(self);
    }
}

static int patience_ms(const struct hold *self) {
    bool watching = self->phase == RUNNING && !self->life.paused;
    int64_t due = watching ? readiness_due_ms(&self->readiness) : -1;
    if (due < 0) {
        return life_patience_ms(&self->life);
    }
    int64_t left = due - life_now_ms();
    return left > 0 ? (int)left : 0;
}

/* What is due by the clock. */
static void be_in_time(struct hold *self) {
    if (life_is_overdue(&self->life)) {
        empty(self, "left");
    } else if (self->phase == RUNNING && !self->life.paused) {
        readiness_act(&self->readiness, life_now_ms());
    }
}

static bool takes_orders(const struct hold *self) {
    return self->phase != EMPTYING && !self->ending;
}

/* Returns the exit status. Signals first: an order that follows the end of a program in time must
 * also find it ended. */
static int loop(struct hold *self, int signals, int orders) {
    struct pollfd watch[] = {{.fd = signals, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    int number;
    enum order order;
    while (!self->ending || self->phase != HELD) {
        watch[1].fd = takes_orders(self) ? orders : -1; /* poll(2) passes over a negative one */
        if (poll(watch, 2, patience_ms(self)) < 0) {
            continue;
        }
        while (signals_read(signals, &number, &order) > 0) {
            if (number != SIGCHLD) {
                terminate(self);
            }
        }
        reap(self);
        if (takes_orders(self) && signals_read(orders, &number, &order) > 0 && !obey(self, order)) {
            report_text("ignored", "order", order ? order_name(order) : "not an order");
        }
        be_in_time(self);
        reap(self);
    }
    return self->status;
}

/* 0, or the exit status after saying what is wrong: now, and not when the experiment waits. */
static int check(const struct options *wanted) {
    char **const commands[] = {wanted->argv, wanted->setup, wanted->ready};
    if (getpid() != 1) { /* SIGKILL goes to every process that we may reach */
        errno = 0;
        say("run: only as process 1 of a container");
        return EXIT_REFUSED;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int found = commands[i] ? program_find(commands[i][0]) : 0;
        if (found != 0) {
            say("cannot run %s", commands[i][0]);
            return found;
        }
    }
    return 0;
}

int cmd_run(int argc, char **argv) {
    static const int life[] = {SIGCHLD, SIGTERM, SIGINT};
    static const int order[] = {HOLD_SIGNAL};
    struct hold self = {.phase = HELD, .status = EXIT_TERMINATED};
    int refused = options_parse(&self.wanted, argc, argv);
    if (!refused) {
        refused = check(&self.wanted);
    }
    if (refused) {
        return refused;
    }
    report_to(self.wanted.reports);
    int signals = signal_fd(life, sizeof life / sizeof *life, SFD_NONBLOCK);
    int orders = signal_fd(order, 1, SFD_NONBLOCK);
    if (signals < 0 || orders < 0) {
        say("cannot wait for signals");
        return EXIT_REFUSED;
    }
    report("held", NULL, 0);
    return loop(&self, signals, orders);
}
