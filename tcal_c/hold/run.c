/* run: process 1 of a container; starts and ends the program as the agent orders.
 *
 * Input: orders (order.c), SIGTERM of the container engine, children that end. Output: the
 * program's life and reports of it (report.c). A life ends in three ways: the program ends by
 * itself, a leave (SIGTERM to every process, SIGKILL 5 s later), a crash (SIGKILL). Like in a
 * container of its own, everything that the program has started ends with it if it ends by itself.
 * Then the next join may come; the container itself stays.
 *
 *   HELD --join--> RUNNING --leave, SIGTERM--> LEAVING --5 s, join, crash--> EMPTYING
 *                     |                           |                             ^
 *                     +--program ended, crash-----|-----------------------------+
 *   LEAVING, EMPTYING --no process left--> RUNNING if a join cut the leave short, end if told to,
 *                                          else HELD
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

#include "common/clock.h"
#include "hold.h"

enum phase { HELD, RUNNING, LEAVING, EMPTYING };

struct hold {
    char **argv;
    enum phase phase;
    pid_t program;       /* 0: none */
    int64_t deadline_ms; /* while LEAVING: when SIGKILL comes */
    bool rejoin;         /* start again as soon as nothing is left */
    bool ending;         /* end as soon as nothing is left */
    int status;          /* to end with */
    const char *event;   /* to report when nothing is left */
};

static void start(struct hold *self) {
    pid_t pid = program_start(self->argv);
    if (pid < 0) {
        const struct field why[] = {{.name = "program", .text = self->argv[0]},
                                    {.name = "error", .text = strerror(errno)}};
        report("failed", why, 2);
        self->phase = HELD;
        return;
    }
    self->program = pid;
    self->phase = RUNNING;
    report_number("started", "pid", pid);
}

/* Everything in the namespace but us; what its user put out of our reach is refused, and said. */
static void empty(struct hold *self, const char *event) {
    if (kill(-1, SIGKILL) < 0 && errno != ESRCH) {
        say("cannot kill every process of the container");
    }
    self->phase = EMPTYING;
    self->event = event;
}

/* To every process, as in a local run (tcal_c/ns): a shell does not pass it on. */
static void leave(struct hold *self) {
    kill(-1, SIGTERM); /* one that is out of our reach may still end by itself */
    self->phase = LEAVING;
    self->event = "left";
    self->deadline_ms = (int64_t)(clock_now() / 1000000) + GRACE_MS;
}

static void obey(struct hold *self, enum order order) {
    bool there = self->phase == RUNNING || self->phase == LEAVING;
    if (order == ORDER_JOIN && self->phase == HELD) {
        start(self);
    } else if (order == ORDER_JOIN && self->phase == LEAVING) {
        self->rejoin = true; /* the timeline has priority over the grace */
        empty(self, "left");
    } else if (order == ORDER_LEAVE && self->phase == RUNNING) {
        leave(self);
    } else if (order == ORDER_CRASH && there) {
        empty(self, "crashed");
    } else {
        report_text("ignored", "order", order ? order_name(order) : "not an order");
    }
}

static void terminate(struct hold *self) {
    self->ending = true;
    self->rejoin = false;
    if (self->phase == RUNNING) {
        leave(self);
    }
}

static void program_ended(struct hold *self, int wait_status) {
    self->program = 0;
    self->status = exit_status(wait_status);
    if (WIFSIGNALED(wait_status)) {
        report_number("ended", "signal", WTERMSIG(wait_status));
    } else {
        report_number("ended", "status", WEXITSTATUS(wait_status));
    }
    if (self->phase == RUNNING) {
        empty(self, NULL);
    }
}

/* Orphans become ours, since we are process 1: the last one reaped means that nothing is left. */
static void reap(struct hold *self) {
    int wait_status;
    pid_t ended;
    while ((ended = waitpid(-1, &wait_status, WNOHANG)) > 0) {
        if (ended == self->program) {
            program_ended(self, wait_status);
        }
    }
    if ((self->phase != EMPTYING && self->phase != LEAVING) || ended == 0) {
        return;
    }
    self->phase = HELD;
    if (self->event) {
        report(self->event, NULL, 0);
    }
    if (self->rejoin) {
        start(self);
    }
    self->rejoin = false;
}

static int patience_ms(const struct hold *self) {
    if (self->phase != LEAVING) {
        return -1;
    }
    int64_t left = self->deadline_ms - (int64_t)(clock_now() / 1000000);
    return left > 0 ? (int)left : 0;
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
        if (takes_orders(self) && signals_read(orders, &number, &order) > 0) {
            obey(self, order);
        }
        if (self->phase == LEAVING && patience_ms(self) == 0) {
            empty(self, "left");
        }
        reap(self);
    }
    return self->status;
}

/* Options and program into `self`; 0, or the exit status after saying what is wrong. */
static int parse(struct hold *self, int argc, char **argv) {
    const char *reports = "/tstorm/reports";
    int at = 1;
    if (argc > 2 && strcmp(argv[1], "--reports") == 0) {
        reports = argv[2];
        at = 3;
    }
    errno = 0;
    if (at >= argc - 1 || strcmp(argv[at], "--") != 0) {
        say("run: [--reports FILE], -- and a program are needed");
        return EXIT_REFUSED;
    }
    if (getpid() != 1) { /* SIGKILL goes to every process that we may reach */
        say("run: only as process 1 of a container");
        return EXIT_REFUSED;
    }
    self->argv = argv + at + 1;
    int found = program_find(self->argv[0]);
    if (found != 0) { /* now, and not when the experiment waits for it */
        say("cannot run %s", self->argv[0]);
        return found;
    }
    report_to(reports);
    return 0;
}

int cmd_run(int argc, char **argv) {
    static const int life[] = {SIGCHLD, SIGTERM, SIGINT};
    static const int order[] = {HOLD_SIGNAL};
    struct hold self = {.phase = HELD, .status = EXIT_TERMINATED};
    int refused = parse(&self, argc, argv);
    if (refused) {
        return refused;
    }
    int signals = signal_fd(life, sizeof life / sizeof *life, SFD_NONBLOCK);
    int orders = signal_fd(order, 1, SFD_NONBLOCK);
    if (signals < 0 || orders < 0) {
        say("cannot wait for signals");
        return EXIT_REFUSED;
    }
    report("held", NULL, 0);
    return loop(&self, signals, orders);
}
