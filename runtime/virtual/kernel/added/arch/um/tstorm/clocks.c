// SPDX-License-Identifier: GPL-2.0
/*
 * Clocks of instances. An instance is a network namespace, and its CLOCK_REALTIME says
 *
 *	guest's time + OFFSET + RATE * (guest's time - SINCE)
 *
 * in whole nanoseconds, rounded down. All other clocks are the guest's. Who is told SINCE afterwards still gets the
 * time to the nanosecond. A namespace that is made within another one has that one's clock, as it is then.
 *
 * Timers of the kernel know the guest's time only. One that is to expire at a moment of an instance's clock gets the
 * guest's time of that moment when it starts, and another one when the clock is set; periods are the guest's.
 */
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/nsproxy.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/preempt.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/time-internal.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/timerqueue.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <tstorm/clocks.h>

#define MOST_PPB (NSEC_PER_SEC / 10)
#define ITERATIONS 20			/* each leaves at most a tenth of the error */
#define TO_MOVE (1ULL << 63)		/* with a clock's number in a timer */

DECLARE_PER_CPU(struct hrtimer_cpu_base, hrtimer_bases);

struct own_clock {
	u64 number;
	s64 offset_ns, rate_ppb, since_ns;
};

int tstorm_clocks_differ;
static unsigned int clock_id __ro_after_init;
static u64 last_number;

static struct own_clock *clock_of(struct net *net)
{
	return net_generic(net, clock_id);
}

/* NULL: the guest's. */
static struct own_clock *own_clock(void)
{
	if (time_travel_mode != TT_MODE_INFCPU || !current->nsproxy || current->nsproxy->net_ns == &init_net)
		return NULL;
	return clock_of(current->nsproxy->net_ns);
}

int tstorm_has_own_clock(void)
{
	return own_clock() != NULL;
}

static s64 floor_of(s64 value)
{
	s64 seconds = div_s64(value, NSEC_PER_SEC);

	return seconds * NSEC_PER_SEC > value ? seconds - 1 : seconds;
}

/* Seconds and the rest by themselves: no overflow. */
static s64 own_ns(const struct own_clock *clock, s64 guest_ns)
{
	s64 since_ns = guest_ns - clock->since_ns, seconds = floor_of(since_ns);

	return guest_ns + clock->offset_ns + seconds * clock->rate_ppb +
	       floor_of((since_ns - seconds * NSEC_PER_SEC) * clock->rate_ppb);
}

/* The first moment at which the clock says so much or more. */
static s64 guest_ns(const struct own_clock *clock, s64 wanted_ns)
{
	s64 found_ns = wanted_ns;
	int i;

	if (wanted_ns > KTIME_MAX / 2) /* never */
		return wanted_ns;
	for (i = 0; i < ITERATIONS; i++)
		found_ns -= own_ns(clock, found_ns) - wanted_ns;
	while (own_ns(clock, found_ns) < wanted_ns)
		found_ns++;
	while (own_ns(clock, found_ns - 1) >= wanted_ns)
		found_ns--;
	return max_t(s64, found_ns, 0);
}

void __tstorm_own_time(struct timespec64 *time)
{
	struct own_clock *clock = own_clock();

	if (clock)
		*time = ns_to_timespec64(own_ns(clock, timespec64_to_ns(time)));
}

static int is_of_day(const struct hrtimer_clock_base *base)
{
	return base->clockid == CLOCK_REALTIME || base->clockid == CLOCK_TAI;
}

long long tstorm_timer_starts(struct hrtimer *timer, long long expires_ns, int is_relative)
{
	struct own_clock *clock;

	if (timer->tstorm_clock || is_relative || !in_task() || !is_of_day(timer->base))
		return expires_ns;
	clock = own_clock();
	if (!clock)
		return expires_ns;
	timer->tstorm_clock = clock->number;
	return guest_ns(clock, expires_ns);
}

/* A timer whose number of a clock is this. There is one processor, and interrupts are off. */
static struct hrtimer *timer_with(u64 number)
{
	struct hrtimer_cpu_base *all = this_cpu_ptr(&hrtimer_bases);
	struct timerqueue_node *node;
	int i;

	for (i = 0; i < HRTIMER_MAX_CLOCK_BASES; i++) {
		if (!is_of_day(&all->clock_base[i]))
			continue;
		for (node = timerqueue_getnext(&all->clock_base[i].active); node; node = timerqueue_iterate_next(node)) {
			struct hrtimer *timer = container_of(node, struct hrtimer, node);

			if (timer->tstorm_clock == number)
				return timer;
		}
	}
	return NULL;
}

/* Timers that wait for a moment of the clock OLD wait for the same one of the clock NEW. */
static void move_timers(const struct own_clock *old, const struct own_clock *new)
{
	struct hrtimer *timer;

	while ((timer = timer_with(new->number)))
		timer->tstorm_clock |= TO_MOVE;
	while ((timer = timer_with(new->number | TO_MOVE))) {
		s64 soft_ns = timer->_softexpires;
		u64 slack_ns = timer->node.expires - soft_ns;

		timer->tstorm_clock = new->number;
		if (soft_ns <= KTIME_MAX / 2)
			soft_ns = guest_ns(new, own_ns(old, soft_ns));
		hrtimer_start_range_ns(timer, soft_ns, slack_ns,
				       timer->is_soft ? HRTIMER_MODE_ABS_SOFT : HRTIMER_MODE_ABS);
	}
}

static void set_clock(struct own_clock *clock, s64 since_ns, s64 offset_ns, s64 rate_ppb)
{
	struct own_clock old = *clock;
	s64 now_ns = ktime_get_real_ns();
	unsigned long flags;

	local_irq_save(flags);
	clock->since_ns = since_ns;
	clock->offset_ns = offset_ns;
	clock->rate_ppb = rate_ppb;
	tstorm_clocks_differ = 1;
	move_timers(&old, clock);
	local_irq_restore(flags);
	if (own_ns(&old, now_ns) != own_ns(clock, now_ns))
		tstorm_timerfd_clock_was_set(clock->number);
}

int tstorm_set_own_clock(const struct timespec64 *time)
{
	struct own_clock *clock = own_clock();
	s64 now_ns;

	if (!clock)
		return 0;
	now_ns = ktime_get_real_ns();
	set_clock(clock, now_ns, timespec64_to_ns(time) - now_ns, clock->rate_ppb);
	return 1;
}

static int set_clock_of(int pid, s64 since_ns, s64 offset_ns, s64 rate_ppb)
{
	struct task_struct *task = find_get_task_by_vpid(pid);
	struct net *net = NULL;
	int err = -EINVAL;

	if (!task)
		return -ESRCH;
	task_lock(task);
	if (task->nsproxy)
		net = get_net(task->nsproxy->net_ns);
	task_unlock(task);
	if (net && net != &init_net && abs(rate_ppb) <= MOST_PPB) {
		set_clock(clock_of(net), since_ns, offset_ns, rate_ppb);
		err = 0;
	}
	if (net)
		put_net(net);
	put_task_struct(task);
	return err;
}

/* "PID SINCE OFFSET RATE" of the instance that this process is in; SINCE is CLOCK_MONOTONIC's, RATE in billionths. */
static ssize_t tstorm_clock_write(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	char text[96] = { };
	s64 since_ns, offset_ns, rate_ppb;
	int pid, err;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	if (sscanf(text, "%d %lld %lld %lld", &pid, &since_ns, &offset_ns, &rate_ppb) != 4)
		return -EINVAL;
	err = set_clock_of(pid, ktime_to_ns(ktime_mono_to_real(since_ns)), offset_ns, rate_ppb);
	return err ?: length;
}

static const struct proc_ops tstorm_clock_ops = {
	.proc_write = tstorm_clock_write,
	.proc_lseek = noop_llseek,
};

static int __net_init clock_init(struct net *net)
{
	struct own_clock *clock = clock_of(net), *outer = own_clock();

	if (outer)
		*clock = *outer;
	clock->number = ++last_number;
	return 0;
}

static struct pernet_operations clock_net_ops = {
	.init = clock_init,
	.id = &clock_id,
	.size = sizeof(struct own_clock),
};

static int __init tstorm_clock_init(void)
{
	int err = register_pernet_subsys(&clock_net_ops);

	if (!err)
		proc_create("tstorm_clock", 0200, NULL, &tstorm_clock_ops);
	return err;
}
fs_initcall(tstorm_clock_init);
