// SPDX-License-Identifier: GPL-2.0
/*
 * What takes a program time although nothing in it sleeps: looks at a clock, and calls that fail again and again. So
 * a loop ends that waits for a clock to go on, or for a call to succeed, while computing takes no time.
 *
 * It is the program's own time: it sleeps for as long, and all others run at the moments at which they are due, however
 * many look and fail at one moment. Where nobody else could run, time passes at once.
 *
 * A look at any clock takes LOOK_NS, and counts as computing, so that clocks of processor time go on as well. The first
 * looks of a moment, AHEAD_NS of all programs together, are everybody's time, and the program goes on: others may loop
 * until it has done what it does, without a call, as PostgreSQL does until a worker that it has started is there. While
 * it slept they would loop for ever, since computing takes no time.
 *
 * Calls that fail (FAILURE_NS), and looks of the kernel's own within a call, are on credit of at most CREDIT_NS, which
 * time that goes by pays back: a program that starts fails some hundred times, a loop goes on failing.
 *
 * Where the host lets time stand still and asks something of a program, none of it takes time: it would never end.
 */
#include <linux/irqflags.h>
#include <linux/kernel_stat.h>
#include <linux/sched.h>
#include <linux/sched/cputime.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/time-internal.h>
#include <asm/unistd.h>
#include <tstorm/clockpage.h>
#include <tstorm/cpu.h>
#include <tstorm/taking.h>

#define LOOK_NS 256
#define AHEAD_NS (16 * LOOK_NS)
#define FAILURE_NS NSEC_PER_USEC
#define CREDIT_NS NSEC_PER_MSEC
#define MOST_NS (2 * CREDIT_NS)		/* on credit: beyond it a loop within the kernel is what looks */

struct waiting {
	struct time_travel_event event;
	struct task_struct *task;
};

static void end_of_wait(struct time_travel_event *event)
{
	wake_up_process(container_of(event, struct waiting, event)->task);
}

/* No timer of the kernel's: they are exact to half a microsecond only. */
static void sleep_until(unsigned long long end_ns)
{
	struct waiting one = { .task = current };

	time_travel_set_event_fn(&one.event, end_of_wait);
	time_travel_add_event_rel(&one.event, end_ns - time_travel_now());
	while (1) {
		set_current_state(TASK_KILLABLE);
		if (!one.event.pending || fatal_signal_pending(current))
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	time_travel_del_event(&one.event);
}

void tstorm_wait_until(unsigned long long end_ns)
{
	if (end_ns <= time_travel_now() || fatal_signal_pending(current))
		return;
	if (clockpage_free(end_ns)) {
		yield();
		return;
	}
	if (!single_task_running() || !time_travel_pass(end_ns))
		sleep_until(end_ns);
}

void tstorm_account(unsigned long long ns)
{
	unsigned long flags;

	local_irq_save(flags);
	current->se.sum_exec_runtime += ns;
	account_group_exec_runtime(current, ns);
	account_user_time(current, ns);
	local_irq_restore(flags);
}

static void take(u64 ns)
{
	tstorm_account(ns);
	tstorm_wait_until(time_travel_now() + ns);
}

/* Since all programs slept. */
static u64 ahead_ns;

void tstorm_all_sleep(void)
{
	ahead_ns = 0;
}

void tstorm_look(void)
{
	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	if (single_task_running() || ahead_ns >= AHEAD_NS) {
		take(LOOK_NS);
		return;
	}
	ahead_ns += LOOK_NS;
	tstorm_account(LOOK_NS);
	time_travel_ndelay(LOOK_NS);
}

void tstorm_look_by_call(int number)
{
	switch (number) {
	case __NR_clock_gettime:
	case __NR_gettimeofday:
	case __NR_getrusage:
	case __NR_time:
	case __NR_times:
		tstorm_look();
	}
}

/* How much is on credit after NS more. Time pays it back. */
static u64 owe(u64 ns)
{
	u64 now_ns = time_travel_now(), *until_ns = &current->thread.owed_until_ns;

	*until_ns = max(*until_ns, now_ns) + ns;
	return *until_ns - now_ns;
}

int tstorm_look_in_call(void)
{
	return time_travel_mode == TT_MODE_INFCPU && !(current->flags & PF_KTHREAD) && owe(LOOK_NS) <= MOST_NS;
}

void tstorm_call_ends(int failed)
{
	u64 owed_ns;

	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	owed_ns = owe(failed ? FAILURE_NS : 0);
	if (owed_ns > CREDIT_NS)
		take(owed_ns - CREDIT_NS);
}

/*
 * Whoever is killed for the memory that it has goes when it gets its turn, and who needs that memory tries again and
 * again. Computing takes no time, so nothing else would take the turn away.
 */
void tstorm_let_go(void)
{
	if (time_travel_mode == TT_MODE_INFCPU)
		tstorm_wait_until(time_travel_now() + FAILURE_NS);
}
