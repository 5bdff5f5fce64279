// SPDX-License-Identifier: GPL-2.0
/*
 * Computing that takes virtual time: "tstorm_cpu=PPB".
 *
 * Time stands still while a program runs, and what the run took on the host is settled afterwards: before its next
 * system call takes effect, the program sleeps until the processor of its instance would have done the work. So
 * others run at the times at which they would run, whoever was first on the host's processor. A program that makes
 * no system call is cut by the host's timer and settles then.
 *
 * An instance is a network namespace, for which somebody has written to /proc/tstorm_cpu how much of a processor it
 * has. All others compute in no time, and so does the process that was named there: it is the runtime's.
 *
 * Each turn of a program costs the host some work of its own. What it costs without a program is measured first
 * ("turn", written some hundred times), and taken off.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <init.h>
#include <kern.h>
#include <os.h>
#include <tstorm/clockpage.h>
#include <tstorm/cpu.h>
#include <tstorm/taking.h>

#define SAMPLES 256
#define SLICE_NS (4 * NSEC_PER_MSEC)	/* of the host's time */
#define LEAST_NS NSEC_PER_USEC		/* that is settled: less stays until there is more */
#define MUCH_NS NSEC_PER_MSEC		/* that is settled although nothing happened */
#define MOST_PPB (1000ULL * NSEC_PER_SEC)
#define WHOLE 1000			/* thousandths of a processor */
#define MOST_MILLIS (256 * WHOLE)

/* Of a network namespace. */
struct account {
	u64 *free_ns;			/* of each whole processor, from when; NULL: computing takes no time */
	u32 count, millis;
	u64 within_ns;			/* until then all together have used their share */
	pid_t keeper;			/* computes in no time nevertheless */
	u64 used_ns;			/* of the host's processor */
};

unsigned long long tstorm_cpu_ppb __ro_after_init;

static unsigned int account_id __ro_after_init;
static struct account calibration;
static u32 samples[SAMPLES];
static int sampled;
static u64 turn_ns;		/* what a turn costs without a program */
static u64 all_used_ns, all_charged_ns;

/* There is one turn at a time. */
static struct account *running;
static u64 began_ns, last_ns;

static int __init tstorm_cpu_setup(char *text, int *add)
{
	*add = 0;
	if (kstrtoull(text, 10, &tstorm_cpu_ppb) || tstorm_cpu_ppb > MOST_PPB) {
		os_warn("tstorm_cpu=%s: must be at most %llu\n", text, MOST_PPB);
		exit(1);
	}
	return 0;
}

__uml_setup("tstorm_cpu=", tstorm_cpu_setup,
"tstorm_cpu=<ppb>\n"
"    A second of the host's processor time in programs of an instance counts so many billionths of a\n"
"    virtual second. 0: none.\n\n"
);

static struct account *account_of(struct net *net)
{
	return net_generic(net, account_id);
}

static struct account *charged(void)
{
	struct account *account;

	if (sampled < SAMPLES)
		return &calibration;
	account = account_of(current->nsproxy->net_ns);
	return account->free_ns && account->keeper != current->tgid ? account : NULL;
}

void tstorm_cpu_turn_begins(int pid)
{
	running = charged();
	if (running)
		began_ns = tstorm_cpu_of_host(pid);
}

void tstorm_cpu_turn_ends(int pid)
{
	struct account *account = running;
	u64 now_ns;

	running = NULL;
	if (!account)
		return;
	now_ns = tstorm_cpu_of_host(pid);
	last_ns = now_ns > began_ns ? now_ns - began_ns : 0;
	if (account == &calibration)
		return;
	/* A turn may take less than others do: that is kept, but never more than one. */
	current->thread.cpu_ns += (s64)(last_ns - turn_ns);
	current->thread.cpu_ns = max_t(s64, current->thread.cpu_ns, -(s64)turn_ns);
}

int tstorm_cpu_cut(void)
{
	if (running && running != &calibration)
		os_alarm_process(current->mm->context.id.pid);
	return !clockpage || !READ_ONCE(clockpage->creep_ns);
}

/*
 * When work is done that takes NS on a whole processor: on the one that is free first, and not before the share of
 * all of them allows it.
 */
static u64 reserve(struct account *account, u64 ns)
{
	u64 now_ns = time_travel_now(), *chosen = account->free_ns;
	u32 i;

	for (i = 1; i < account->count; i++) {
		if (account->free_ns[i] < *chosen)
			chosen = &account->free_ns[i];
	}
	*chosen = max(*chosen, now_ns) + ns;
	account->within_ns = max(account->within_ns, now_ns) + mul_u64_u32_div(ns, WHOLE, account->millis);
	return max(*chosen, account->within_ns);
}

static void settle(s64 least_ns)
{
	struct account *account;
	s64 used_ns = current->thread.cpu_ns;
	u64 ns;

	if (used_ns < least_ns)
		return;
	account = charged();
	current->thread.cpu_ns = 0;
	if (!account || account == &calibration)
		return;
	ns = mul_u64_u64_div_u64(used_ns, tstorm_cpu_ppb, NSEC_PER_SEC);
	account->used_ns += used_ns;
	all_used_ns += used_ns;
	all_charged_ns += ns;
	tstorm_account(ns);
	tstorm_wait_until(reserve(account, ns));
}

int tstorm_cpu_settle(void)
{
	settle(LEAST_NS);
	return fatal_signal_pending(current);
}

void tstorm_cpu_settle_much(void)
{
	settle(MUCH_NS);
}

static int by_size(const void *first, const void *second)
{
	u32 a = *(const u32 *)first, b = *(const u32 *)second;

	return a < b ? -1 : a > b;
}

/* This write's own turn is one. The mean without the extremes: interrupts of the host. */
static int sample(void)
{
	int i, cut = SAMPLES / 10;
	u64 sum = 0;

	if (sampled == SAMPLES)
		return -EBUSY;
	samples[sampled++] = last_ns;
	if (sampled < SAMPLES)
		return 0;
	sort(samples, SAMPLES, sizeof(samples[0]), by_size, NULL);
	for (i = cut; i < SAMPLES - cut; i++)
		sum += samples[i];
	turn_ns = div_u64(sum, SAMPLES - 2 * cut);
	tstorm_cpu_slices(SLICE_NS);
	return 0;
}

static int open_account(struct account *account, pid_t keeper, u32 millis)
{
	u32 count = DIV_ROUND_UP(millis, WHOLE);
	u64 *free_ns;

	if (account->free_ns)
		return -EBUSY;
	free_ns = kcalloc(count, sizeof(*free_ns), GFP_KERNEL);
	if (!free_ns)
		return -ENOMEM;
	account->count = count;
	account->millis = millis;
	account->keeper = keeper;
	account->free_ns = free_ns;
	return 0;
}

static int open_account_of(int pid, u32 millis)
{
	struct task_struct *task = find_get_task_by_vpid(pid);
	int err = -ESRCH;

	if (!task)
		return err;
	if (!millis || millis > MOST_MILLIS || sampled < SAMPLES) {
		err = -EINVAL;
	} else {
		struct net *net = NULL;

		task_lock(task);
		if (task->nsproxy)
			net = get_net(task->nsproxy->net_ns);
		task_unlock(task);
		if (net) {
			err = open_account(account_of(net), task->tgid, millis);
			put_net(net);
		}
	}
	put_task_struct(task);
	return err;
}

/* "turn", or "PID MILLIS": the instance that this process is in has so much of a processor, for good. */
static ssize_t tstorm_cpu_write(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	char text[32] = { };
	u32 millis;
	int pid, err = -EINVAL;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	if (!strcmp(text, "turn"))
		err = sample();
	else if (sscanf(text, "%d %u", &pid, &millis) == 2)
		err = open_account_of(pid, millis);
	return err ?: length;
}

static int tstorm_cpu_show(struct seq_file *m, void *unused)
{
	struct account *mine = account_of(current->nsproxy->net_ns);

	seq_printf(m, "ppb: %llu\nturn_ns: %llu\n", tstorm_cpu_ppb, turn_ns);
	seq_printf(m, "used_ns: %llu\ncharged_ns: %llu\n", all_used_ns, all_charged_ns);
	seq_printf(m, "here_millis: %u\nhere_used_ns: %llu\n", mine->millis, mine->used_ns);
	return 0;
}

static int tstorm_cpu_open(struct inode *inode, struct file *file)
{
	return single_open(file, tstorm_cpu_show, NULL);
}

static const struct proc_ops tstorm_cpu_ops = {
	.proc_open = tstorm_cpu_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = tstorm_cpu_write,
};

static void __net_exit account_exit(struct net *net)
{
	kfree(account_of(net)->free_ns);
}

static struct pernet_operations account_ops = {
	.exit = account_exit,
	.id = &account_id,
	.size = sizeof(struct account),
};

static int __init tstorm_cpu_init(void)
{
	int err;

	if (!tstorm_cpu_ppb)
		return 0;
	err = register_pernet_subsys(&account_ops);
	if (!err)
		proc_create("tstorm_cpu", 0644, NULL, &tstorm_cpu_ops);
	return err;
}
fs_initcall(tstorm_cpu_init);
