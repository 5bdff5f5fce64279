// SPDX-License-Identifier: GPL-2.0
/*
 * Other orders of the same program: "tstorm_scatter=NANOSECONDS".
 *
 * Without it a program, whose computing takes no time, runs from one system call that blocks to the next with nobody
 * in between, and programs that wake at one time run in one order. With it, a program that was woken goes on 0 to
 * NANOSECONDS later, and so it does after one system call in PAUSE_ONE_IN that did not block, while the others run.
 * The draws come from the seed, in a sequence of their own: one seed, one order.
 *
 * A program that asked for exact timers (prctl PR_SET_TIMERSLACK 1), or has them since its policy is a real-time one
 * (0), is left alone, as are those it starts: what carries the packets and plans the events has to be in time.
 */
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <init.h>
#include <kern.h>
#include <tstorm/scatter.h>
#include <tstorm/seed.h>

#define PAUSE_ONE_IN 16

unsigned long long tstorm_scatter_ns __ro_after_init;

static int __init tstorm_scatter_setup(char *text, int *add)
{
	*add = 0;
	if (kstrtoull(text, 10, &tstorm_scatter_ns) || tstorm_scatter_ns > NSEC_PER_SEC) {
		printf("tstorm_scatter=%s: must be at most 1000000000 nanoseconds\n", text);
		exit(1);
	}
	return 0;
}

__uml_setup("tstorm_scatter=", tstorm_scatter_setup,
"tstorm_scatter=<nanoseconds>\n"
"    Programs that wake are delayed by up to this, and pause as long after some system calls, as drawn\n"
"    from tstorm_seed.\n\n"
);

int tstorm_is_exact(void)
{
	return current->timer_slack_ns <= 1 || !tstorm_seeded;
}

void tstorm_pause(unsigned long long ns)
{
	ktime_t time = ns_to_ktime(ns);

	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout_range(&time, 0, HRTIMER_MODE_REL);
}

void tstorm_scatter_program(int woken)
{
	unsigned long long drawn;

	if (tstorm_is_exact())
		return;
	drawn = tstorm_draw(TSTORM_SCATTER);
	if (woken || drawn % PAUSE_ONE_IN == 0)
		tstorm_pause(drawn / PAUSE_ONE_IN % (tstorm_scatter_ns + 1));
}
